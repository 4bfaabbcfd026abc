from itertools import combinations

import numpy as np
import pytest
from fuzzing import fuzzed

from xtts.shared.cache.bucket_shapes import (
    BucketShape,
    best_padded_lengths,
    choose_shapes,
    fill,
    fitting_buckets,
    round_up,
)


@fuzzed(few=1, many=50)
@pytest.mark.parametrize("buckets", [1, 2, 3, 4])
def test_no_other_padded_lengths_are_better(buckets, fuzz):
    for frames in np.random.default_rng(fuzz.seed() + buckets).integers(1, 120, size=(fuzz.examples, 60)).tolist():
        candidates = sorted({round_up(f) for f in frames})
        choices = (sorted({*chosen, candidates[-1]}) for chosen in combinations(candidates, buckets - 1))
        best = max(fill(frames, choice) for choice in choices)
        assert fill(frames, best_padded_lengths(frames, buckets)) == best


def test_a_shape_holds_the_longest_text_and_is_never_empty():
    shapes = choose_shapes([3, 17, 40, 9], [10, 12, 90, 96], 2)
    assert shapes == [BucketShape(tokens=24, frames=16), BucketShape(tokens=40, frames=96)]
    assert choose_shapes([1], [1], 4) == [BucketShape(tokens=8, frames=8)]


@pytest.mark.parametrize(("clips", "shapes"), [(1, 1), (20, 1), (39, 1), (40, 2), (79, 3), (80, 4), (1000, 4)])
def test_few_clips_have_few_shapes_to_compile(clips, shapes):
    lengths = np.arange(clips) * 8 + 8
    assert len(choose_shapes(lengths, lengths, "auto")) == shapes


def test_the_smallest_shape_that_holds_both_lengths_is_taken():
    shapes = [BucketShape(tokens=8, frames=16), BucketShape(tokens=24, frames=96)]
    assert fitting_buckets(shapes, [8, 9, 9], [16, 16, 97]).tolist() == [0, 1, -1]
