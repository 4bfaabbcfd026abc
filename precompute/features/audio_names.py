"""The wav that a record names, and what is refused: audio that TensorFlow's decoder would not give as stage 1 does."""

import shlex

from xtts.precompute.corpus.clip_audio import check_unchanged
from xtts.precompute.corpus.feature_extractor import FeatureExtractor
from xtts.shared.audio.decode import AudioProblem
from xtts.shared.audio.wav_header import OtherFormat, read_wav_header
from xtts.shared.cache.clip_index import IndexRow
from xtts.shared.cache.records import AudioName
from xtts.shared.errors import LockstepError

WITH_MELS = "build a cache with mels: the same command without --index-only"


def audio_name(row: IndexRow, extractor: FeatureExtractor) -> AudioName:
    """The name of a clip's wav, from its header alone.

    Raises `AudioProblem` for a broken file, `LockstepError` with the command that converts it for another format.
    """
    path, rate = extractor.path(row.clip), extractor.profile.sample_rate
    samples = round(row.seconds * rate)
    try:
        header = read_wav_header(path)
        found = f"{header.channels} channels at {header.rate} Hz"
    except OtherFormat as problem:
        header, found = None, str(problem)
    except OSError as error:
        raise AudioProblem("unreadable audio", error.strerror or "") from None
    finally:
        check_unchanged(row, extractor)
    if header is None or (header.rate, header.channels) != (rate, 1):
        source, target = shlex.quote(path.name), shlex.quote(f"{path.stem}.new.wav")
        convert = f"ffmpeg -i {source} -ac 1 -ar {rate} -c:a pcm_s16le {target}"
        raise LockstepError(
            str(path), found=found, expected=f"16-bit PCM wav of one channel at {rate} Hz, as --index-only needs",
            fix=f"convert it and all like it: {convert}; or {WITH_MELS}",
        )  # fmt: skip
    if header.samples != samples:
        raise AudioProblem("unreadable audio", f"{header.samples} samples, {samples} were found before")
    return AudioName(source=row.clip.source, samples=samples, corpus=row.clip.corpus)
