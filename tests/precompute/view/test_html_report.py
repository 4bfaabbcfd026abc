"""`xtts-precompute report`: one page, whole in itself, in which the corpus is text and nothing else."""

import base64
import io
import re
import shutil
from html.parser import HTMLParser

import pytest
import soundfile
from click.testing import CliRunner

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.cli import main
from xtts.precompute.view import html_report as report
from xtts.precompute.view.cached_clips import CachedClips
from xtts.precompute.view.histogram import HEIGHT, WIDTH, draw_histogram
from xtts.precompute.view.html_report import (
    bucket_lines,
    note_counts,
    reject_lines,
    report_page,
    write_report,
)
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.clip_index import Kept
from xtts.shared.cache.quality_stats import quality_stats
from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError

HOSTILE_TEXT = "<script>alert('x')</script> & \"more\" {{ 7 * 7 }}"


class Page(HTMLParser):
    """Tags, the values of attributes that load something, and the visible text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.links, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def hostile_cache(tmp_path_factory, tone_corpus):
    """Clips of two rates and two speakers, some of them rejected, with markup in ids, texts and speakers."""
    folder = tmp_path_factory.mktemp("hostile")
    corpus = tone_corpus(folder / "corpus", 14, seconds=(0.5, 0.7))
    lines = []
    for number, line in enumerate((corpus / "metadata.csv").read_text().splitlines()):
        clip_id, _, text = line.split("|")
        strange = f"<i>{number}" if number in (1, 4) else clip_id
        (corpus / "wavs" / f"{clip_id}.wav").rename(corpus / "wavs" / f"{strange}.wav")
        spoken = HOSTILE_TEXT if number < 9 else text
        lines.append(f"{strange}|{spoken}|{spoken}|<b>{'ab'[number % 2]}")
    (corpus / "wavs" / "<i>4.wav").write_bytes(b"")
    (corpus / "wavs" / "tone-0005.wav").unlink()
    samples, _ = soundfile.read(corpus / "wavs" / "tone-0006.wav")
    soundfile.write(corpus / "wavs" / "tone-0006.wav", samples, 16_000)
    (corpus / "metadata.csv").write_text("\n".join(lines) + "\n")
    config = load_config("tiny", flags={"shapes.max_reject_fraction": 0.5, "shapes.buckets": 2})
    build_cache(corpus, folder / "features", config, workers=0, progress=NullProgress())
    return folder / "features"


@pytest.fixture(scope="module")
def hostile_page(hostile_cache):
    return report_page(CachedClips(hostile_cache), seed=0, progress=NullProgress())


def test_the_corpus_is_text_and_nothing_else(hostile_page):
    page = Page(hostile_page)
    assert "script" not in page.tags
    assert not {"i", "iframe", "object", "link"} & set(page.tags)
    assert "<i>1" in page.text
    assert "<b>a" in page.text
    assert HOSTILE_TEXT in page.text
    assert "default-src 'none'" in hostile_page


def test_nothing_is_loaded_from_elsewhere(hostile_page):
    links = Page(hostile_page).links
    assert len(links) == 24  # a picture and a sound of each of 12 clips
    assert all(link.startswith(("data:image/png;base64,", "data:audio/flac;base64,")) for link in links)
    assert not re.search(r"https?://|url\(|@import", hostile_page)


def test_pictures_and_sounds_are_those_of_the_clips(hostile_page, hostile_cache):
    clips, links = CachedClips(hostile_cache), Page(hostile_page).links
    frames = sorted(row.audio.mel_length for row in clips.rows if isinstance(row, Kept))
    sounds = [base64.b64decode(link.partition(",")[2]) for link in links if "audio" in link[:12]]
    assert sorted(soundfile.info(io.BytesIO(sound)).frames // 256 for sound in sounds) == frames
    pictures = [base64.b64decode(link.partition(",")[2]) for link in links if "image" in link[:12]]
    heights = {bucket.frames for bucket in clips.spec.buckets}
    assert {int.from_bytes(picture[16:20], "big") for picture in pictures} == heights  # padding included


def test_the_ledger_is_told_in_full(hostile_page, hostile_cache):
    rows = CachedClips(hostile_cache).rows
    kept = [row for row in rows if isinstance(row, Kept)]
    assert [(line.reason, line.count) for line in reject_lines(rows)] == [("empty audio", 1), ("missing audio", 1)]
    assert reject_lines(rows)[0].examples[0].clip.id == "<i>4"
    assert note_counts(kept) == [("resampled from 16000 Hz", 1)]
    assert [(line.name, line.clips) for line in quality_stats(rows, 22_050).speakers] == [("<b>a", 6), ("<b>b", 6)]
    text = Page(hostile_page).text
    assert all(word in text for word in ("missing audio", "resampled from 16000 Hz", "Characters to look at"))


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


def test_records_of_their_own_length_need_no_padding(tone_corpus, tmp_path):
    corpus = tone_corpus(tmp_path / "corpus", 3, seconds=(0.3, 0.6))
    config = load_config("tiny", flags={"shapes.pad_to_fixed_length": False})
    build_cache(corpus, tmp_path / "features", config, workers=0, progress=NullProgress())
    page = report_page(CachedClips(tmp_path / "features"), seed=0, progress=NullProgress())
    assert "Stored at their own length" in page
    assert page.count("<audio") == 3


def test_a_long_clip_is_shown_in_part(tone_corpus, tmp_path):
    corpus = tone_corpus(tmp_path / "corpus", 1, seconds=(16.0, 16.5))
    config = load_config("tiny", flags={"split.validation_fraction": 0.0})
    build_cache(corpus, tmp_path / "features", config, workers=0, progress=NullProgress())
    page = report_page(CachedClips(tmp_path / "features"), seed=0, progress=NullProgress())
    assert "(the first 15 s here)" in page
    (sound,) = [link for link in Page(page).links if "audio" in link[:12]]
    assert soundfile.info(io.BytesIO(base64.b64decode(sound.partition(",")[2]))).duration == pytest.approx(15, abs=0.02)


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
