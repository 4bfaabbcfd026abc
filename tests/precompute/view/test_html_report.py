"""`report` and `stats`: one page, whole in itself, in which the corpus is text; the worst clips to hear."""

import base64
import io
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner
from small_corpora import RATE, build, sound, write_files

from xtts.precompute.cli import main
from xtts.precompute.view import html_report as report
from xtts.precompute.view.cached_clips import CachedClips
from xtts.precompute.view.histogram import HEIGHT, WIDTH, draw_histogram
from xtts.precompute.view.html_report import bucket_lines, note_counts, reject_lines, report_page, write_report
from xtts.precompute.view.terminal import quality_text
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.clip_index import Kept
from xtts.shared.cache.quality_stats import quality_stats
from xtts.shared.errors import LockstepError

HOSTILE_TEXT = "<script>alert('x')</script> & \"more\" {{ 7 * 7 }}"


class Page(HTMLParser):
    """Tags, the values of attributes that load something, the sounds among them, and the visible text."""

    def __init__(self, clips):
        super().__init__()
        self.page = report_page(clips, seed=0, progress=NullProgress())
        self.tags, self.links, self.text = [], [], ""
        self.feed(self.page)
        self.pictures, self.sounds = (
            [base64.b64decode(link.removeprefix(start)) for link in self.links if link.startswith(start)]
            for start in ("data:image/png;base64,", "data:audio/flac;base64,")
        )

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def hostile_cache(tmp_path_factory):
    """Twelve clips of two rates and two speakers, and two rejected ones, with markup in ids, texts and speakers."""
    folder, files, lines = tmp_path_factory.mktemp("hostile"), {}, ""
    for number in range(14):
        name = f"<i>{number}" if number in (1, 4) else f"clip-{number}"
        files[f"wavs/{name}.wav"] = sound(0.5 + 0.01 * number, rate=16_000 if number == 6 else RATE)
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


def test_the_corpus_is_text_and_nothing_is_loaded_from_elsewhere(hostile_page):
    assert not {"i", "script", "iframe", "object", "link"} & set(hostile_page.tags)
    assert "<i>1" in hostile_page.text
    assert "<b>a" in hostile_page.text
    assert HOSTILE_TEXT in hostile_page.text
    assert "default-src 'none'" in hostile_page.page
    assert len(hostile_page.pictures) == len(hostile_page.sounds) == 12
    assert len(hostile_page.links) == 24
    assert not re.search(r"https?://|url\(|@import", hostile_page.page)


def test_pictures_and_sounds_are_those_of_the_clips(hostile_page, hostile_cache):
    clips = CachedClips(hostile_cache)
    frames = sorted(row.audio.mel_length for row in clips.rows if isinstance(row, Kept))
    assert sorted(soundfile.info(io.BytesIO(sound)).frames // 256 for sound in hostile_page.sounds) == frames
    heights = {bucket.frames for bucket in clips.spec.buckets}
    assert {int.from_bytes(picture[16:20], "big") for picture in hostile_page.pictures} == heights  # with the padding


def test_the_ledger_is_told_in_full(hostile_page, hostile_cache):
    rows = CachedClips(hostile_cache).rows
    kept = [row for row in rows if isinstance(row, Kept)]
    assert [(line.reason, line.count) for line in reject_lines(rows)] == [("empty audio", 1), ("missing audio", 1)]
    assert reject_lines(rows)[0].examples[0].clip.id == "<i>4"
    assert note_counts(kept) == [("resampled from 16000 Hz", 1)]
    assert [(line.name, line.clips) for line in quality_stats(rows, RATE).speakers] == [("<b>a", 6), ("<b>b", 6)]
    shown = ("missing audio", "resampled from 16000 Hz", "Characters to look at")
    assert all(words in hostile_page.text for words in shown)


def test_bucket_lines_add_up(tiny_cache):
    clips = CachedClips(tiny_cache)
    kept = [row for row in clips.rows if isinstance(row, Kept)]
    lines = bucket_lines(kept, clips.spec)
    stored = [line.frames * sum(line.clips.values()) for line in lines]
    useful = sum(line.fill * frames for line, frames in zip(lines, stored, strict=True))
    assert useful == pytest.approx(sum(row.audio.mel_length for row in kept))
    assert useful / sum(stored) == pytest.approx(clips.spec.statistics.fill)
    assert all(0 < line.token_fill <= 1 for line in lines)


def test_the_same_seed_gives_the_same_bytes(tiny_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "CLIPS_SHOWN", 2)
    names = [tmp_path / name for name in ("a.html", "b.html", "c.html")]
    for name, seed in zip(names, (0, 0, 1), strict=True):
        assert str(name) in write_report(tiny_cache, name, seed=seed, progress=NullProgress())
    pages = [name.read_bytes() for name in names]
    assert pages[0] == pages[1] != pages[2]
    assert len(pages[0]) < 10 * 2**20


def test_a_long_clip_is_shown_in_part_and_clips_of_their_own_length_without_padding(tone_corpus, tmp_path):
    corpus = tone_corpus(tmp_path / "corpus", 1, seconds=(16.0, 16.5))
    build(corpus, tmp_path / "features", "split.validation_fraction=0", "shapes.pad_to_fixed_length=False")
    page = Page(CachedClips(tmp_path / "features"))
    assert "Stored at their own length" in page.text
    assert "(the first 15 s here)" in page.text
    (sound,) = page.sounds
    assert soundfile.info(io.BytesIO(sound)).duration == pytest.approx(15, abs=0.02)


def test_a_cache_without_its_shards_is_refused(tiny_cache, tmp_path):
    shutil.copytree(tiny_cache, tmp_path / "features")
    for shard in (tmp_path / "features").rglob("*.tfrecord"):
        shard.unlink()
    with pytest.raises(
        LockstepError, match=r"tfrecord \(tone-\d+\): missing, .*verify --cache .* --against .* --repair"
    ):
        write_report(tmp_path / "features", tmp_path / "report.html", seed=0, progress=NullProgress())
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("values", [[1], [7, 7, 7], list(range(500)), [0.25, 3.5, 9.75], [0]])
def test_a_histogram_counts_every_clip_once(values):
    plot = draw_histogram("frames", values, "heights", {"a": float(max(values)), "b": float(max(values)) + 1})
    assert sum(int(bar.text.split()[0].replace(",", "")) for bar in plot.bars) == len(values)
    assert max(bar.height for bar in plot.bars) == HEIGHT
    assert all(0 <= bar.x < bar.x + bar.width <= WIDTH + 1e-6 for bar in plot.bars)
    assert all(0 <= mark.x <= WIDTH for mark in (*plot.marks, *plot.ticks))


def test_the_command_writes_the_page_where_it_is_told(tiny_cache, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "CLIPS_SHOWN", 1)
    out = tmp_path / "new" / "page.html"
    done = CliRunner().invoke(main, ["report", "--cache", str(tiny_cache), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert f"{out}: " in done.output
    assert out.read_text(encoding="utf-8").endswith("</html>")
    done = CliRunner().invoke(main, ["report", "--cache", str(tmp_path / "none")])
    assert done.exit_code == 2


@pytest.fixture(scope="module")
def uneven_cache(tmp_path_factory):
    """30 clips of one speaker, twelve of them too quiet, the seventh the worst; ids and speaker hold markup."""
    folder, lines = tmp_path_factory.mktemp("views"), ""
    (folder / "corpus" / "wavs").mkdir(parents=True)
    for number in range(30):
        time = np.arange(round((6.5 if number == 7 else 0.5) * RATE)) / RATE
        gain = 10**-2.5 if number == 7 else 0.05 if number < 12 else 1.0
        soundfile.write(folder / "corpus" / "wavs" / f"<i>{number}.wav", 0.3 * gain * np.sin(1500 * time), RATE)
        text = "a" * round(10 * len(time) / RATE)
        lines += f"<i>{number}|{text}|{text}|<u>x\n"
    build(write_files(folder / "corpus", {"metadata.csv": lines}), folder / "features")
    return folder / "features"


def test_the_ten_worst_can_be_heard_in_a_few_seconds_each(uneven_cache, monkeypatch):
    monkeypatch.setattr(report, "CLIPS_SHOWN", 1)
    page = Page(CachedClips(uneven_cache))
    assert len(page.sounds) == 10 + 1
    assert not {"i", "u", "script"} & set(page.tags)
    assert "<u>x" in page.text
    _, heard = page.text.split("The worst to hear")
    assert heard.index("<i>7") < heard.index("<i>0")
    assert "(the first 6 s here)" in heard
    assert "wavs/<i>7.wav" in heard
    assert soundfile.info(io.BytesIO(page.sounds[0])).duration == pytest.approx(6, abs=0.02)
    assert max(soundfile.info(io.BytesIO(sound)).duration for sound in page.sounds[1:10]) < 6
    assert "loudness -63.5 dBFS, median -13.5 dBFS" in heard


def test_stats_show_the_figures_and_the_farthest(uneven_cache):
    told = CliRunner().invoke(main, ["stats", "--cache", str(uneven_cache)]).output
    line = next(line for line in told.splitlines() if line.strip().startswith("<u>x"))
    assert line.split()[1:] == ["30", "0.01", "10.0", "-13.5", "-13.6", "0.00", "0.00", "0", "0", "12"]
    assert "outliers by loudness: 12 (<i>7 -63.5 dBFS, <i>0 -39.5 dBFS, <i>1 -39.5 dBFS, ...)" in told


def test_a_cache_without_figures_says_so(uneven_cache, monkeypatch):
    clips = CachedClips(uneven_cache)
    clips.rows = [replace(row, quality=None) for row in clips.rows]
    assert "30 clips have no figures of their signal" in quality_text(quality_stats(clips.rows, RATE))
    monkeypatch.setattr(report, "CLIPS_SHOWN", 1)
    text = Page(clips).text
    assert "30 clips have no figures of their signal" in text
    assert "No clip stands out." in text


def test_many_speakers_of_a_strange_ledger_neither_fill_the_terminal_nor_move_its_cursor(uneven_cache):
    rows = CachedClips(uneven_cache).rows
    strange = [replace(row, clip=replace(row.clip, id="\x1b[2J", speaker="\x1b[H")) for row in rows]
    told = quality_text(quality_stats(strange, RATE))
    assert "outliers by loudness" in told
    assert "\x1b" not in told
    many = [replace(row, clip=replace(row.clip, speaker=f"s{n}")) for n, row in enumerate([*rows, *rows])]
    assert "and 30 more speakers" in quality_text(quality_stats(many, RATE))
