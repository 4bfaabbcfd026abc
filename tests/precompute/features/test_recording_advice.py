"""A build's advice on the recordings, from columns of the index alone."""

import pyarrow as pa
import pytest
from tables import cases

from xtts.precompute.features.recording_advice import recording_advice

GOOD = {
    "seconds": 5.2, "loudness_db": -24.0, "noise_floor_db": -60.0, "clipped_share": 0.0, "leading_silence": 0.1,
    "trailing_silence": 0.1, "band_hz": 10_900.0, "decay_db": 18.0, "other_channel_share": 0.04,
}


def advice(*groups, clips=300, loudness=None):
    """Of as many clips as in all groups, each with what differs from `GOOD`."""
    rows = [GOOD | different for different in groups for _ in range(clips // len(groups))]
    return recording_advice(pa.Table.from_pylist(rows), loudness)


def test_good_recordings_are_good_in_every_line():
    lines = advice({})
    assert [line.split()[0] for line in lines] == ["speech", "level", "noise", "band", "room"]
    assert lines[0] == "  speech  25 minutes (162): good"
    assert all(line.endswith(": good") for line in lines)
    assert recording_advice(pa.Table.from_pylist([GOOD])[:0], None) == []


@pytest.mark.parametrize(("line", "groups", "clips", "words"), [
    *cases(__file__)["faults"],
    (1, [{"clipped_share": 0.01}, *[{}] * 99], 300, "1% of the clips are clipped (0%): good"),
])
def test_a_fault_is_named_in_its_line_with_what_to_do(line, groups, clips, words):
    lines = advice(*groups, clips=clips)
    assert words in lines[line]
    assert all(other.endswith(": good") for other in lines[1:] if other != lines[line])


@pytest.mark.parametrize("groups", [[{"loudness_db": -20.0}, {"loudness_db": -35.0}], [{"loudness_db": -45.0}]])
def test_a_level_that_the_build_has_set_is_good(groups):
    assert "build with --set audio.loudness_lufs=-23" in advice(*groups)[1]
    assert advice(*groups, loudness=-23.0)[1].endswith(": good")
    clipped = advice(*[group | {"clipped_share": 0.01} for group in groups], loudness=-23.0)
    assert "record with less gain" in clipped[1]
