"""Reading several corpora as one table of clips, each with a unique id and the name of its corpus."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from xtts.precompute.corpus.clip_fields import check_name
from xtts.precompute.corpus.corpus_entries import CorpusEntry
from xtts.precompute.corpus.layouts.layout import folder_of
from xtts.precompute.corpus.listing import Corpus, read_corpus
from xtts.shared.cache.cache_spec import CORPUS_NAME
from xtts.shared.cache.clip_index import strings, with_column
from xtts.shared.errors import LockstepError
from xtts.shared.text.pronunciation import Lexicon

_FIX = "give it a name with --data NAME={}"


@dataclass(frozen=True, kw_only=True)
class Corpora:
    """The clips of one or more corpora: corpus by corpus, sorted by corpus name."""

    name: str
    """A description for messages."""
    roots: Mapping[str, Path]
    """Absolute folder by corpus name."""
    clips: pa.Table
    """Clips, with the columns of `Clip`."""
    weights: Mapping[str, float]
    """Weight by corpus name, without those of 1: how often an epoch draws each clip."""
    notes: tuple[str, ...] = ()
    """Lines to print, such as what was skipped."""


def read_corpora(
    entries: Sequence[CorpusEntry],
    *,
    limit: int | None = None,
    words_in: str | None = None,
    lexicon: Lexicon | None = None,
) -> Corpora:
    """Read one corpus unchanged, or several as one.

    Clips and speakers of a named corpus are called NAME_ID. A named corpus without speakers has one speaker, NAME. The
    order of the entries makes no difference.

    limit: clips in total, the first of each corpus in equal shares. words_in, lexicon: see `read_corpus`.

    Raises a `LockstepError` if a corpus cannot be read, or two clips or speakers share a name.
    """
    labelled, corpora = _labelled(entries), list[Corpus]()
    for entry in labelled.values():
        language = words_in and (entry.language or words_in)
        options = entry.model_dump(include={"layout", "columns", "speakers"})
        corpora.append(read_corpus(entry.data, limit=limit, words_in=language, lexicon=lexicon, **options))
    limited = _limited([corpus.clips for corpus in corpora], limit)
    prefixed = map(_prefixed_clips, labelled.keys(), labelled.values(), limited)
    tables = _with_speakers([*labelled.values()], list(prefixed))
    _reject_shared_names([*labelled.values()], tables)
    names = [str(corpora[0].root if len(corpora) == 1 else entry) for entry in labelled.values()]
    return Corpora(
        name=", ".join(names[:3]) + ", ..." * (len(names) > 3),
        roots={label: corpus.root.absolute() for label, corpus in zip(labelled, corpora, strict=True)},
        clips=pa.concat_tables(tables).combine_chunks(),
        weights={label: entry.weight for label, entry in labelled.items() if entry.weight != 1},
        notes=tuple(note for corpus in corpora for note in corpus.notes),
    )


def corpus_folders(entries: Sequence[CorpusEntry]) -> dict[str, Path]:
    """Return `Corpora.roots` without reading the corpora; raises a `LockstepError` for names as `read_corpora` does."""
    return {label: folder_of(entry.data).absolute() for label, entry in _labelled(entries).items()}


def _labelled(entries: Sequence[CorpusEntry]) -> dict[str, CorpusEntry]:
    """Map the name in the index, empty for a single corpus without one, to each corpus, sorted by name.

    Raises a `LockstepError` if two names are equal or one cannot be a file name.
    """
    several_unnamed = sum(not entry.name for entry in entries) > 1
    labels = [entry.name or (entry.own_name if several_unnamed else "") for entry in entries]
    for label, entry in zip(labels, entries, strict=True):
        if label and not re.fullmatch(CORPUS_NAME, label):
            expected = "letters from a to z, digits, dots, hyphens or underscores, to tell several corpora apart"
            problem = f"a folder called {label[:60]!r}"
            raise LockstepError(entry.location, found=problem, expected=expected, fix=_FIX.format(entry.data))
    for (label, entry), (other_label, other) in combinations(zip(labels, entries, strict=True), 2):
        if label.casefold() == other_label.casefold():  # file systems may not tell them apart
            problem, fix = f"called {other_label}, as {entry} is", _FIX.format(other.data)
            raise LockstepError(other.location, found=problem, expected="different names", fix=fix)
    return dict(sorted(zip(labels, entries, strict=True), key=lambda pair: pair[0]))


def _limited(tables: Sequence[pa.Table], limit: int | None) -> list[pa.Table]:
    """Return the first clips of each corpus: `limit` in total, in shares as equal as their sizes allow."""
    counts = list(map(len, tables))
    if limit is not None and sum(counts) > limit:
        turns = sorted((turn, position) for position, count in enumerate(counts) for turn in range(count))
        drawn = Counter(position for _, position in turns[:limit])
        counts = [drawn[position] for position in range(len(tables))]
    return [table.slice(0, count) for table, count in zip(tables, counts, strict=True)]


def _prefixed_clips(label: str, entry: CorpusEntry, clips: pa.Table) -> pa.Table:
    """Return the clips with prefixed ids and speakers, and the language of the corpus if they name none."""
    if entry.name:
        clips = with_column(clips, "id", pc.binary_join_element_wise(_text(entry.name), clips["id"], _text("_")))
        prefixed = pc.binary_join_element_wise(_text(entry.name), clips["speaker"], _text("_"))
        speakers = pc.if_else(pc.equal(clips["speaker"], ""), _text(entry.name), prefixed)
        clips = with_column(clips, "speaker", speakers)
    if entry.language:
        language = pc.if_else(pc.equal(clips["language"], ""), _text(entry.language), clips["language"])
        clips = with_column(clips, "language", language)
    return with_column(clips, "corpus", [label] * len(clips))


def _with_speakers(entries: Sequence[CorpusEntry], tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Return the tables; if only some have speakers, each of the others becomes one speaker named after its corpus."""
    unnamed = [len(table) > 0 and not table["speaker"][0].as_py() for table in tables]
    if all(unnamed) or not any(unnamed):
        return list(tables)
    named = list[pa.Table]()
    for entry, table, is_unnamed in zip(entries, tables, unnamed, strict=True):
        if is_unnamed:
            check_name(entry.own_name, what="speaker", location=entry.location)
        named.append(with_column(table, "speaker", [entry.own_name] * len(table)) if is_unnamed else table)
    return named


def _reject_shared_names(entries: Sequence[CorpusEntry], tables: Sequence[pa.Table]) -> None:
    """Raise a `LockstepError` if two corpora have the same clip id or the same speaker."""
    for (first, clips), (second, others) in combinations(zip(entries, tables, strict=True), 2):
        shared = others["id"].filter(pc.is_in(others["id"], value_set=clips["id"].combine_chunks()))
        if len(shared):
            problem = f"clip {shared[0]} is in {first} and in {second}"
            unnamed = second if not second.name else first
            fix = "give one of them another name" if unnamed.name else _FIX.format(unnamed.data)
            raise LockstepError(second.location, found=problem, expected="every id once", fix=fix)
        speakers = {*strings(clips["speaker"].unique())} & {*strings(others["speaker"].unique())} - {""}
        if speakers:
            problem = f"speaker {min(speakers)} is in {first} and in {second}"
            fix = f"{_FIX.format(second.data)}, or make them one corpus if they are one person"
            raise LockstepError(second.location, found=problem, expected="every speaker in one corpus", fix=fix)


def _text(text: str) -> "pa.Scalar[Any]":
    return pa.scalar(text, pa.large_string())
