"""Reading several corpora as one list of clips: ids stay unique, and every clip knows which corpus it is of."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xtts.precompute.corpus.clip_fields import check_name
from xtts.precompute.corpus.corpus_entries import CorpusEntry
from xtts.precompute.corpus.layouts.layout import folder_of
from xtts.precompute.corpus.listing import Corpus, read_corpus
from xtts.shared.cache.cache_spec import CORPUS_NAME
from xtts.shared.cache.clip_index import strings, with_column
from xtts.shared.errors import LockstepError

if TYPE_CHECKING:
    import pyarrow as pa

_FIX = "give it a name with --data NAME={}"


@dataclass(frozen=True, kw_only=True)
class Corpora:
    """The clips of one or more corpora: corpus by corpus, in the order of their names."""

    name: str
    """For messages."""
    roots: Mapping[str, Path]
    """Each corpus to its folder, absolute."""
    clips: Any
    """An Arrow table with the columns of `Clip`."""
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


def read_corpora(entries: Sequence[CorpusEntry], *, limit: int | None = None, words_in: str | None = None) -> Corpora:
    """Read one corpus as it is, or several whose clips are told apart by the names of their corpora.

    Clips, and speakers, of a corpus with a name are called NAME_ID. A corpus with a name but without speakers is one
    speaker of that name. The result does not depend on the order of the entries.

    limit: total number of clips, the first of each corpus in equal shares. words_in: as in `read_corpus`.

    A `LockstepError` where a corpus cannot be read or is given twice, or two clips or speakers have one name.
    """
    import pyarrow as pa

    _refuse_overlaps(entries)
    parts = [
        _Named(entry=entry, label=label, corpus=_read(entry, limit, words_in))
        for label, entry in sorted(zip(_labels(entries), entries, strict=True), key=lambda pair: pair[0])
    ]
    tables = _with_speakers(parts, [_named(part) for part in _first(parts, limit)])
    for (one, first), (other, second) in combinations(zip(parts, tables, strict=True), 2):
        _refuse_shared_ids(one, first, other, second)
        _refuse_shared_speakers(one, first, other, second)
    names = [str(part.corpus.root if len(parts) == 1 else part.entry) for part in parts]
    return Corpora(
        name=", ".join(names[:3]) + ", ..." * (len(names) > 3),
        roots={part.label: part.corpus.root.absolute() for part in parts},
        clips=pa.concat_tables(tables).combine_chunks(),
        weights={part.label: part.entry.weight for part in parts if part.entry.weight != 1},
        notes=tuple(note for part in parts for note in part.corpus.notes),
    )


def corpus_folders(entries: Sequence[CorpusEntry]) -> dict[str, Path]:
    """What `Corpora.roots` is, without reading a list; a `LockstepError` for names as `read_corpora` raises it."""
    return {label: folder_of(entry.data).absolute() for label, entry in zip(_labels(entries), entries, strict=True)}


def _read(entry: CorpusEntry, limit: int | None, words_in: str | None) -> Corpus:
    language = words_in and (entry.language or words_in)
    return read_corpus(entry.data, limit=limit, layout=entry.layout, columns=entry.columns, words_in=language)


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
        yield replace(part, corpus=replace(part.corpus, clips=part.corpus.clips.slice(0, count)))


def _named(part: _Named) -> "pa.Table":
    """The clips of a corpus with its name in their ids and speakers, and with its language."""
    import pyarrow.compute as pc

    entry, clips = part.entry, part.corpus.clips
    prefix = entry.name if entry.speaker_prefix is None else entry.speaker_prefix
    if entry.name:
        clips = with_column(clips, "id", pc.binary_join_element_wise(_text(entry.name), clips["id"], _text("_")))
        _check_longest(clips["id"], "clip id", entry.where)
    if prefix:
        both = pc.binary_join_element_wise(_text(prefix), clips["speaker"], _text("_"))
        speakers = pc.if_else(pc.equal(clips["speaker"], ""), _text(prefix), both)
        clips = with_column(clips, "speaker", speakers)
        _check_longest(clips["speaker"], "speaker", entry.where)
    if entry.language:
        language = pc.if_else(pc.equal(clips["language"], ""), _text(entry.language), clips["language"])
        clips = with_column(clips, "language", language)
    return with_column(clips, "corpus", _repeated(part.label, len(clips)))


def _with_speakers(parts: Sequence[_Named], tables: Sequence["pa.Table"]) -> list["pa.Table"]:
    """The clips where all corpora have speakers or none has: a corpus without any is one speaker called like it."""
    unnamed = [len(table) > 0 and not table["speaker"][0].as_py() for table in tables]
    if all(unnamed) or not any(unnamed):
        return list(tables)
    found = list[Any]()
    for part, table, is_unnamed in zip(parts, tables, unnamed, strict=True):
        name = part.entry.own_name
        if is_unnamed and part.entry.speaker_prefix is not None:
            expected = "a speaker_prefix to call its voice by: other corpora have speakers"
            raise LockstepError(part.entry.where, found="no speakers, and an empty speaker_prefix", expected=expected)
        if is_unnamed:
            check_name(name, what="speaker", where=part.entry.where)
        found.append(with_column(table, "speaker", _repeated(name, len(table))) if is_unnamed else table)
    return found


def _refuse_shared_ids(one: _Named, first: "pa.Table", other: _Named, second: "pa.Table") -> None:
    import pyarrow.compute as pc

    shared = second["id"].filter(pc.is_in(second["id"], value_set=first["id"].combine_chunks()))
    if len(shared):
        found = f"clip {shared[0]} is in {one.entry} and in {other.entry}"
        unnamed = other if not other.entry.name else one
        fix = "give one of them another name" if unnamed.entry.name else _FIX.format(unnamed.entry.data)
        raise LockstepError(other.entry.where, found=found, expected="every id once", fix=fix)


def _refuse_shared_speakers(one: _Named, first: "pa.Table", other: _Named, second: "pa.Table") -> None:
    shared = {*strings(first["speaker"].unique())} & {*strings(second["speaker"].unique())} - {""}
    if shared and one.entry.speaker_prefix is None is other.entry.speaker_prefix:
        found = f"speaker {min(shared)} is in {one.entry} and in {other.entry}"
        fix = f"{_FIX.format(other.entry.data)}, or say speaker_prefix in a YAML file if they are one person"
        raise LockstepError(other.entry.where, found=found, expected="every speaker in one corpus", fix=fix)


def _text(text: str) -> "pa.Scalar[Any]":
    import pyarrow as pa

    return pa.scalar(text, pa.large_string())


def _repeated(text: str, count: int) -> "pa.Array[Any]":
    import pyarrow as pa

    column: pa.Array[Any] = pa.repeat(_text(text), count)  # type: ignore[call-overload]
    return column


def _check_longest(names: "pa.ChunkedArray[Any]", what: str, where: str) -> None:
    """Raise where a name is too long with the prefix that it was given."""
    import pyarrow.compute as pc

    if not len(names):
        return
    lengths = pc.binary_length(names)
    check_name(names[pc.index(lengths, pc.max(lengths)).as_py()].as_py(), what=what, where=where)
