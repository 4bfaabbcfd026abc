"""Figures of speech: distortion against a plain reference, retrieval on made-up distances, the command on a run."""

import json
import math

import numpy as np
import pytest
import scipy.fft
from cache_files import index_path

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.cache.clip_index import read_index
from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation import cepstral_distortion as cepstra_module
from xtts.trainer.evaluation.cepstral_distortion import DECIBELS, cepstra, warped_distances
from xtts.trainer.evaluation.figures import best_wrong, distance_table, mean_figures, score_sentences
from xtts.trainer.evaluation.held_out_clips import read_clips
from xtts.trainer.synth.cli import main
from xtts.trainer.synth.evaluate import spread
from xtts.trainer.synth.voice_source import open_source


def plain_warp(a, b):
    """Mean distance along the cheapest path, cell by cell in float64."""
    total, cells = np.full((len(a) + 1, len(b) + 1), np.inf), np.zeros((len(a) + 1, len(b) + 1))
    total[0, 0] = 0
    for i in range(len(a)):
        for j in range(len(b)):
            before = [(i, j), (i + 1, j), (i, j + 1)]
            best = min(before, key=lambda place: total[place])
            total[i + 1, j + 1] = total[best] + math.dist(a[i], b[j])
            cells[i + 1, j + 1] = cells[best] + 1
    return total[-1, -1] / cells[-1, -1]


def mels(lengths, seed=0, channels=80):
    random = np.random.default_rng(seed)
    return [np.cumsum(random.standard_normal((length, channels)), axis=0).astype(np.float32) for length in lengths]


@pytest.mark.parametrize("cells", [1, 300, 2**22])
def test_warping_is_that_of_a_plain_reference(monkeypatch, cells):
    monkeypatch.setattr(cepstra_module, "_CELLS", cells)
    random = np.random.default_rng(1)
    for length in (1, 2, 7, 19):
        query = random.standard_normal((length, 13)).astype(np.float32)
        references = [random.standard_normal((n, 13)).astype(np.float32) for n in (1, 2, 5, 18, 9, 18)]
        expected = [DECIBELS * plain_warp(query.tolist(), reference.tolist()) for reference in references]
        np.testing.assert_allclose(warped_distances(query, references), expected, rtol=1e-4)


def test_cepstra_are_a_scaled_cosine_transform_without_the_loudness():
    (mel,) = mels([6])
    expected = scipy.fft.dct(mel, type=2, axis=1)[:, 1:14] / 80
    np.testing.assert_allclose(cepstra(mel), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(cepstra(mel + 3.0), cepstra(mel), atol=1e-4)


def test_the_distance_of_a_ripple_is_its_root_mean_square_in_decibels():
    ripple = 0.3 * np.cos(np.pi * 3 * (np.arange(80) + 0.5) / 80)  # nats of magnitude
    flat = np.zeros((4, 80), np.float32)
    (distance,) = warped_distances(cepstra(flat), [cepstra(flat + ripple)])
    assert distance == pytest.approx(np.sqrt(np.mean(np.square(20 / math.log(10) * ripple))), rel=1e-4)


def test_a_clip_is_at_no_distance_from_itself_however_slowly_it_is_said():
    (mel,) = mels([40])
    table = distance_table([mel, np.repeat(mel, 2, axis=0)], [mel])
    np.testing.assert_allclose(table, 0.0, atol=0.02)


def test_retrieval_and_relative_distortion():
    ids, lengths = ["a", "b", "c"], [100, 80, 120]
    recorded = np.array([[0, 4, 8], [4, 0, 2], [8, 2, 0]], float)
    distances = np.array([[1, 5, 9], [3, 1.5, 1], [9, 9, 1]], float)
    first, second, third = score_sentences(distances, [110, 80, 90], [0, 1, 2], recorded, lengths, ids)
    assert (first.nearest, second.nearest, third.nearest) == ("a", "c", "c")
    assert [s.retrieved for s in (first, second, third)] == [True, False, True]
    assert [s.relative_mcd for s in (first, second, third)] == [1 / 4, 1.5 / 2, 1 / 2]
    assert [s.duration_error for s in (first, second, third)] == [0.1, 0.0, 0.25]
    mean = mean_figures([first, second, third])
    assert mean.retrieval_at_1 == pytest.approx(2 / 3)
    assert mean.relative_mcd == pytest.approx(0.5)
    wrong = best_wrong([0, 1, 2], recorded, lengths, ids)
    assert [(s.nearest, s.mcd_db, s.relative_mcd) for s in wrong] == [("b", 4, 1), ("c", 2, 1), ("b", 2, 1)]
    assert wrong[0].duration_error == pytest.approx(0.2)


def test_noisy_copies_find_their_originals_among_all():
    originals = mels([30, 24, 28, 35, 24])
    copies = [mel + np.random.default_rng(5).normal(0, 0.3, mel.shape).astype(np.float32) for mel in originals[1:4]]
    recorded = distance_table(originals[1:4], originals)
    said = distance_table(copies, originals)
    sentences = score_sentences(said, [24, 28, 35], [1, 2, 3], recorded, [30, 24, 28, 35, 24], list("vwxyz"))
    assert mean_figures(sentences).retrieval_at_1 == 1.0
    assert mean_figures(sentences).relative_mcd < 0.5


@pytest.mark.parametrize(("clips", "limit", "expected"), [(5, 9, [0, 1, 2, 3, 4]), (10, 3, [0, 3, 6]), (2, 1, [0])])
def test_a_limit_is_spread_over_the_clips(clips, limit, expected):
    assert spread(clips, limit) == expected


def test_held_out_clips_are_those_of_the_ledger(finished_run, tiny_cache):
    source = open_source(finished_run[0])
    clips = read_clips(tiny_cache, source.voice)
    rows = {row.clip.id: row for row in read_index(index_path(tiny_cache)) if row.place.split == "validation"}
    assert [clip.clip_id for clip in clips] == sorted(rows)
    for clip in clips:
        assert clip.ids == source.voice.symbol_table.encode(rows[clip.clip_id].clip.text).ids
        assert clip.mel.shape == (rows[clip.clip_id].audio.mel_length, 80)


def test_a_cache_of_another_voice_is_refused(finished_run, tiny_cache):
    voice = open_source(finished_run[0]).voice
    for changes, message in (({"profile": "tacotron2"}, "mel profile hifigan"), ({"speakers": ["x"]}, "speakers")):
        with pytest.raises(LockstepError, match=message):
            read_clips(tiny_cache, voice.model_copy(update=changes))


def test_the_command_on_a_run(finished_run, tiny_cache, call, tmp_path):
    out = tmp_path / "figures.json"
    code, screen, err = call(main, "evaluate", "--ckpt", finished_run[0], "--json", out, "--steps", 2)
    assert code == 0, err
    assert "retrieval@1" in screen
    systems = json.loads(out.read_text())["systems"]
    assert set(systems) == {"synthesised", "vocoded recording", "best wrong sentence"}
    assert systems["vocoded recording"]["retrieval_at_1"] == 1.0
    assert systems["vocoded recording"]["duration_error"] == 0.0
    assert systems["best wrong sentence"]["relative_mcd"] == 1.0
    held_out = sum(bucket.clips("validation") for bucket in load_spec(tiny_cache).buckets)
    assert len(systems["synthesised"]["sentences"]) == held_out
