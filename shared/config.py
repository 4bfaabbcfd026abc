"""The configuration: every field, its default and its unit, in one place.

A run is described by one YAML file with the sections below. Fields are strict: an unknown key, a wrong type
or an impossible combination is an error that names the key and the nearest known one.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Decay = Annotated[float, Field(ge=0.0, lt=1.0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class Section(BaseModel):
    """A frozen, strict group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class FilterConfig(Section):
    """Clips that a build keeps out, each with a row of the ledger that says why; null: no such limit."""

    min_loudness_db: Annotated[float, Field(ge=-120.0, le=0.0)] | None = None
    """dBFS, RMS of the speech: the frames of 20 ms at most 10 dB below the clip's mean power."""
    max_noise_floor_db: Annotated[float, Field(ge=-120.0, le=0.0)] | None = None
    """dBFS: the 10th percentile of the power of 20 ms, without digital silence."""
    max_clipped_share: Fraction | None = None
    """Share of the samples that are at full scale three or more in a row."""
    max_edge_silence_seconds: NonNegativeFloat | None = None
    """Seconds at the start or at the end more than 30 dB below the speech, before any trimming."""
    min_letters_per_second: PositiveFloat | None = None
    """Letters of the text / seconds of the clip: fewer suggest missing text."""
    max_letters_per_second: PositiveFloat | None = None
    """Letters of the text / seconds of the clip: more suggest missing speech."""
    min_sample_rate: PositiveInt | None = None
    """Hz of the file; a lower one has no sound above its half."""


class DataConfig(Section):
    """How stage 2 reads a cache; `filters` is for stage 1."""

    verify: Literal["quick", "full", "off"] = "quick"
    """Check of the cache at the start of training: `quick` file sizes, `full` every checksum."""
    shuffle_memory_mb: PositiveInt = 512
    """Memory for the shuffled blocks of all buckets together, MiB; a block is shuffled as a whole."""
    prefetch_to_device: bool = True
    """Copy the next batch of each bucket into a GPU's memory while a step runs; nothing where there is no GPU."""
    mel_on: Literal["host", "device"] = "host"
    """Where the mels of a cache without them (`xtts-precompute build --index-only`) are computed: by the input
    pipeline, or inside the step from int16 samples; nothing where the cache holds mels."""
    max_unreadable_fraction: Fraction = 0.05
    """The run stops when more than this share of such a cache's training clips could not be read."""
    stage: str | None = None
    """Folder for the local copies of a cache in an object store; null: one in the user's cache folder."""
    stage_gb: PositiveInt = 100
    """Most bytes of those copies together, GB; shards that are needed later make room for those needed next."""
    filters: FilterConfig = FilterConfig()


class AudioConfig(Section):
    """From samples to mel. Any change rebuilds the mels."""

    profile: str = "hifigan"
    """Mel profile, see shared/audio/mel_profiles.py."""
    trim_silence_db: PositiveFloat | None = None
    """Cut the ends of a clip that are quieter than its loudest 10 ms by more than this many dB, less 50 ms."""
    loudness_lufs: Annotated[float, Field(ge=-70.0, le=0.0)] | None = None
    """Bring every clip to this integrated loudness (ITU-R BS.1770), by less where the peak would pass full scale."""


class TextConfig(Section):
    """From transcript to tokens."""

    tokenizer: Literal["auto", "characters", "phonemes", "bpe"] = "characters"
    """Symbol table, see shared/text/tokenizer.py; `phonemes` is IPA by the language's voice of espeak-ng, extra
    `phonemes` (`en` is American English); `bpe` is learned from the corpus by Hugging Face tokenizers, extra `bpe`, and
    stays while clips come and go. `auto` is decided when a cache is built: what the cache has already, else `phonemes`
    where the extra is installed and espeak-ng has a voice, else `characters`.
    """
    language: str = "en"
    """ISO 639 code of the corpus' language, such as `de`, `fa` or `cmn`: its alphabet is learned from the corpus, `en`
    has a to z. Mandarin (`cmn`) is read as pinyin, extra `mandarin`, Japanese (`ja`) as kana, extra `japanese`."""
    max_unknown_share: Fraction = 0.001
    """The build stops when a larger share of the letters has no symbol, or in English an accent that is lost."""
    bpe_vocabulary: Annotated[int, Field(ge=64, le=65_536)] = 512
    """Most ids of `bpe`, those of single characters included."""
    add_blank: bool = False
    """Put a blank token around every symbol (2n+1 tokens)."""
    expand_numbers: bool = True
    """Put numbers and abbreviations into words (shared/text/text_normalization.py), only in texts without a normalised
    column and in what xtts-synth speaks. Languages other than English: numbers alone, extra `numbers`."""


class ShapesConfig(Section):
    """The closed set of shapes."""

    pad_to_fixed_length: bool = True
    """False stores clips unpadded: the dynamic baseline, slow on purpose."""
    buckets: Annotated[int, Field(gt=0, le=100)] = 4
    """Number of (tokens, frames) shapes, chosen from the lengths of the corpus; 1 is a single fixed shape."""
    max_text_length: PositiveInt | None = None
    """Tokens; a longer text is rejected into the ledger, never cut."""
    max_mel_frames: PositiveInt | None = None
    """Frames; a longer clip is rejected into the ledger, never cut."""
    max_reject_fraction: Fraction = 0.05
    """The build stops when more than this share of the corpus is rejected; training need not agree."""


class ShardsConfig(Section):
    """Files of the cache."""

    mel_dtype: Literal["float16", "float32"] = "float16"
    """Stored type of the log-mel; float16 halves the cache at an error below 0.004 in log-mel."""
    shard_mb: PositiveInt = 32
    """Target size of one shard, MiB; a corpus of few such shards gets smaller ones, of 4 MiB and more."""


class SplitConfig(Section):
    """Which clips are held out."""

    validation_fraction: Fraction = 0.05
    """Share of the clips held out; chosen by a digest of the clip id, at least one clip when above 0."""
    seed: int = 0
    """Salt of every digest: the split, the shard of a clip, and its place in the shard."""


class ModelConfig(Section):
    """Acoustic model. `size` alone takes the other fields from configs/<size>.yaml."""

    size: str
    """Name of the file in configs/ that gives the fields not set here."""
    text_width: PositiveInt
    """D of the text encoder; divisible by 2 * text_heads (rotary positions)."""
    text_blocks: PositiveInt
    """Transformer blocks of the text encoder."""
    text_heads: PositiveInt
    """Attention heads of the text encoder."""
    text_expansion: PositiveInt
    """Hidden width of a Transformer block's perceptron as a multiple of text_width."""
    prenet_layers: PositiveInt
    """Convolutions before the Transformer blocks."""
    prenet_kernel: PositiveInt
    """Width of those convolutions, tokens; odd."""
    duration_width: PositiveInt
    """Channels of the duration predictor."""
    duration_layers: PositiveInt
    """Convolutions of the duration predictor."""
    duration_kernel: PositiveInt
    """Width of those convolutions, tokens; odd."""
    duration_model: Literal["mean", "flow"] = "mean"
    """`flow` trains, beside the predictor of the mean, a network that draws durations by flow matching, with half its
    channels: for `xtts-synth --duration-noise`."""
    decoder_width: PositiveInt
    """D of the flow-matching decoder; even."""
    decoder_blocks: PositiveInt
    """ConvNeXt blocks of the decoder."""
    decoder_kernel: PositiveInt
    """Width of the decoder's depthwise convolutions, frames; odd."""
    decoder_expansion: PositiveInt
    """Hidden width of a decoder block as a multiple of decoder_width."""
    dropout: Fraction
    """Share of activations dropped in training, in all parts but the decoder."""
    condition_dropout: Decay
    """Share of the clips trained without their speaker, voice and language, the text stays: what `--guidance` needs.
    Nothing in a model of one voice and one language."""
    voice_latents: Annotated[int, Field(ge=0, le=1024)]
    """Latents that carry the voice of a reference recording; 0: no such encoder, a speaker table distinguishes voices.
    Above 0 the recording alone decides the voice, unless voice_speaker_table is true."""
    voice_speaker_table: bool
    """Keep the speaker table beside the latents: a voice is then a speaker of the corpus and a recording."""
    voice_frames: PositiveInt
    """Most frames of a reference crop; in training a crop is at most half of its clip."""
    voice_width: PositiveInt
    """D of the reference encoder and of its latents; divisible by voice_heads."""
    voice_layers: PositiveInt
    """Convolutions over the crop."""
    voice_kernel: PositiveInt
    """Width of those convolutions, frames; odd."""
    voice_blocks: PositiveInt
    """Resampler blocks, in which the latents look at the crop."""
    voice_heads: PositiveInt
    """Attention heads of a resampler block."""
    voice_expansion: PositiveInt
    """Hidden width of a resampler block's perceptron as a multiple of voice_width."""

    @property
    def has_speaker_table(self) -> bool:
        """Whether several speakers of a corpus have a table."""
        return self.voice_speaker_table or not self.voice_latents

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.text_width % (2 * self.text_heads):
            raise ValueError(f"text_width {self.text_width} is not divisible by 2 * text_heads ({2 * self.text_heads})")
        if self.voice_width % self.voice_heads:
            raise ValueError(f"voice_width {self.voice_width} is not divisible by voice_heads ({self.voice_heads})")
        for name in ("prenet_kernel", "duration_kernel", "decoder_kernel", "voice_kernel"):
            if getattr(self, name) % 2 == 0:
                raise ValueError(f"{name} {getattr(self, name)} is even, expected an odd width")
        if self.decoder_width % 2:
            raise ValueError(f"decoder_width {self.decoder_width} is odd, expected an even width")
        return self


class TrainingConfig(Section):
    """Optimisation, schedule and bookkeeping."""

    batch_size: PositiveInt = 16
    """B: clips per step in the bucket of the most frames."""
    constant_frames_per_batch: bool = True
    """Give buckets of fewer frames more clips per step, so that every step sees about as many frames."""
    gradient_accumulation_steps: PositiveInt = 1
    """Micro-batches per update; each divides the bucket's batch. Several devices share them evenly."""
    strategy: Literal["auto", "single", "mirrored", "multiworker"] = "auto"
    """Devices that share every step: `single` one, `mirrored` all GPUs of this machine, `multiworker` those of the
    workers in TF_CONFIG; `auto` takes the last that applies (docs/devices.md)."""
    mixed_precision: Literal["float32", "bfloat16"] = "float32"
    """Type of activations; weights, losses and the optimizer stay float32."""
    steps: PositiveInt = 1000
    """Updates in the whole run, the resumed ones included; the schedule ends here."""
    epochs: PositiveInt | None = None
    """Passes over the training clips; when set, it decides `steps`."""
    patience: PositiveInt | None = None
    """Validations in a row without a new best loss after which the run stops early."""
    learning_rate: PositiveFloat = 1e-3
    """Peak, reached after warm-up."""
    learning_rate_batch_size: PositiveInt | None = None
    """The batch_size that learning_rate is meant for; at another one the peak is multiplied by the square root of the
    ratio (Malladi et al., 2205.10287). null: it is not."""
    warmup_steps: int = Field(default=100, ge=0)
    """Linear warm-up from 0."""
    decay_fraction: Fraction = 0.2
    """Share of the steps after warm-up, the last ones, in which the rate decays by a cosine. Before them it is
    constant, so that a run that is made longer shows no trace of its first end. 1 decays all the way."""
    final_learning_rate_share: Fraction = 0.05
    """The decay ends at this share of the peak."""
    weight_decay: NonNegativeFloat = 0.01
    """Decoupled; biases, norms and embeddings are left out."""
    adam_beta1: Decay = 0.9
    """Decay of the first moment."""
    adam_beta2: Decay = 0.99
    """Decay of the second moment."""
    adam_epsilon: PositiveFloat = 1e-8
    """Added to the root of the second moment."""
    clip_norm: PositiveFloat = 1.0
    """Largest norm of the gradient: that of the duration predictor, and that of all other weights together."""
    ema_decay: Decay = 0.995
    """Decay of the averaged weights that validation and export use."""
    duration_loss_weight: NonNegativeFloat = 1.0
    """Weight of the duration loss (gamma deviance) beside the prior and flow losses."""
    max_bad_steps: PositiveInt = 20
    """Consecutive non-finite updates (each one skipped) after which the run stops."""
    steps_per_call: PositiveInt = 50
    """Steps that run inside one graph call."""
    log_every: PositiveInt = 50
    """Steps between lines on the terminal; metrics.jsonl gets every step."""
    validate_every: PositiveInt = 500
    """Steps between validations."""
    validation_clips: PositiveInt | None = 1000
    """Most held-out clips that a validation reads, the same ones every time, of all buckets in proportion; null for
    all. A million clips hold out 50,000, which take about as long as 1,500 steps of 32; LJSpeech holds out 655."""
    samples_every: PositiveInt | None = 500
    """Steps between speaking fixed validation sentences into TensorBoard, the last step included; null for never."""
    sample_sentences: PositiveInt = 8
    """How many sentences: they are spoken in one batch, and their recordings compete in retrieval."""
    samples_heard: int = Field(default=2, ge=0)
    """How many of them are also heard and seen in TensorBoard."""
    checkpoint_every: PositiveInt = 500
    """Steps between checkpoints; the last step is always saved."""
    keep_checkpoints: PositiveInt = 3
    """Newest checkpoints kept, beside the best one by validation."""
    seed: Seed = 0
    """Initial weights, order of the clips and every random number of the step."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.batch_size % self.gradient_accumulation_steps:
            raise ValueError(
                f"batch_size {self.batch_size} is not divisible by "
                f"gradient_accumulation_steps {self.gradient_accumulation_steps}"
            )
        return self


class Config(Section):
    """The whole configuration of features and training."""

    data: DataConfig = DataConfig()
    audio: AudioConfig = AudioConfig()
    text: TextConfig = TextConfig()
    shapes: ShapesConfig = ShapesConfig()
    shards: ShardsConfig = ShardsConfig()
    split: SplitConfig = SplitConfig()
    model: ModelConfig
    training: TrainingConfig = TrainingConfig()
