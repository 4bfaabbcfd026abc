"""The configuration: every field, its default and its unit; those of the model are in model_config.py.

A run is described by one YAML file with the sections below. Fields are strict: an unknown key, a wrong type
or an impossible combination is an error that names the key and the nearest known one.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from xtts.shared.languages import find_language
from xtts.shared.model_config import (
    ConfigSection,
    Decay,
    Fraction,
    ModelConfig,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    Seed,
    VocoderConfig,
)


class FilterConfig(ConfigSection):
    """Clips that a build keeps out, each with a row in the index that says why; null: no such limit."""

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


class DataConfig(ConfigSection):
    """How stage 2 reads a cache; `filters` is for stage 1."""

    verify: Literal["quick", "full", "off"] = "quick"
    """Check of the cache at the start of training: `quick` file sizes, `full` every checksum."""
    shuffle_memory_mb: PositiveInt = 512
    """Memory for the shuffled blocks of all buckets together, MiB; a block is shuffled as a whole."""
    max_unreadable_fraction: Fraction = 0.05
    """The run stops when more than this share of such a cache's training clips could not be read."""
    stage: str | None = None
    """Folder for the local copies of a cache in an object store; null: one in the user's cache folder."""
    filters: FilterConfig = FilterConfig()


class AudioConfig(ConfigSection):
    """From samples to mel. Any change rebuilds the mels."""

    profile: str = "hifigan"
    """Mel profile, see shared/audio/mel_profiles.py."""
    trim_silence_db: PositiveFloat | None = None
    """Cut the ends of a clip that are quieter than its loudest 10 ms by more than this many dB, less 50 ms."""
    loudness_lufs: Annotated[float, Field(ge=-70.0, le=0.0)] | None = None
    """Bring every clip to this integrated loudness (ITU-R BS.1770), by less where the peak would pass full scale."""
    crop_frames: Annotated[int, Field(ge=32, le=1024)] | None = None
    """Cut every clip into crops of so many frames, whose records also hold samples and pitch: what trains a vocoder.
    null: whole clips."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.crop_frames and (self.trim_silence_db is not None or self.loudness_lufs is not None):
            raise ValueError("crop_frames cuts recordings as they are: trim_silence_db and loudness_lufs must be null")
        return self


class TextConfig(ConfigSection):
    """From transcript to tokens."""

    tokenizer: Literal["auto", "characters", "phonemes", "bpe"] = "characters"
    """Symbol table, see shared/text/tokenizer.py; `phonemes` is IPA by the language's voice of espeak-ng, extra
    `phonemes` (`en` is American English); `bpe` is learned from the corpus by Hugging Face tokenizers, extra `bpe`, and
    stays while clips come and go. `auto` is decided when a cache is built: what the cache has already, else `phonemes`
    where the extra is installed and espeak-ng has a voice, else `characters`.
    """
    language: Annotated[str, AfterValidator(lambda code: find_language(code).code)] = "en"
    """ISO 639 code of the corpus' language, such as `de`, `fa` or `cmn`: its alphabet is learned from the corpus, `en`
    has a to z. Mandarin (`cmn`) is read as pinyin, extra `mandarin`, Japanese (`ja`) as kana, extra `japanese`."""
    max_unknown_share: Fraction = 0.001
    """The build stops when a larger share of the letters has no symbol, or in English an accent that is lost."""
    bpe_vocabulary: Annotated[int, Field(ge=64, le=65_536)] = 512
    """Most ids of `bpe`, those of single characters included."""
    add_blank: bool = False
    """Put a blank token around every symbol (2n+1 tokens for n symbols)."""
    lexicon: Annotated[str | None, Field(exclude=True)] = None
    """File of words and how they are read: a line has a word, a tab, and `[[phonemes]]` (of the tokenizer `phonemes`)
    or a respelling. A word in small letters is meant in any case, others as they are written. The cache, runs and
    exports hold its words with the tokenizer, not its path."""
    expand_numbers: bool = True
    """Put numbers and abbreviations into words (shared/text/text_normalization.py), only in texts without a normalised
    column and in what xtts-synth speaks. In English and German with what stands around them,
    in other languages dates, times, ordinals and percent."""


class ShapesConfig(ConfigSection):
    """The closed set of shapes."""

    pad_to_fixed_length: bool = True
    """False stores clips unpadded: the dynamic baseline, slow on purpose."""
    buckets: Annotated[int, Field(gt=0, le=100)] = 4
    """Number of (tokens, frames) shapes, chosen from the lengths of the corpus; 1 is a single fixed shape."""
    max_text_length: PositiveInt | None = None
    """Tokens; a clip with a longer text is rejected, never cut."""
    max_mel_frames: PositiveInt | None = None
    """Frames; a longer clip is rejected, never cut."""
    max_reject_fraction: Fraction = 0.05
    """The build stops when more than this share of the corpus is rejected; training need not agree."""


class ShardsConfig(ConfigSection):
    """Files of the cache."""

    mel_dtype: Literal["float16", "float32"] = "float16"
    """Stored type of the log-mel; float16 halves the cache at an error below 0.004 in log-mel."""
    shard_mb: PositiveInt = 32
    """Target size of one shard, MiB; a corpus of few such shards gets smaller ones, of 4 MiB and more."""


class SplitConfig(ConfigSection):
    """Which clips are held out."""

    validation_fraction: Fraction = 0.05
    """Share of the clips held out, at least one when above 0; chosen by a digest of the text, so that the clips of a
    text are all on one side."""
    seed: int = 0
    """Salt of every digest: the split, the shard of a clip, and its place in the shard."""


class TrainingConfig(ConfigSection):
    """Optimisation, schedule and bookkeeping."""

    batch_size: PositiveInt = 16
    """B: clips per step in the bucket of the most frames."""
    max_batch_share: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Most of an epoch that one step may take; a larger batch_size is lowered to it, and the run says so."""
    constant_frames_per_batch: bool = True
    """Give buckets of fewer frames more clips per step, so that every step sees about as many frames."""
    gradient_accumulation_steps: PositiveInt = 1
    """Micro-batches per update; each divides the bucket's batch. Several devices share them evenly."""
    strategy: Literal["auto", "single", "mirrored", "multiworker"] = "auto"
    """Devices that share every step: `single` one, `mirrored` all GPUs of this machine, `multiworker` those of the
    workers in TF_CONFIG; `auto` takes the last that applies (docs/beyond-one-machine.md)."""
    mixed_precision: Literal["float32", "bfloat16"] = "float32"
    """Type of activations; weights, losses and the optimizer stay float32."""
    steps: PositiveInt = 1000
    """Updates in the whole run, the resumed ones included; the schedule ends here."""
    epochs: PositiveInt | Literal["auto"] | None = None
    """Passes over the training clips; when set, it decides `steps`. `auto`: 500 passes, but at least 20,000 steps and
    at most 500,000; of size tiny 40 passes, at least 1,500 steps and at most 20,000."""
    patience: PositiveInt | None = 10
    """Validations in a row without a new best flow loss (of a vocoder: a new best loss) after which the final decay
    begins, and the run ends with it; null: never."""
    learning_rate: PositiveFloat = 1e-3
    """Peak, reached after warm-up."""
    learning_rate_batch_size: PositiveInt | None = None
    """The batch_size that learning_rate is meant for; at another one the peak is multiplied by the square root of the
    ratio (Malladi et al., 2205.10287). null: it is not."""
    warmup_fraction: Fraction = 0.03
    """Share of the steps, the first ones, in which the rate rises linearly from 0."""
    decay_fraction: Fraction = 0.2
    """Share of the steps after warm-up, the last ones, in which the rate decays by a cosine. Before them it is
    constant, so that a run that is made longer shows no trace of its first end. 1 decays all the way."""
    final_learning_rate_share: Fraction = 0.05
    """The decay ends at this share of the peak."""
    optimizer: Literal["adamw", "muon"] = "muon"
    """`muon` orthogonalises the momentum of the matrices inside the networks; all other weights are AdamW's."""
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


class Config(ConfigSection):
    """The whole configuration of features and training."""

    data: DataConfig = DataConfig()
    audio: AudioConfig = AudioConfig()
    text: TextConfig = TextConfig()
    shapes: ShapesConfig = ShapesConfig()
    shards: ShardsConfig = ShardsConfig()
    split: SplitConfig = SplitConfig()
    model: ModelConfig
    vocoder: VocoderConfig | None = None
    """Set: the run trains a vocoder on a cache of crops, instead of the acoustic model."""
    training: TrainingConfig = TrainingConfig()

    @property
    def model_name(self) -> str:
        """Name of what a run trains: the size of the acoustic model, or `vocoder`."""
        return self.model.size if self.vocoder is None else "vocoder"
