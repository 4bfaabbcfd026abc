"""Cutting speech into clips at its pauses: functions of times alone, in seconds from the start of a recording."""

from collections.abc import Callable, Sequence

from xtts.shared.audio.recogniser import Interval

SHORTEST, LONGEST = 2.0, 12.0
"""Seconds of a clip."""
_EDGE = 0.1
"""Seconds of silence kept before and after a clip's speech; half the pause to the next clip's, if that is less."""
_LONGEST_SPEECH = LONGEST - 2 * _EDGE
_ENDING_PAUSE = 0.5
"""A pause of this many seconds ends a clip, if enough speech is on both sides."""
_LONGEST_PAUSE = 1.0
"""No clip has a longer pause inside, in seconds."""


def cut(
    speech: Sequence[Interval], seconds: float, words: Callable[[Interval], Sequence[Interval]]
) -> tuple[list[Interval], float]:
    """Cut the speech of a recording of so many seconds; return the clips, and the seconds of speech in none of them.

    speech: intervals in ascending order, words: returns the words in an interval; it is called for those that are too
    long. Speech between two long pauses that is too short for a clip, or too long and without words, is dropped.
    """
    groups, waiting = list[list[Interval]](), _between_long_pauses([p for one in speech for p in _parts(one, words)])
    while waiting:
        group = waiting.pop()
        position = _best_cut(group)
        if position is None:
            groups.append(group)
        else:
            waiting += [group[:position], group[position:]]
    spans = sorted((group[0][0], group[-1][1]) for group in groups)
    bounds = [-seconds, *(time for span in spans for time in span), 2 * seconds]
    clips, left_out = list[Interval](), 0.0
    for i, (start, end) in enumerate(spans):
        before, after = ((bounds[j + 1] - bounds[j]) / 2 for j in (2 * i, 2 * i + 2))
        clip = max(0.0, start - min(_EDGE, before)), min(seconds, end + min(_EDGE, after))
        if SHORTEST <= clip[1] - clip[0] <= LONGEST:
            clips.append(clip)
        else:
            left_out += end - start
    return clips, left_out


def _parts(interval: Interval, words: Callable[[Interval], Sequence[Interval]]) -> list[Interval]:
    """Return an interval, or its words if it is too long for a clip; the first and the last reach to its ends."""
    start, end = interval
    spans = sorted(words(interval)) if end - start > _LONGEST_SPEECH else []
    inner = [min(max(first, start), end) for first, _ in spans[1:]]
    outer = [min(max(last, start), end) for _, last in spans[:-1]]
    return list(zip([start, *inner], [*outer, end], strict=True))


def _between_long_pauses(parts: Sequence[Interval]) -> list[list[Interval]]:
    groups = list[list[Interval]]()
    for part in parts:
        if groups and part[0] - groups[-1][-1][1] <= _LONGEST_PAUSE:
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _best_cut(group: Sequence[Interval]) -> int | None:
    """Return the position of the part after the best pause to cut at; None if the group should stay whole.

    It is the longest pause, of equal ones the nearest to the middle, with enough speech on both sides if possible.
    """
    start, end = group[0][0], group[-1][1]
    pauses = {i: round(group[i][0] - group[i - 1][1], 3) for i in range(1, len(group))}
    enough = [i for i in pauses if min(group[i - 1][1] - start, end - group[i][0]) >= SHORTEST]
    if end - start <= _LONGEST_SPEECH:
        choices = [i for i in enough if pauses[i] >= _ENDING_PAUSE]
    else:
        choices = enough or list(pauses)
    return max(choices, key=lambda i: (pauses[i], -abs(group[i][0] - (start + end) / 2)), default=None)
