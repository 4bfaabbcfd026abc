"""Any bytes in the lists of every layout: clips, or one clear message."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from builds import read_corpus, write_files
from fuzzing import fuzzed
from hypothesis import strategies as st

from xtts.precompute.corpus.listing import LAYOUTS
from xtts.shared.cache.clip_index import Clip
from xtts.shared.errors import LockstepError

HEADER = "client_id\tpath\tsentence\tlocale"
LISTS = {
    "ljspeech": "metadata.csv", "piper": "metadata.csv",
    "common-voice": "validated.tsv", "nemo": "manifest.jsonl", "lhotse": "cuts.jsonl", "kaldi": "wav.scp",
    "parquet": "data/train.parquet", "vctk": "txt/p1/a.txt", "libritts": "s/c/a.normalized.txt", "folder": "a.txt",
    "table": "metadata.csv", "webdataset": "a.tar", "nemo-tarred": "manifest.jsonl",
}  # fmt: skip
"""The file of each layout that holds texts or names."""
AUDIO = {"vctk": "wav48_silence_trimmed/p1/a_mic1.flac", "libritts": "s/c/a.wav", "folder": "a.wav",
         "nemo-tarred": "audio_0.tar"}  # fmt: skip
EMPTY_TAR = tarfile.TarInfo("a.wav").tobuf() + bytes(1024)


def read(data: Path, **options: str | None) -> list[Clip]:
    """The clips; none where one clear message is all that comes."""
    clips, message = list[Clip](), ""
    try:
        clips = read_corpus(data, **options).clips
    except LockstepError as error:
        message = str(error)
    assert bool(message) != bool(clips)
    assert "\n" not in message
    return clips


_WORDS = st.sampled_from([
    "a", "a.wav", "../a", "/a.wav", "..", ".", "ann", "text", "audio", "audio_file", "client_id", "path", "sentence",
    "locale", "\0", "\ufeff", "{", '"', "a/b", "x" * 300, "\u2028", "\x85", "|", "touch x |", "\ud7ff",
])  # fmt: skip
_NEARLY_SOUND = st.sampled_from([
    ("", ["a.wav|some text", "a.wav|more"]), ("", ["a|Some 2.|some two", "p/a|x"]), ("", ["a a.wav", "b a.wav"]),
    ("file_name,text\n", ["a.wav,x"]),
    ("audio_file|text|speaker_name\n", ["a.wav|x|ann"]), ("audio|text\n", ["a.wav|x"]),
    (f"{HEADER}\n", ["c\ta.mp3\ttext\ten-US"]), ("", ['{"audio_filepath": "a.wav", "text": "x"}']),
]).flatmap(lambda file: st.lists(
    st.sampled_from(file[1]) | st.builds("{}{}".format, st.sampled_from(file[1]), st.text(max_size=6)), min_size=1,
    max_size=4,
).map(lambda lines: (file[0] + "\n".join(lines)).encode(errors="surrogatepass")))  # fmt: skip
_LINE = st.builds(
    lambda mark, parts: mark.join(parts), st.sampled_from("|\t, "), st.lists(_WORDS | st.text(max_size=8), max_size=6)
)
_VALUE = (
    st.sampled_from(["a", "../a.wav", "", "\ud800", "a\0", True, None, 10**400]) | st.integers() | st.floats()
    | st.lists(st.none(), max_size=2)
)  # fmt: skip
_ENTRY = st.dictionaries(
    st.sampled_from(["audio_filepath", "text", "id", "speaker", "offset", "duration", "supervisions", "recording"]),
    _VALUE,
).map(json.dumps)
_STARTS = st.sampled_from(
    ["", "audio_file|text|speaker_name\n", "audio|text\n", f"{HEADER}\n", "a.wav|ann|some text\n"]
)
_CONTENT = st.one_of(
    _NEARLY_SOUND,
    st.binary(max_size=80),
    st.builds(lambda start, lines: (start + "\n".join(lines)).encode(errors="surrogatepass"), _STARTS,
              st.lists(_LINE | _ENTRY, max_size=5)),
)  # fmt: skip


@fuzzed(few=40, many=1000)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_bytes_in_a_list_are_read_or_rejected(tmp_path, layout, fuzz):
    root = tmp_path / "corpus"

    @fuzz.each(content=_CONTENT, named=st.booleans())
    def check(content, named):
        shutil.rmtree(root, ignore_errors=True)
        write_files(root, {AUDIO.get(layout, "wavs/a.wav"): EMPTY_TAR, LISTS[layout]: content})
        if layout == "kaldi":
            write_files(root, {"text": content, "utt2spk": b"a ann\n", **({"segments": content} if named else {})})
        clips = read(root, layout=layout if named else None)
        assert all(".." not in Path(clip.source).parts for clip in clips if layout not in ("nemo", "lhotse"))
