"""What `stats` and `report` show of quality: all of it as text, the worst to hear, and no more of them than ten."""

import base64
import io
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from xtts.precompute.build.build_cache import build_cache
from xtts.precompute.cli import main
from xtts.precompute.view import html_report as report
from xtts.precompute.view.cached_clips import CachedClips
from xtts.precompute.view.html_report import report_page
from xtts.precompute.view.terminal import quality_text
from xtts.precompute.workers.progress import NullProgress
from xtts.shared.cache.quality_stats import quality_stats
from xtts.shared.config_files import load_config

RATE = 22_050
BROKEN = tuple(range(12))


class Page(HTMLParser):
    """Tags, sounds and visible text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.sounds, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.sounds += [base64.b64decode(dict(attrs)["src"].partition(",")[2])] if tag == "audio" else []

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """30 clips of one speaker, twelve of them too quiet, the seventh the worst; ids and speaker hold markup."""
    folder = tmp_path_factory.mktemp("views")
    (folder / "corpus" / "wavs").mkdir(parents=True)
    lines = []
    for number in range(30):
        time = np.arange(round((7.0 if number == 7 else 0.8) * RATE)) / RATE
        gain = (10**-2.5 if number == 7 else 0.05) if number in BROKEN else 1.0
        soundfile.write(folder / "corpus" / "wavs" / f"<i>{number}.wav", 0.3 * gain * np.sin(1500 * time), RATE)
        text = "a" * round(10 * len(time) / RATE)
        lines.append(f"<i>{number}|{text}|{text}|<u>x")
    (folder / "corpus" / "metadata.csv").write_text("\n".join(lines) + "\n")
    build_cache(folder / "corpus", folder / "features", load_config("tiny"), workers=0, progress=NullProgress())
    return folder / "features"


@pytest.fixture
def page(cache, monkeypatch):
    monkeypatch.setattr(report, "CLIPS_SHOWN", 1)
    return Page(report_page(CachedClips(cache), seed=0, progress=NullProgress()))


def test_the_ten_worst_can_be_heard_in_a_few_seconds_each(page):
    assert len(page.sounds) == 10 + 1
    _, heard = page.text.split("The worst to hear")
    assert heard.index("<i>7") < heard.index("<i>0")
    assert "(the first 6 s here)" in heard
    assert "wavs/<i>7.wav" in heard
    assert soundfile.info(io.BytesIO(page.sounds[0])).duration == pytest.approx(6, abs=0.02)
    assert max(soundfile.info(io.BytesIO(sound)).duration for sound in page.sounds[1:10]) < 6
    assert "loudness -63.5 dBFS, median -13.5 dBFS" in heard


def test_ids_and_speakers_are_text_and_nothing_else(page):
    assert not {"i", "u", "script"} & set(page.tags)
    assert "<u>x" in page.text
    assert "<i>7" in page.text


def test_stats_show_the_figures_and_the_farthest(cache):
    told = CliRunner().invoke(main, ["stats", "--cache", str(cache)]).output
    line = next(line for line in told.splitlines() if line.strip().startswith("<u>x"))
    assert line.split()[1:] == ["30", "0.01", "10.0", "-13.5", "-13.6", "0.00", "0.00", "0", "0", "12"]
    assert "outliers by loudness: 12 (<i>7 -63.5 dBFS, <i>0 -39.5 dBFS, <i>1 -39.5 dBFS, ...)" in told


def test_a_cache_without_figures_says_so(cache, monkeypatch):
    clips = CachedClips(cache)
    clips.rows = [replace(row, quality=None) for row in clips.rows]
    assert "30 clips have no figures of their signal" in quality_text(quality_stats(clips.rows, RATE))
    monkeypatch.setattr(report, "CLIPS_SHOWN", 1)
    text = Page(report_page(clips, seed=0, progress=NullProgress())).text
    assert "30 clips have no figures of their signal" in text
    assert "No clip stands out." in text


def test_a_strange_ledger_does_not_move_the_cursor(cache):
    rows = [replace(row, clip=replace(row.clip, id="\x1b[2J", speaker="\x1b[H")) for row in CachedClips(cache).rows]
    told = quality_text(quality_stats(rows, RATE))
    assert "outliers by loudness" in told
    assert "\x1b" not in told


def test_only_the_first_speakers_are_listed(cache):
    rows = CachedClips(cache).rows
    many = [replace(row, clip=replace(row.clip, speaker=f"s{n}")) for n, row in enumerate([*rows, *rows])]
    assert "and 30 more speakers" in quality_text(quality_stats(many, RATE))
