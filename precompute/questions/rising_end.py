"""The recording of a statement as that of a question: its pitch rises at the end.

Periods are moved together or apart and overlap, as Moulines and Charpentier, "Pitch-synchronous waveform processing
techniques for text-to-speech synthesis using diphones" (Speech Communication 9, 1990), have it.

Letters: S samples, T frames, P periods.
"""

import numpy as np

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.audio.pitch import final_pitch, track_pitch

_SPAN_SECONDS = 0.45
"""The rise: the last syllable or two."""
_RISE = 5.0
"""Semitones from the middle of the recording to its end."""
_LEAST_RISE = 2.0
"""Semitones that must be found in the result."""
_LEAST_VOICED = 0.6
"""Share of these seconds that must be voiced."""
_JUMP = 0.25
"""Largest change of the log pitch between two frames: beyond it the voice creaks, or its pitch was not found."""
_LARGEST_FACTOR = 2.4
"""Largest ratio of new and old pitch: beyond it the periods sound like another voice's."""
_UNVOICED_SECONDS = 0.005
"""Length of the periods where there is no pitch."""
_FADE_SECONDS = 0.01


def ask(samples: np.ndarray, profile: MelProfile) -> np.ndarray | None:
    """Raise the pitch at the end of a statement, float32[S]; None if it ends in creak or whisper, or is too short."""
    frames, seconds = profile.frames(len(samples)), profile.seconds(1)
    hertz = track_pitch(samples, profile, frames)
    raised = _raised(hertz, seconds)
    if raised is None:
        return None
    asked = _with_pitch(samples, hertz, raised, profile)
    end = final_pitch(track_pitch(asked, profile, frames), seconds)
    return asked if end is not None and end >= _LEAST_RISE else None


def _raised(hertz: np.ndarray, seconds: float) -> np.ndarray | None:
    """The pitch of a question, float[T] like `hertz`, which has that of the statement; seconds: of a frame."""
    if final_pitch(hertz, seconds) is None:
        return None
    voiced = np.flatnonzero(hertz)
    span = voiced[voiced >= voiced[-1] - _SPAN_SECONDS / seconds]
    first, last = span[0], span[-1]
    steps = np.abs(np.diff(np.log(hertz[span])))[np.diff(span) == 1]
    if len(span) < _LEAST_VOICED * _SPAN_SECONDS / seconds or (steps > _JUMP).any():
        return None
    target = np.median(hertz[voiced]) * 2.0 ** (_RISE / 12.0)
    raised = hertz.astype(np.float64)
    raised[span] = np.exp(np.interp(span, [first, last], np.log([hertz[first], target])))
    factor = np.abs(np.log(raised[span] / hertz[span])).max()
    return raised if factor < np.log(_LARGEST_FACTOR) else None


def _with_pitch(samples: np.ndarray, hertz: np.ndarray, raised: np.ndarray, profile: MelProfile) -> np.ndarray:
    """The samples, float32[S], with the pitch `raised` for `hertz`, float[T] each, where these differ."""
    rate, hop = profile.sample_rate, profile.hop_samples
    changed = np.flatnonzero(raised != hertz)

    def period(pitch: np.ndarray, place: float) -> float:
        here = pitch[min(int(place // hop), len(pitch) - 1)]
        return rate / here if here else _UNVOICED_SECONDS * rate

    marks, place = list[int](), changed[0] * hop
    upright = samples if samples.max() > -samples.min() else -samples
    while place < (changed[-1] + 1) * hop:
        quarter = round(period(hertz, place) / 4)
        place = max(place - quarter, 0) + int(np.argmax(upright[max(place - quarter, 0) : place + quarter + 1]))
        marks.append(place)
        place += round(period(hertz, place))
    at = np.array(marks)
    halves = np.minimum(np.diff(at[:-1]), np.diff(at[1:]))  # of the periods between the first and the last
    total, weight, moved = np.zeros(len(samples)), np.full(len(samples), 1e-3), float(at[1])
    while moved < at[-2]:
        nearest = int(np.abs(at[1:-1] - moved).argmin())
        half, middle, target = halves[nearest], at[1 + nearest], round(moved)
        window = np.hanning(2 * half + 1)
        total[target - half : target + half + 1] += window * samples[middle - half : middle + half + 1]
        weight[target - half : target + half + 1] += window
        moved += period(raised, moved)
    place_of, fade = np.arange(len(samples)), _FADE_SECONDS * rate
    share = np.clip(np.minimum(place_of - at[1], at[-2] - place_of) / fade, 0.0, 1.0)
    return np.asarray((1.0 - share) * samples + share * total / weight, np.float32)
