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
    """Limits beyond which a build rejects a clip, with the reason in its row of the index; null: no limit."""

    min_loudness_db: Annotated[float, Field(ge=-120.0, le=0.0)] | None = None
    """Lowest RMS of the speech, dBFS, over the 20 ms frames at most 10 dB below the clip's mean power."""
    min_snr_db: Annotated[float, Field(ge=0.0, le=120.0)] | None = None
    """Lowest signal-to-noise ratio, dB: the speech, measured likewise, over the noise floor, the 10th percentile of the
    power of 20 ms frames without digital silence."""
    max_clipped_share: Fraction | None = None
    """Largest share of samples in runs of three or more at full scale."""
    max_edge_silence_seconds: NonNegativeFloat | None = None
    """Longest silence at the start or end, seconds: more than 30 dB below the speech, before any trimming."""
    min_letters_per_second: PositiveFloat | None = None
    """Slowest reading, letters of the text / seconds of the clip: fewer suggest missing text."""
    max_letters_per_second: PositiveFloat | None = None
    """Fastest reading, letters of the text / seconds of the clip: more suggest missing speech."""
    min_sample_rate: PositiveInt | None = None
    """Lowest sample rate of a file, Hz: it has no sound above half of its rate."""


Doubt = Literal[
    "encoding",
    "question mark",
    "control character",
    "entity",
    "language tag",
    "tag",
    "time",
    "escape",
    "phonemes",
    "no text",
]
"""Kinds of doubt about a text, for which its clip is rejected."""


class DataConfig(ConfigSection):
    """Choice of the clips."""

    filters: FilterConfig = FilterConfig()
    accept: list[Doubt] = Field(default_factory=list)
    """Kinds of doubtful texts to keep unchanged, such as `[tag]`: see docs/corpus.md#doubtful-texts."""


class AudioConfig(ConfigSection):
    """Settings from samples to mel. Any change rebuilds the mels."""

    profile: str = "hifigan"
    """Mel profile, see shared/audio/mel_profiles.py."""
    channel: Annotated[int, Field(ge=0)] | None = None
    """Channel to take of recordings with several, 0 the left one; null: the mean of those with sound."""
    trim_silence_db: PositiveFloat | None = None
    """Cut the ends of a clip that are quieter than its loudest 10 ms by more than this many dB, less 50 ms."""
    loudness_lufs: Annotated[float, Field(ge=-70.0, le=0.0)] | None = None
    """Normalise every clip to this integrated loudness (ITU-R BS.1770), or to less if the peak would clip."""
    crop_frames: Annotated[int, Field(ge=32, le=1024)] | None = None
    """Cut every clip into crops of this many frames, whose records also hold samples and pitch, to train a vocoder.
    null: whole clips."""
    crop_pitch: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Play half of the clips faster or slower before they are cut into crops: pitch and formants are multiplied by a
    factor between 1 / (1 + crop_pitch) and 1 + crop_pitch, so that a vocoder learns more voices. 0: none."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.crop_frames and (self.trim_silence_db is not None or self.loudness_lufs is not None):
            raise ValueError("crop_frames cuts unchanged recordings: trim_silence_db and loudness_lufs must be null")
        if self.crop_pitch and not self.crop_frames:
            raise ValueError("crop_pitch is for a vocoder's crops: set crop_frames, too")
        return self


class TextConfig(ConfigSection):
    """Settings from transcript to tokens."""

    tokenizer: Literal["auto", "characters", "phonemes", "bpe"] = "characters"
    """Symbol table, see shared/text/tokenizer.py; `phonemes` is IPA by the language's voice of espeak-ng, extra
    `phonemes` (`en` is American English); `bpe` is learned from the corpus by Hugging Face tokenizers, extra `bpe`, and
    stays the same when clips are added or removed. `auto` is decided when a cache is built: what the cache already has,
    else `phonemes` where the extra is installed and espeak-ng has a voice, else `characters`.
    """
    language: Annotated[str, AfterValidator(lambda code: find_language(code).code)] = "en"
    """ISO 639 code of the corpus' language, such as `de`, `fa` or `cmn`: its alphabet is learned from the corpus, `en`
    has a to z. Mandarin (`cmn`) is read as pinyin, extra `mandarin`, Japanese (`ja`) as kana, extra `japanese`."""
    max_unknown_share: Fraction = 0.001
    """Largest share of letters without a symbol, or in English with a lost accent; beyond it the build stops."""
    bpe_vocabulary: Annotated[int, Field(ge=64, le=65_536)] = 512
    """Largest number of ids of `bpe`, those of single characters included."""
    add_blank: bool = False
    """Put a blank token around every symbol (2n+1 tokens for n symbols)."""
    lexicon: Annotated[str | None, Field(exclude=True)] = None
    """File of pronunciations: on each line a word, a tab, and `[[phonemes]]` (of the tokenizer `phonemes`) or a
    respelling. Lower-case words match any case, others only as written. Caches, runs and exports store the words with
    the tokenizer, not the path."""
    expand_numbers: bool = True
    """Put numbers and abbreviations into words (shared/text/text_normalization.py), only in texts without a normalised
    column and in what xtts-synth speaks: in English and German by their context, in other languages dates, times,
    ordinals and percent."""


class ShapesConfig(ConfigSection):
    """The closed set of shapes."""

    pad_to_fixed_length: bool = True
    """Pad clips to the shapes; false stores them unpadded: the dynamic baseline, slow on purpose."""
    buckets: Annotated[int, Field(gt=0, le=100)] | Literal["auto"] = "auto"
    """Number of (tokens, frames) shapes, chosen from the lengths of the corpus; 1 is a single fixed shape. `auto`: 4,
    or one for every 20 clips where there are fewer than 80, since each is compiled."""
    max_text_length: PositiveInt | None = None
    """Longest text, tokens; clips with longer ones are rejected, never cut."""
    max_mel_frames: PositiveInt | None = None
    """Longest clip, frames; longer ones are rejected, never cut."""
    max_reject_fraction: Fraction = 0.05
    """Largest share of rejected clips; beyond it the build stops."""


class ShardsConfig(ConfigSection):
    """Files of the cache."""

    mel_dtype: Literal["float16", "float32"] = "float16"
    """Stored type of the log-mel; float16 halves the cache at an error below 0.004 in log-mel."""
    shard_mb: PositiveInt = 32
    """Target size of a shard, MiB; a corpus that fills few of them gets smaller ones, of at least 4 MiB."""


class SplitConfig(ConfigSection):
    """Split into training and held-out clips."""

    validation_fraction: Fraction = 0.05
    """Share of clips held out; if above 0, at least eight texts, or a fifth of them where there are fewer than forty.
    Chosen by a digest of the text, so that all clips of a text are on one side."""
    seed: int = 0
    """Salt of the digests that choose a clip's split, its shard and its position there."""


class TrainingConfig(ConfigSection):
    """Model, optimisation, schedule and bookkeeping."""

    kind: str = "acoustic"
    """Kind of model: `acoustic`, with the section `model`, or `vocoder`, on a cache of crops, with the section
    `vocoder`."""
    batch_size: PositiveInt = 16
    """B: clips per step in the bucket of the longest clips."""
    max_batch_share: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Largest share of an epoch in one step; a larger batch_size is lowered, and the run reports it."""
    constant_frames_per_batch: bool = True
    """Give buckets of shorter clips more of them per step, so that all steps have about as many frames."""
    gradient_accumulation_steps: PositiveInt = 1
    """Micro-batches per update; each divides the bucket's batch. Several devices share them evenly."""
    runtime: Literal["tensorflow", "jax"] = "tensorflow"
    """Runtime of the steps: `tensorflow`, or `jax` (extras `jax`, `jax-cuda`) on whatever single device JAX sees;
    TensorFlow then traces them on the CPU (docs/gpu.md)."""
    strategy: Literal["auto", "single", "mirrored", "multiworker"] = "auto"
    """Devices that share every step: `single` one, `mirrored` all GPUs of this machine, `multiworker` those of the
    workers in TF_CONFIG; `auto` takes the last that applies (docs/beyond-one-machine.md)."""
    mixed_precision: Literal["float32", "bfloat16"] = "float32"
    """Type of activations; weights, losses and the optimizer stay float32."""
    steps: PositiveInt = 1000
    """Updates in the whole run, including those before it was resumed; the schedule ends there."""
    epochs: PositiveInt | Literal["auto"] | None = None
    """Passes over the training clips; when set, it decides `steps`. `auto`: 500 passes, but at least 20,000 steps and
    at most 500,000; of size tiny 40 passes, at least 1,500 steps and at most 20,000, and where `--init-from` began the
    run 12 passes, at least 600 steps or 150 passes; of a vocoder 25,000 steps, and where `--init-from` began the run 8
    passes, at least 750 steps and at most 3,000."""
    patience: PositiveInt | None = 10
    """Validations in a row without a new best flow loss (of a vocoder: a new best loss) after which the final decay
    begins, and the run ends with it; null: never."""
    learning_rate: PositiveFloat = 1e-3
    """Peak, reached after warm-up."""
    learning_rate_batch_size: PositiveInt | None = None
    """The batch_size that learning_rate is meant for; with another, the peak is multiplied by the square root of the
    ratio (Malladi et al., 2205.10287); null: never."""
    warmup_fraction: Fraction = 0.03
    """Share of the steps, the first ones, in which the rate rises linearly from 0."""
    decay_fraction: Fraction = 0.2
    """Share of the steps after warm-up, the last ones, in which the rate decays by a cosine. Before them it is
    constant, so that an extended run shows no trace of its first end. 1: the rate decays throughout."""
    final_learning_rate_share: Fraction = 0.05
    """The decay ends at this share of the peak."""
    optimizer: Literal["adamw", "muon"] = "muon"
    """`muon` orthogonalises the momentum of the matrices inside the networks; all other weights are AdamW's."""
    weight_decay: NonNegativeFloat = 0.01
    """Decoupled; biases, norms and embeddings are exempt."""
    adam_beta1: Decay = 0.9
    """Decay of the first moment."""
    adam_beta2: Decay = 0.99
    """Decay of the second moment."""
    clip_norm: PositiveFloat = 1.0
    """Largest norm of the gradient: that of the duration predictor, and that of all other weights together."""
    ema_decay: Decay = 0.995
    """Decay of the averaged weights that validation and export use."""
    max_bad_steps: PositiveInt = 20
    """Consecutive non-finite updates (each one skipped) after which the run stops."""
    steps_per_call: PositiveInt = 50
    """Steps that run inside one graph call."""
    log_every: PositiveInt = 50
    """Steps between lines on the terminal; metrics.jsonl gets every step."""
    validate_every: PositiveInt = 500
    """Steps between validations."""
    validation_clips: PositiveInt | None = 1000
    """Largest number of held-out clips in a validation, the same every time, from all buckets in proportion; null: all.
    A million clips hold out 50,000, which take about as long as 1,500 steps of 32; LJSpeech holds out 655."""
    samples_every: PositiveInt | None = 500
    """Steps between samples: fixed validation sentences, spoken into TensorBoard, also at the end; null: never."""
    sample_sentences: PositiveInt = 8
    """Number of these sentences, which are spoken in one batch."""
    samples_heard: int = Field(default=2, ge=0)
    """Number of them with audio and pictures in TensorBoard."""
    checkpoint_every: PositiveInt = 500
    """Steps between checkpoints; the last step is always saved."""
    keep_checkpoints: PositiveInt = 3
    """Number of newest checkpoints to keep, beside the best by validation."""
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
    vocoder: VocoderConfig = VocoderConfig()
    training: TrainingConfig = TrainingConfig()
