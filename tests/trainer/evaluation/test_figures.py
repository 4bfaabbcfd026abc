"""Retrieval and relative distortion, on made-up distances."""

import numpy as np
import pytest

from xtts.trainer.evaluation.figures import best_wrong, distance_table, mean_figures, score_sentences


def test_a_clip_is_at_no_distance_from_itself_however_slowly_it_is_said():
    mel = np.cumsum(np.random.default_rng(0).standard_normal((40, 80)), axis=0).astype(np.float32)
    table = distance_table([mel, np.repeat(mel, 2, axis=0)], [mel, mel[::-1]])
    np.testing.assert_allclose(table[:, 0], 0.0, atol=0.02)
    assert (table[:, 1] > 1).all()


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


def test_sentences_compete_with_recordings_that_are_not_spoken():
    distances = np.array([[5, 1, 9], [3, 2, 4]], float)
    recorded = np.array([[2, 0, 4], [8, 6, 0]], float)
    sentences = score_sentences(distances, [80, 100], [1, 2], recorded, [50, 80, 100], ["u", "v", "w"])
    assert [(s.nearest, s.retrieved, s.relative_mcd) for s in sentences] == [("v", True, 1 / 2), ("v", False, 4 / 6)]
