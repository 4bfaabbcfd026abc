"""Recipe of a record from a clip: its audio, samples and tokens; small enough to send with every task."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from xtts.precompute.archives.parquet_files import SUFFIX, unpacked_row
from xtts.precompute.archives.tar_files import read_member
from xtts.shared.audio.decode import AudioSource, Recording
from xtts.shared.audio.mel_profiles import MelProfile, mel_profile
from xtts.shared.audio.trim_and_loudness import condition, refuse_silence
from xtts.shared.cache.clip_index import Clip, clip_of_crop
from xtts.shared.config import Config
from xtts.shared.feature_settings import stored_features
from xtts.shared.text.tokenizer import Tokenizer, Tokens


@dataclass(frozen=True, kw_only=True)
class AudioFiles:
    """The files with the audio of the clips."""

    roots: Mapping[str, Path]
    """Corpus to its folder; sources are relative to it."""
    unpacked: Path | None = None
    """Folder for audio unpacked from Parquet files, while a command needs it."""

    def audio(self, clip: Clip) -> AudioSource:
        """The path of a clip's audio, or its bytes.

        Raises `AudioProblem` if an archive does not hold it, `LockstepError` if there is no space to unpack it.
        """
        path, (archive, member) = self.path(clip), clip.archive
        if not archive or path != self.roots[clip.corpus] / archive:
            return path
        if not path.name.endswith(SUFFIX):
            return read_member(path, member)
        assert self.unpacked is not None, "this command reads no audio"
        return unpacked_row(path, member, self.unpacked)

    def path(self, clip: Clip) -> Path:
        """The path of a clip's audio file, or of the archive that holds it."""
        root, archive = self.roots[clip.corpus], clip.archive[0]
        return root / archive if archive and (root / archive).is_file() else root / clip.source


@dataclass(frozen=True, kw_only=True)
class RecordRecipe(AudioFiles):
    """Settings, tokenizer and audio files that make a record of a clip."""

    config: Config
    tokenizer: Tokenizer
    mel_check: str = ""
    """The mel check that a worker must compute before it computes mels; empty until a build has decided."""

    @cached_property
    def features(self) -> dict[str, dict[str, object]]:
        """The settings that decide the bytes of a cache, as it stores them."""
        return stored_features(self.config)

    @property
    def profile(self) -> MelProfile:
        """The profile of the mels."""
        return mel_profile(self.config.audio.profile)

    def encode(self, clip: Clip) -> Tokens:
        """The tokens of a clip's text, in its language."""
        return self.tokenizer.encode(clip.text, clip.language or self.config.text.language, f"clip {clip.id}")

    def frames(self, samples: int) -> int:
        """T of the stored mel of S samples: that of a clip has silent edges, that of a crop has none."""
        crop = self.config.audio.crop_frames
        return min(self.profile.frames(samples), crop) if crop else self.profile.clip_frames(samples)

    def samples(self, recording: Recording, rate: int) -> np.ndarray:
        """The samples of a mel, float32[S]: mono, resampled to `rate` Hz, trimmed and scaled as configured."""
        audio = self.config.audio
        refuse_silence(recording.mono)
        return condition(
            recording.at(rate), rate=rate, trim_silence_db=audio.trim_silence_db, loudness_lufs=audio.loudness_lufs
        )


def resampling_rate(clip: Clip, config: Config) -> int:
    """Return the rate in Hz to which a clip is resampled: the profile's, or another to move the pitch of a crop.

    Crops of a clip share the factor, which is drawn from the clip's id.
    """
    rate, largest = mel_profile(config.audio.profile).sample_rate, config.audio.crop_pitch
    if not largest:
        return rate
    digest = hashlib.sha256(f"{clip.corpus}\n{clip_of_crop(clip.id)}".encode()).digest()
    if digest[0] % 2:
        return rate
    exponent = 2.0 * int.from_bytes(digest[1:5]) / 2**32 - 1.0
    return round(rate * float((1.0 + largest) ** exponent))
