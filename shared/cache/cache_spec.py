"""`cache.json`: the contract between the stages. Stage 2 takes shapes, types and files from it alone."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from xtts.shared.audio.mel_profiles import MEL_PROFILES, MelProfile, mel_profile
from xtts.shared.cache.bucket_shapes import MAX_FRAMES, MAX_TOKENS
from xtts.shared.cache.clip_index import ShardId
from xtts.shared.errors import LockstepError, build_command, repair_command
from xtts.shared.feature_settings import check_features

FORMAT_VERSION: Literal[16] = 16
SPEC_FILE, INDEX_FILE, TOKENIZER_FILE, VOICES_FILE = "cache.json", "index.parquet", "tokenizer.json", "voices.npy"
"""Files of a cache; the names of all but the first contain a digest: see `with_digest`."""
Split = Literal["train", "validation"]
SPLITS: tuple[Split, ...] = ("train", "validation")

MOST_WEIGHT = 100.0
Count = Annotated[int, Field(ge=0, le=2**40)]
Weight = Annotated[float, Field(gt=0.0, le=MOST_WEIGHT, allow_inf_nan=False)]
"""Sampling weight of a corpus: how often training draws its clips in an epoch."""
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

CORPUS_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""Pattern of the name of a corpus, which file names contain."""
_DIGITS = 12
_DIGEST_PART = rf"(-[0-9a-f]{{{_DIGITS}}})"
SHARD_PATTERN = (
    rf"^(train|validation)/bucket-\d{{2}}/shard-({CORPUS_NAME}-)?\d{{5,7}}-of-\d{{5,7}}{_DIGEST_PART}\.tfrecord$"
)
_SHARD_FILE = re.compile(r"(train|validation)/bucket-(\d\d)/shard-(?:(.+)-)?(\d{5,7})-of-(\d{5,7})[-.].*")
"""(split, bucket, corpus, shard, count of shards) of a file with or without digest."""
INDEX_PATTERN, TOKENIZER_PATTERN = rf"^index{_DIGEST_PART}\.parquet$", rf"^tokenizer{_DIGEST_PART}\.json$"
VOICES_PATTERN = rf"^voices{_DIGEST_PART}\.npy$"
_OF_A_BUILD = "|".join((r"(train|validation)/bucket-\d{2}/shard-[^/]+\.tfrecord$", INDEX_PATTERN, TOKENIZER_PATTERN,
                       VOICES_PATTERN))


class _SpecPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Shard(_SpecPart):
    """One TFRecord file."""

    file: Annotated[str, Field(pattern=SHARD_PATTERN)]
    """Path inside the cache, always with forward slashes."""
    records: Count
    bytes: Count
    sha256: Digest
    settings: Digest
    """Digest of everything but the clips that decided its bytes."""


class Bucket(_SpecPart):
    """One shape (L, T), and the shards of both splits that hold it."""

    tokens: Annotated[int, Field(gt=0, le=MAX_TOKENS)]
    """L: tokens a record is padded to."""
    frames: Annotated[int, Field(gt=0, le=MAX_FRAMES)]
    """T: frames a record is padded to."""
    train: list[Shard]
    validation: list[Shard]

    def shards(self, split: Split) -> list[Shard]:
        """Shards of one split, in order."""
        return self.train if split == "train" else self.validation

    def clips(self, split: Split) -> int:
        """Records in one split."""
        return sum(shard.records for shard in self.shards(split))

    def corpora(self) -> dict[str, list[int]]:
        """Corpus to the positions of its shards in `train`; an empty name for the corpus without one."""
        positions: dict[str, list[int]] = {}
        for i, shard in enumerate(self.train):
            positions.setdefault(shard_id_of(shard.file).corpus, []).append(i)
        return positions


class Voices(_SpecPart):
    """The file with the speakers' voices, float16[S, 7, 4, 296]: those of `embed_voices` of each speaker."""

    file: Annotated[str, Field(pattern=VOICES_PATTERN)]
    sha256: Digest
    source: Digest
    """Digest of what they were computed from."""


class Statistics(_SpecPart):
    """Figures of the kept clips; those of the mel are over the true frames of the training split."""

    clips: Count
    rejected: Count
    seconds: float
    frames: Count
    tokens: Count
    mel_mean: float
    mel_deviation: float
    fill: float
    """True frames / stored frames."""


class CacheSpec(_SpecPart):
    """The contents of `cache.json` without its own digest."""

    format_version: Literal[16]
    fingerprint: Digest
    """Digest of `features`: equal fingerprints mean equal settings."""
    features: dict[str, dict[str, Any]]
    """The resolved sections of the configuration that decide the bytes of a cache."""
    profile: dict[str, Any]
    """The mel profile's numbers, for readers without this package."""
    mel_dtype: Literal["float16", "float32"]
    mel_channels: Annotated[int, Field(gt=0, le=4096)]
    fixed_length: bool
    """False: records are unpadded (the dynamic baseline)."""
    vocabulary: Annotated[int, Field(gt=0, le=2**24)]
    """Count of token ids."""
    tokenizer_sha256: Digest
    index_sha256: Digest
    index_rows: Count
    index_file: Annotated[str, Field(pattern=INDEX_PATTERN)]
    tokenizer_file: Annotated[str, Field(pattern=TOKENIZER_PATTERN)]
    voices: Voices | None
    """Of a cache for a model that imitates recordings (`model.voice_from: recording`)."""
    speakers: list[str]
    languages: Annotated[list[str], Field(min_length=1, max_length=1000)]
    """ISO codes; the position of a language is its id."""
    weights: dict[str, Weight]
    """Corpus to its sampling weight, unless that is 1."""
    buckets: Annotated[list[Bucket], Field(max_length=100)]
    statistics: Statistics
    feature_version: Count
    """`FEATURE_VERSION` of the program that computed the mels."""
    versions: dict[str, str]
    mel_check: Digest
    """Digest of the mel of a test signal: a machine with a different digest would write different features."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Refuse what the types allow but no build writes."""
        check_features(self.features)
        profile = MEL_PROFILES.get(str(self.profile.get("name")))
        if profile is None or self.profile != asdict(profile) or self.mel_channels != profile.mel_channels:
            raise ValueError(f"mel profile {self.profile.get('name')!r} with numbers that this version does not have")
        return self

    @property
    def identity(self) -> str:
        """Digest of what every training depends on, shard digests included; not of file names, times or versions."""
        names = {"index_sha256", "index_file", "tokenizer_file", "voices"}
        unrelated = names | {"versions", "feature_version", "mel_check"}
        fields = self.model_dump(mode="json", exclude=unrelated)
        for shard in (shard for bucket in fields["buckets"] for split in SPLITS for shard in bucket[split]):
            shard["file"] = without_digest(shard["file"])
            del shard["settings"]
        return digest_of(fields)

    @property
    def holds_crops(self) -> bool:
        """Whether it is a cache of crops (`audio.crop_frames`), which train a vocoder."""
        return self.features["audio"]["crop_frames"] is not None

    @property
    def text_language(self) -> str:
        """ISO 639 code of the clips that do not name theirs."""
        return str(self.features["text"]["language"])

    @property
    def mel_profile(self) -> MelProfile:
        """The profile by name."""
        return mel_profile(str(self.profile["name"]))

    def epoch_clips(self, bucket: Bucket, positions: Collection[int] | None = None) -> int:
        """Clips that training draws in an epoch from a bucket, or from those shards of a corpus at `positions`."""
        if positions is None:
            return sum(self.epoch_clips(bucket, positions) for positions in bucket.corpora().values())
        shards = [bucket.train[i] for i in positions]
        weight = self.weights.get(shard_id_of(shards[0].file).corpus, 1.0)
        return max(1, round(weight * sum(shard.records for shard in shards)))

    def shards(self, *splits: Split) -> list[Shard]:
        """Every shard of these splits, or of both if none is named, bucket by bucket."""
        return [shard for bucket in self.buckets for split in splits or SPLITS for shard in bucket.shards(split)]

    @property
    def files(self) -> set[str]:
        """Names of all files but `cache.json`."""
        return {*self.small_files, *(shard.file for shard in self.shards())}

    @property
    def small_files(self) -> dict[str, str]:
        """All files but `cache.json` and the shards, with their SHA-256."""
        voices = {self.voices.file: self.voices.sha256} if self.voices else {}
        return {self.index_file: self.index_sha256, self.tokenizer_file: self.tokenizer_sha256} | voices


def shard_files(spec: CacheSpec) -> dict[ShardId, str]:
    """Map a shard, as rows of the index name it, to its file."""
    return {shard_id_of(shard.file): shard.file for shard in spec.shards()}


def digest_of(value: Mapping[str, object]) -> str:
    """SHA-256 of the canonical JSON of `value`: the fingerprint of settings and specs."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def spec_bytes(spec: CacheSpec) -> bytes:
    """The bytes of `cache.json`: the spec and, last, the digest that shows an edit."""
    fields = spec.model_dump(mode="json")
    return (json.dumps({**fields, "sha256": digest_of(fields)}, indent=1, ensure_ascii=False) + "\n").encode()


def load_spec(cache: Path, named: str | None = None) -> CacheSpec:
    """Read and check `cache.json`; raises `LockstepError` with the command that fixes it. named: it in messages."""
    path, name = cache / SPEC_FILE, f"{named}/{SPEC_FILE}" if named else str(cache / SPEC_FILE)
    rebuild = build_command(named or cache, fresh=True)
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        found = "no finished cache" if cache.is_dir() else "no such folder"
        build = build_command(cache, corpus="<corpus>", config="<size>")
        raise LockstepError(name, found=found, expected="a cache", fix=build) from None
    except (OSError, ValueError, RecursionError) as error:
        raise LockstepError(name, found=f"cannot be read ({error})", fix=rebuild, exit_code=1) from None
    if not isinstance(fields, dict) or fields.get("format_version") != FORMAT_VERSION:
        version = fields.get("format_version") if isinstance(fields, dict) else None
        raise LockstepError(
            name, found=f"format version {version!r}", expected=str(FORMAT_VERSION), fix=rebuild, exit_code=1
        )
    stated = fields.pop("sha256", None)
    if stated != digest_of(fields):
        raise LockstepError(name, found="edited after it was written (digest differs)", fix=rebuild, exit_code=1)
    try:
        return CacheSpec.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        location = f"{name} {'.'.join(map(str, first['loc']))}"
        raise LockstepError(location, found=str(first["msg"]).lower(), fix=rebuild, exit_code=1) from None


def is_of_a_build(file: str) -> bool:
    """Whether a build gave a file this name; other files in a cache stay."""
    return bool(re.match(_OF_A_BUILD, file))


def replaced_files(cache: Path, spec: CacheSpec) -> list[Path]:
    """Files of builds in a folder that its `cache.json` does not, or no longer, list; partly copied ones too."""
    listed, paths = spec.files, sorted(cache.rglob("*"))
    names = [path.relative_to(cache).as_posix().removesuffix(".part") for path in paths]
    return [path for path, name in zip(paths, names, strict=True) if name not in listed and is_of_a_build(name)]


def with_digest(file: str, sha256: str) -> str:
    """The name of a file with this content: changed content gets a new name, so that no file is ever overwritten."""
    name, _, ending = file.rpartition(".")
    return f"{name}-{sha256[:_DIGITS]}.{ending}"


def without_digest(file: str) -> str:
    """Undo `with_digest`; a name without a digest stays as it is."""
    return re.sub(rf"{_DIGEST_PART}(?=\.[a-z]+$)", "", file)


def shard_file(shard: ShardId, shards: int) -> str:
    """Path of a shard inside the cache, without digest; shards: count of those of its split, bucket and corpus."""
    corpus = f"{shard.corpus}-" if shard.corpus else ""
    return f"{shard.split}/bucket-{shard.bucket:02d}/shard-{corpus}{shard.shard:05d}-of-{shards:05d}.tfrecord"


def shard_id_of(file: str) -> ShardId:
    """The shard of a path inside the cache; the opposite of `shard_file`."""
    split, bucket, corpus, shard, _ = _parts(file)
    return ShardId(split, int(bucket), int(shard), corpus)


def shard_count(file: str) -> int:
    """The 4 of train/bucket-00/shard-VCTK-00003-of-00004.tfrecord."""
    return int(_parts(file)[-1])


def _parts(file: str) -> tuple[str, ...]:
    match = _SHARD_FILE.fullmatch(file)
    assert match, file
    return match.groups("")


def check_voices(spec: CacheSpec, cache: object) -> Voices:
    """Return the voices of a cache, for messages called `cache`; `LockstepError` if it has none."""
    if spec.voices is None:
        raise LockstepError(
            str(cache), found="no embeddings of its speakers", expected="those that a model of recorded voices needs",
            fix="build it again with --set model.voice_from=recording",
        )
    return spec.voices


def load_voices(cache: Path, spec: CacheSpec) -> np.ndarray:
    """Read the speakers' voices, float16[S, 7, 4, 296]; `LockstepError` if the cache has none, or damaged ones."""
    from xtts.shared.audio.speaker_encoder import VOICE_SHAPE  # resampling, which most commands do not need

    path = cache / check_voices(spec, cache).file
    wanted = (max(len(spec.speakers), 1), *VOICE_SHAPE)
    try:
        voices = np.asarray(np.load(path))
        found = f"{voices.dtype} of shape {voices.shape}"
        if voices.dtype == np.float16 and voices.shape == wanted:
            return voices
    except (OSError, ValueError, EOFError) as error:
        found = f"cannot be read ({error})"
    raise LockstepError(
        str(path), found=found, expected=f"float16 of shape {wanted}", fix=repair_command(cache), exit_code=1
    )
