"""Reading several corpora as one list of clips: ids stay unique, and every clip knows which corpus it is of."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from xtts.precompute.corpus.corpus_entries import CorpusEntry
from xtts.precompute.corpus.listing import Corpus, read_corpus
from xtts.precompute.corpus.plain_names import check_name
from xtts.shared.cache.clip_index import Clip
from xtts.shared.cache.file_names import CORPUS_NAME
from xtts.shared.errors import LockstepError

_FIX = "give it a name with --data NAME={}"


@dataclass(frozen=True, kw_only=True)
class Corpora:
    """The clips of one or more corpora: corpus by corpus, in the order of their names."""

    name: str
    """For messages."""
    roots: Mapping[str, Path]
    """Each corpus to its folder, absolute."""
    clips: list[Clip]
    weights: Mapping[str, float]
    """Corpora that training draws from more or less often than once an epoch."""
    notes: tuple[str, ...] = ()
    """Lines about what was left out."""


@dataclass(frozen=True, kw_only=True)
class _Named:
    """A corpus that was read."""

    entry: CorpusEntry
    label: str
    """Its name in the index and in shards; empty for the only one that was given none."""
    corpus: Corpus


def read_corpora(entries: Sequence[CorpusEntry], *, limit: int | None = None) -> Corpora:
    """Read one corpus as it is, or several whose clips are told apart by the names of their corpora.

    Clips, and speakers, of a corpus with a name are called NAME_ID. A corpus with a name but without speakers is one
    speaker of that name. The result does not depend on the order of the entries.

    Args:
        entries: What `parse_data` gives.
        limit: Keep so many clips: the first of every corpus, of each as many as of the others.

    Raises:
        LockstepError: A corpus cannot be read or is given twice, or two clips or speakers have one name.
    """
    _refuse_overlaps(entries)
    labels = _labels(entries)
    parts = [
        _Named(entry=entry, label=label, corpus=_read(entry, limit))
        for label, entry in sorted(zip(labels, entries, strict=True), key=lambda pair: pair[0])
    ]
    clips = [_named(part) for part in _first(parts, limit)]
    clips = _with_speakers(parts, clips)
    if len(parts) > 1:
        _refuse_shared_ids(parts, clips)
        _refuse_shared_speakers(parts, clips)
    names = [str(part.corpus.root if len(parts) == 1 else part.entry) for part in parts]
    return Corpora(
        name=", ".join(names[:3]) + ", ..." * (len(names) > 3),
        roots={part.label: part.corpus.root.absolute() for part in parts},
        clips=[clip for own in clips for clip in own],
        weights={part.label: part.entry.weight for part in parts if part.entry.weight != 1},
        notes=tuple(note for part in parts for note in part.corpus.notes),
    )


def _read(entry: CorpusEntry, limit: int | None) -> Corpus:
    return read_corpus(entry.data, limit=limit, layout=entry.layout, columns=entry.columns)


def _refuse_overlaps(entries: Sequence[CorpusEntry]) -> None:
    """Raise for a corpus that is given twice, or that lies in another one."""
    for one, other in combinations(entries, 2):
        first, second = (os.path.realpath(entry.data) for entry in (one, other))
        if first == second:
            raise LockstepError(other.where, found=f"the same corpus as {one}", expected="every corpus once")
        for inner, outer, entry in ((first, second, one), (second, first, other)):
            if inner.startswith(outer.rstrip(os.sep) + os.sep) and os.path.isdir(outer):
                found = f"a corpus inside another one, {outer}"
                raise LockstepError(entry.where, found=found, expected="corpora side by side", fix="give one of them")


def _labels(entries: Sequence[CorpusEntry]) -> list[str]:
    """What each corpus is called in the index; a `LockstepError` where two have one name, or a name fits no file."""
    several = sum(not entry.name for entry in entries) > 1
    labels = [entry.name or (entry.own_name if several else "") for entry in entries]
    for label, entry in zip(labels, entries, strict=True):
        if label and not re.fullmatch(CORPUS_NAME, label):
            expected = "letters from a to z, digits, dots, hyphens or underscores, to tell several corpora apart"
            found = f"a folder called {label[:60]!r}"
            raise LockstepError(entry.where, found=found, expected=expected, fix=_FIX.format(entry.data))
    for (label, one), (other_label, other) in combinations(zip(labels, entries, strict=True), 2):
        if label.casefold() == other_label.casefold():  # file systems may not tell them apart
            fix = _FIX.format(other.data)
            raise LockstepError(other.where, found=f"called {other_label} as {one} is", expected="other names", fix=fix)
    return labels


def _first(parts: Sequence[_Named], limit: int | None) -> Iterator[_Named]:
    """The corpora with their first clips: all of them together `limit`, of each as many as of the others."""
    counts = [len(part.corpus.clips) for part in parts]
    if limit is not None and sum(counts) > limit:
        turns = sorted((turn, number) for number, count in enumerate(counts) for turn in range(count))
        drawn = Counter(number for _, number in turns[:limit])
        counts = [drawn[number] for number in range(len(parts))]
    for part, count in zip(parts, counts, strict=True):
        yield replace(part, corpus=replace(part.corpus, clips=part.corpus.clips[:count]))


def _named(part: _Named) -> list[Clip]:
    """The clips of a corpus with its name in their ids and speakers, and with its language."""
    entry, clips = part.entry, part.corpus.clips
    prefix = entry.name if entry.speaker_prefix is None else entry.speaker_prefix
    if not (part.label or prefix or entry.language):
        return clips
    named = list[Clip]()
    for clip in clips:
        clip_id = f"{entry.name}_{clip.id}" if entry.name else clip.id
        speaker = "_".join(filter(None, (prefix, clip.speaker)))
        check_name(clip_id, what="clip id", where=entry.where)
        if speaker:
            check_name(speaker, what="speaker", where=entry.where)
        language = clip.language or entry.language
        named.append(replace(clip, id=clip_id, speaker=speaker, language=language, corpus=part.label))
    return named


def _with_speakers(parts: Sequence[_Named], clips: Sequence[list[Clip]]) -> list[list[Clip]]:
    """The clips where all corpora have speakers or none has: a corpus without any is one speaker called like it."""
    unnamed = [bool(own) and not own[0].speaker for own in clips]
    if all(unnamed) or not any(unnamed):
        return list(clips)
    found = list[list[Clip]]()
    for part, own, is_unnamed in zip(parts, clips, unnamed, strict=True):
        name = part.entry.own_name
        if is_unnamed and part.entry.speaker_prefix is not None:
            expected = "a speaker_prefix to call its voice by: other corpora have speakers"
            raise LockstepError(part.entry.where, found="no speakers, and an empty speaker_prefix", expected=expected)
        if is_unnamed:
            check_name(name, what="speaker", where=part.entry.where)
        found.append([replace(clip, speaker=name) for clip in own] if is_unnamed else own)
    return found


def _refuse_shared_ids(parts: Sequence[_Named], clips: Sequence[list[Clip]]) -> None:
    owners: dict[str, _Named] = {}
    for part, own in zip(parts, clips, strict=True):
        for clip in own:
            owner = owners.setdefault(clip.id, part)
            if owner is not part:
                found = f"clip {clip.id} is in {owner.entry} and in {part.entry}"
                unnamed = part if not part.entry.name else owner
                fix = "give one of them another name" if unnamed.entry.name else _FIX.format(unnamed.entry.data)
                raise LockstepError(part.entry.where, found=found, expected="every id once", fix=fix)


def _refuse_shared_speakers(parts: Sequence[_Named], clips: Sequence[list[Clip]]) -> None:
    owners: dict[str, _Named] = {}
    for part, own in zip(parts, clips, strict=True):
        for speaker in sorted({clip.speaker for clip in own if clip.speaker}):
            owner = owners.setdefault(speaker, part)
            if owner is not part and owner.entry.speaker_prefix is None is part.entry.speaker_prefix:
                found = f"speaker {speaker} is in {owner.entry} and in {part.entry}"
                fix = f"{_FIX.format(part.entry.data)}, or say speaker_prefix in a YAML file if they are one person"
                raise LockstepError(part.entry.where, found=found, expected="every speaker in one corpus", fix=fix)
