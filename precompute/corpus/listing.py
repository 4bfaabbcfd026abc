"""Reading a corpus: which clips there are, their texts and where their audio lies. No audio is opened here."""

import gzip
import json
import os
import re
import zlib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from xtts.precompute.corpus.lhotse_cuts import MANIFESTS, cut_entry, is_cut
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError
from xtts.shared.text.languages import find_language
from xtts.shared.text.text_normalization import expand

METADATA_FILE, AUDIO_FOLDER = "metadata.csv", "wavs"
SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
"""Formats that are looked for, the first first."""
_LONGEST_ID_BYTES = 200
_MOST_BYTES = 2**30  # of an unpacked manifest: gzip packs zeros a thousandfold


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Clips in the order of their metadata or manifest."""

    root: Path
    """Sources are relative to this folder."""
    clips: list[Clip]


def read_corpus(data: Path, *, limit: int | None = None) -> Corpus:
    """Read a folder in the LJSpeech layout, a JSON-lines manifest or Lhotse cuts; `limit` keeps the first clips."""
    if data.is_dir() and not (data / METADATA_FILE).exists():
        data = next((data / name for name in MANIFESTS if (data / name).is_file()), data)
    if data.is_file():
        corpus = Corpus(root=data.parent, clips=read_manifest(data, limit))
    elif data.is_dir():
        corpus = Corpus(root=data, clips=_read_metadata(data, limit))
    else:
        found = "neither a file nor a folder" if data.exists() else "no such folder"
        raise LockstepError(str(data), found=found, expected="a corpus in the LJSpeech layout, or a manifest")
    unnamed = [clip for clip in corpus.clips if not clip.speaker]
    if unnamed and len(unnamed) < len(corpus.clips):
        found = f"no speaker for clip {unnamed[0].id}, but for others"
        raise LockstepError(str(data), found=found, expected="a speaker for every clip, or for none")
    return corpus


def with_numbers_in_words(corpus: Corpus, language: str) -> Corpus:
    """The corpus with numbers and abbreviations in words where it does not say them; `language` is the main one."""
    clips = [
        clip if clip.normalised else replace(clip, text=expand(clip.text, clip.language or language))
        for clip in corpus.clips
    ]
    return replace(corpus, clips=clips)


def _read_metadata(root: Path, limit: int | None) -> list[Clip]:
    """Read `metadata.csv` (`id|text|normalised text|speaker|language`, three of them optional); audio is in `wavs/`."""
    path, clips, seen = root / METADATA_FILE, list[Clip](), set[str]()
    audio = _audio_files(root / AUDIO_FOLDER)
    for number, line in enumerate(read_lines(path), start=1):
        if limit is not None and len(clips) >= limit:
            break
        if line.strip():
            clip = _parse_line(line, where=f"{path}:{number}", seen=seen, audio=audio)
            seen.add(clip.id)
            clips.append(clip)
    if not clips:
        raise LockstepError(str(path), found="no clips", expected="lines of id|text|normalised text")
    return clips


def _audio_files(folder: Path) -> dict[str, str]:
    """Name without suffix to file name; where a clip lies there in several formats, the first of `SUFFIXES`."""
    try:
        names = os.listdir(folder)
    except OSError:
        return {}
    ranked = sorted(
        (name for name in names if Path(name).suffix in SUFFIXES), key=lambda n: -SUFFIXES.index(Path(n).suffix)
    )
    return {name.removesuffix(Path(name).suffix): name for name in ranked}


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file, with or without byte order mark and carriage returns, packed by gzip or not."""
    try:
        data = _read_packed(path) if path.suffix == ".gz" else path.read_bytes()
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise LockstepError(str(path), found=reason, expected="lines of clips") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LockstepError(f"{path}:{line}", found="not UTF-8", fix="convert the file to UTF-8") from None
    # str.splitlines would also break at U+2028 and its like, which occur inside texts.
    return [line.removesuffix("\r") for line in text.split("\n")]


def _read_packed(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LockstepError(str(path), found=f"cannot be unpacked ({error})", expected="a gzip file") from None
    if len(data) > _MOST_BYTES:
        raise LockstepError(str(path), found=f"more than {_MOST_BYTES} bytes unpacked", expected="a manifest")
    return data


def _parse_line(line: str, *, where: str, seen: set[str], audio: dict[str, str]) -> Clip:
    columns = [column.strip() for column in line.split("|")]
    if not 2 <= len(columns) <= 5:
        count = "one column" if len(columns) == 1 else f"{len(columns)} columns"
        raise LockstepError(where, found=count, expected="id|text, then where wanted |normalised text|speaker|language")
    clip_id, raw, normalised, speaker, language = (*columns, "", "", "")[:5]
    check_name(clip_id, what="clip id", where=where)
    if speaker:
        check_name(speaker, what="speaker", where=where)
    source = f"{AUDIO_FOLDER}/{audio.get(clip_id, clip_id + SUFFIXES[0])}"
    return Clip(
        id=clip_id, speaker=speaker, text=normalised or raw, source=source,
        normalised=bool(normalised), duplicate=clip_id in seen, language=check_language(language, where),
    )  # fmt: skip


def read_manifest(path: Path, limit: int | None) -> list[Clip]:
    """Read JSON lines of `audio_filepath`, `text` and, where wanted, `id`, `speaker`, `language`, and nothing else.

    Lhotse cuts of whole recordings are read as such lines. Paths are relative to the manifest; without `id`
    a clip is called like its file.
    """
    clips, seen = list[Clip](), set[str]()
    for number, line in enumerate(read_lines(path), start=1):
        if limit is not None and len(clips) >= limit:
            break
        if line.strip():
            clip = _parse_entry(line, where=f"{path}:{number}", seen=seen, root=path.parent.absolute())
            seen.add(clip.id)
            clips.append(clip)
    if not clips:
        raise LockstepError(str(path), found="no clips", expected="JSON lines with audio_filepath and text")
    return clips


def _parse_entry(line: str, *, where: str, seen: set[str], root: Path) -> Clip:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LockstepError(where, found=f"not JSON ({str(error)[:80]})", expected="one object a line") from None
    if not isinstance(entry, dict):
        raise LockstepError(where, found="not a JSON object", expected='{"audio_filepath": ..., "text": ...}')
    if is_cut(entry):
        entry = cut_entry(entry, where)
    if entry.get("offset"):
        raise LockstepError(where, found="an offset into a longer file", expected="one file for each clip")
    for key in ("audio_filepath", "text"):
        if not isinstance(entry.get(key), str):
            raise LockstepError(where, found=f"{key} is {entry.get(key)!r:.60}", expected="a string")
    source, text, speaker = entry["audio_filepath"], entry["text"].strip(), str(entry.get("speaker") or "")
    clip_id = str(entry.get("id") or PurePosixPath(source).stem)
    check_name(clip_id, what="clip id", where=where)
    if speaker:
        check_name(speaker, what="speaker", where=where)
    if "\0" in source or not encodable(source + text):
        raise LockstepError(where, found="characters that are no text", expected="plain UTF-8")
    if Path(source).is_relative_to(root):
        source = Path(source).relative_to(root).as_posix()
    return Clip(
        id=clip_id, speaker=speaker, text=text, source=source, duplicate=clip_id in seen,
        language=check_language(str(entry.get("language") or ""), where),
    )  # fmt: skip


def check_name(name: str, *, what: str, where: str) -> None:
    """Raise for a name that is not plain."""
    problem = name_problem(name)
    if problem:
        raise LockstepError(where, found=f"{what} {name[:60]!r} {problem}", expected="a plain name")


def check_language(code: str, where: str) -> str:
    """A clip's language as an ISO 639 code: `en-US` and `fa_IR` without their region; empty where none is named."""
    try:
        return find_language(re.split("[-_]", code.strip().lower())[0]).code if code else ""
    except LockstepError as error:
        raise LockstepError(where, found=f"language {code[:40]!r}", expected=error.expected) from None


def encodable(text: str) -> bool:
    """False for lone surrogates, which JSON can spell but no file can hold."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def name_problem(name: str) -> str | None:
    """Say why `name` is not a plain name, which could mean a path outside the corpus or a broken terminal."""
    if not name:
        return "is empty"
    if not encodable(name):
        return "holds characters that are no text"
    if len(name.encode()) > _LONGEST_ID_BYTES:
        return f"is longer than {_LONGEST_ID_BYTES} bytes"
    if name.startswith(".") or "/" in name or "\\" in name:
        return "reads as a path"
    if not name.isprintable():
        return "holds control characters"
    return None
