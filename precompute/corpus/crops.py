"""Crops: every clip cut into segments of one length, which train a vocoder."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from xtts.precompute.corpus.clip_audio import audio_header
from xtts.precompute.corpus.record_recipe import AudioFiles, resampling_rate
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.mel_profiles import MelProfile, mel_profile
from xtts.shared.cache.clip_index import Clip, clip_table, clips_of
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError


def cut_clips(clips: pa.Table, roots: Mapping[str, Path], config: Config) -> pa.Table:
    """Cut the clips into crops of `audio.crop_frames` frames, called ID/0, ID/1, ...

    They lie side by side, but for the last, which ends with its clip, and have no text or language, which no vocoder
    reads. A clip with unreadable audio keeps its id: the scan reports why. Raises a `LockstepError` if the settings
    allow no crops.
    """
    profile, filters = mel_profile(config.audio.profile), config.data.filters
    if not config.shapes.pad_to_fixed_length:
        raise LockstepError("shapes.pad_to_fixed_length", found="false with audio.crop_frames", expected="true")
    if filters.min_letters_per_second or filters.max_letters_per_second:
        found = "set with audio.crop_frames, where no text is read"
        raise LockstepError("data.filters, letters per second", found=found, expected="null")
    if profile.centered:
        raise LockstepError(
            "audio.crop_frames", found=f"the profile {profile.name}, whose frames reach from one crop into the next",
            expected="audio.profile hifigan or bigvgan24",
        )
    with TemporaryDirectory() as unpacked:
        files = AudioFiles(roots=roots, unpacked=Path(unpacked))
        return clip_table([crop for clip in clips_of(clips) for crop in _crops(clip, files, profile, config)])


def _crops(clip: Clip, files: AudioFiles, profile: MelProfile, config: Config) -> list[Clip]:
    frames, clip = config.audio.crop_frames, replace(clip, text="", normalised=True, language="")
    assert frames is not None
    first = replace(clip, id=f"{clip.id}/0")
    rate = resampling_rate(first, config)
    try:
        header = audio_header(files.audio(clip), clip)
    except (AudioProblem, OSError):
        return [clip]
    if clip.duplicate:
        return [clip]
    length = profile.frames(header.samples_at(rate))
    if length <= frames:
        return [first]
    seconds = profile.hop_samples / rate  # of a frame, in the recording
    duration = (frames + 0.5) * seconds  # no frame is lost to rounding
    starts = [*range(0, length - frames, frames), length - frames]
    return [
        replace(clip, id=f"{clip.id}/{i}", start=(clip.start or 0.0) + start * seconds, duration=duration)
        for i, start in enumerate(starts)
    ]
