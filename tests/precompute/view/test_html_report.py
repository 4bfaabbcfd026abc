"""`report` and `stats`: one page, whole in itself, in which the corpus is text; the worst clips to hear."""

import base64
import html
import io
import re
import shutil

import numpy as np
import pytest
import soundfile
from builds import RATE, build, command, sound, write_files
from PIL import Image

from xtts.precompute.view import html_report as report
from xtts.precompute.view.cached_clips import CachedClips
from xtts.precompute.view.html_report import report_page, write_report
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.audio.mel_profiles import EDGE_FRAMES
from xtts.shared.errors import LockstepError

HOSTILE_TEXT = "<3>alert('x')</3> & \"more\" {{ 7 * 7 }}"


class Page:
    """A report: its tags, its links and those that hold pictures and sounds, and the visible text."""

    def __init__(self, clips, data=()):
        self.page = report_page(clips, progress=Progress(), data=data)
        self.tags = re.findall(r"<(\w+)", self.page)
        self.links = re.findall(r'(?:src|href|srcset|data|action)="([^"]*)"', self.page)
        self.text = html.unescape(re.sub(r"<[^>]*>", " ", self.page))
        self.cards = [html.unescape(clip) for clip in re.findall(r'data-clip="([^"]*)"', self.page)]
        self.pictures, self.sounds = (
            [base64.b64decode(link.removeprefix(start)) for link in self.links if link.startswith(start)]
            for start in ("data:image/webp;base64,", "data:audio/mpeg;base64,")
        )


@pytest.fixture(scope="module")
def hostile_cache(tmp_path_factory):
    """Twelve clips of two rates and two speakers, and two rejected ones, with markup in ids, texts and speakers."""
    folder, files, lines = tmp_path_factory.mktemp("hostile"), {}, ""
    for number in range(14):
        name = f"<i>{number}" if number in (1, 4) else f"clip-{number}"
        files[f"wavs/{name}.wav"] = sound(1.0 + 0.01 * number, rate=16_000 if number == 6 else RATE)
        text = HOSTILE_TEXT if number < 9 else "a few words"
        lines += f"{name}|{text}|{text}|<b>{'ab'[number % 2]}\n"
    files["wavs/<i>4.wav"] = b""
    del files["wavs/clip-5.wav"]
    corpus = write_files(folder / "corpus", {**files, "metadata.csv": lines})
    build(corpus, folder / "features", "shapes.max_reject_fraction=0.5", "shapes.buckets=2")
    return folder / "features"


@pytest.fixture(scope="module")
def hostile_page(hostile_cache):
    return Page(CachedClips(hostile_cache))


def test_the_page_escapes_texts_and_loads_nothing_external(hostile_page, hostile_cache):
    assert not {"i", "iframe", "object", "link"} & set(hostile_page.tags)
    assert "<i>1" in hostile_page.text
    assert "<b>a" in hostile_page.text
    assert HOSTILE_TEXT in hostile_page.text
    assert len(hostile_page.pictures) == len(hostile_page.sounds) == len(hostile_page.cards) >= 6
    assert all(link.startswith(("data:", "#")) for link in hostile_page.links)
    assert not re.search(r"https?://|url\(|@import|<script", hostile_page.page)
    clips = CachedClips(hostile_cache)
    frames = sorted(clips.row(name).mel_length for name in hostile_page.cards)
    assert sorted(soundfile.info(io.BytesIO(sound)).frames // 256 for sound in hostile_page.sounds) == frames
    heights = {bucket.frames for bucket in clips.spec.buckets}
    assert {Image.open(io.BytesIO(picture)).width for picture in hostile_page.pictures} <= heights  # with the padding
    shown = ("empty audio 1 <i>4 (a file of 0 bytes)", "missing audio 1 clip-5", "resampled from 16000 Hz 1",
             "<b>a 6 ", "<b>b 6 ", "Characters to check")
    text = " ".join(hostile_page.text.split())
    assert [words for words in shown if words not in text] == []


@pytest.fixture(scope="module")
def swapped(tmp_path_factory):
    """A corpus of 24 clips that are read alike but for two, one of them long, whose transcripts have changed places.

    And its cache.
    """
    folder, files, texts = tmp_path_factory.mktemp("swapped"), {}, {}
    for number in range(24):
        seconds = 5.6 if number == 20 else 1 + 0.1 * number
        files[f"wavs/c{number:02}.wav"] = sound(seconds, seed=number)
        texts[f"c{number:02}"] = "ab " * round(6 * seconds) + ("ß" if number == 4 else "")
    texts["c16"], texts["c20"] = texts["c20"], texts["c16"]
    lines = "".join(f"{name}|{text}\n" for name, text in texts.items())
    corpus = write_files(folder / "corpus", {**files, "metadata.csv": lines})
    build(corpus, folder / "features", "text.language=de")
    return corpus, folder / "features"


def test_swapped_transcripts_are_listed_first(swapped):
    corpus, cache = swapped
    page = Page(CachedClips(cache), [corpus])
    assert "24 of 24 clips can be trained on; listen to these 2 first." in " ".join(page.text.split())
    assert page.cards[:2] == ["c16", "c20"], "the worst first"
    assert page.page.count("<h2>Speakers</h2>") == 0
    seconds = [soundfile.info(io.BytesIO(one)).duration for one in page.sounds]
    edges = 2 * EDGE_FRAMES * 256 / 22_050
    mels = [one - edges if one < 4.9 else 5 for one in seconds[1::2]]
    assert seconds[::2] == pytest.approx(mels, abs=0.02), "each recording stands before its mel"
    assert "(the first 5 s here)" in page.text
    assert f"wavs/{page.cards[0]}.wav" in page.text
    assert "c16 recording mel speaking rate 26.2 letters/s, median 12.0 letters/s ab" in " ".join(page.text.split())
    heard, _ = soundfile.read(io.BytesIO(page.sounds[0]))
    original, _ = soundfile.read(corpus / "wavs" / f"{page.cards[0]}.wav")
    assert np.corrcoef(heard[:20_000], original[:20_000])[0, 1] > 0.5, "it is the corpus' own file"


def test_rare_letters_are_named_and_missing_recordings_reported(swapped, tmp_path):
    page = Page(CachedClips(swapped[1]), [tmp_path])
    name = '</td><td class="left">LATIN SMALL LETTER SHARP S</td><td data-label="times">1</td>'
    link = r'(<a href="#clip-\d+">)?c04(</a>)?</td>'
    assert re.search(f'>ß{name}.*rare.*{link}', page.page)
    assert page.text.count("the recording cannot be read: ") == len(page.cards)
    with pytest.raises(LockstepError, match="--data: corpora with names, expected what the cache was built from"):
        write_report(swapped[1], tmp_path / "r.html", progress=Progress(), data=f"other={tmp_path}")


def test_a_cache_gives_the_same_bytes_each_time(tiny_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "CLIPS_SHOWN", 2)
    names = [tmp_path / "new" / name for name in ("a.html", "b.html")]
    for name in names:
        assert f"{name}: " in command("report", "--cache", tiny_cache, "--out", name).output
    pages = [name.read_bytes() for name in names]
    assert pages[0] == pages[1]
    assert pages[0].endswith(b"</html>")
    assert len(pages[0]) < 3 * 2**20


def test_a_cache_without_its_shards_is_rejected(tiny_cache, tmp_path):
    shutil.copytree(tiny_cache, tmp_path / "features")
    for shard in (tmp_path / "features").rglob("*.tfrecord"):
        shard.unlink()
    with pytest.raises(
        LockstepError, match=r"record \d+ \(tone-\d+\): cannot be read: .*verify --cache .* --against .* --repair"
    ):
        write_report(tmp_path / "features", tmp_path / "report.html", progress=Progress())
    assert not (tmp_path / "report.html").exists()
