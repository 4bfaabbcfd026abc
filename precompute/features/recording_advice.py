"""Will these recordings make a good voice? Their figures beside those of our voice's recordings, and what to do."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from xtts.shared.audio.signal_quality import NOISY_DB, QUIET_DB
from xtts.shared.cache.clip_index import KEPT, QUALITIES, readable_index
from xtts.shared.errors import counted_noun

ADVICE_TITLE = "the recordings, in brackets those that our voice was trained on:"
_ENOUGH_MINUTES = 3
"""Speech in fifty sentences, without pauses: with fewer a voice that starts from ours is harder to understand
(docs/training.md)."""
_CLIPPED = 0.02
"""Share of clips with clipping that shows too high a level; fewer may be shouts."""
_UNEVEN_DB = 6.0
_DULL_HZ = 7_000.0
_REVERBERANT_DB = 12.5
"""Steepest falls below this: 0.3 s of reverberation 6 dB below the voice makes 11 to 12.5 dB of 14 to 22."""
TWO_PEOPLE = 0.05
"""Share of another channel, above which it is another person's."""


def read_quality(index: Path) -> pa.Table:
    """Read `seconds` and the columns of `SignalQuality` of the kept clips that were measured."""
    with readable_index(index) as file:
        table = file.read(columns=["status", "seconds", *QUALITIES])
    return table.filter(pc.and_(pc.equal(table["status"], KEPT), pc.is_valid(table["loudness_db"])))


def recording_advice(quality: pa.Table, loudness_lufs: float | None) -> list[str]:
    """Return five lines about recordings: figures, those of our voice's in brackets, and what to do.

    There is a sixth if two people may be in two channels that were mixed.

    quality: as from `read_quality`; without clips there are no lines. loudness_lufs: of the cache, None if as recorded.
    """
    if not len(quality):
        return []
    figures = {name: quality[name].to_numpy().astype(np.float64) for name in quality.column_names if name != "status"}
    minutes = float((figures["seconds"] - figures["leading_silence"] - figures["trailing_silence"]).sum()) / 60
    loudness, spread = float(np.median(figures["loudness_db"])), float(figures["loudness_db"].std())
    above_noise = float(np.median(figures["loudness_db"] - figures["noise_floor_db"]))
    clipped = float((figures["clipped_share"] > 0).mean())
    band, decay = float(np.median(figures["band_hz"])), float(np.median(figures["decay_db"]))
    rows = [
        ("speech", f"{minutes:.0f} minutes (162)",
         "record more: fifty sentences, four minutes, are much better" if minutes < _ENOUGH_MINUTES else ""),
        ("level", f"{loudness:.0f} dBFS (-28, -23), {clipped:.0%} of the clips are clipped (0%)",
         _level(loudness, spread, clipped, is_set=loudness_lufs is not None)),
        ("noise", f"{above_noise:.0f} dB below the speech (26, 31)",
         "record in a quieter place, or filter the noise: the voice learns it" if above_noise < NOISY_DB else ""),
        ("band", f"up to {band / 1000:.1f} kHz (10.7, 7.4)",
         "use the originals, not telephone or lossy copies: the voice will be as dull" if band < _DULL_HZ else ""),
        ("room", f"falls by {decay:.0f} dB in 60 ms (15, 21)",
         "record nearer to the microphone in a furnished room: the voice will echo" if decay < _REVERBERANT_DB else ""),
    ]
    if differing := int((figures["other_channel_share"] > TWO_PEOPLE).sum()):
        take = "if they are two people, take one: --set audio.channel=0, the left, or 1"
        rows.append(
            ("stereo", f"{differing} of {counted_noun(len(quality), 'clip')} mixed from channels that differ", take)
        )
    return [f"  {name:6}  {figure}: {advice or 'good'}" for name, figure, advice in rows]


def _level(loudness: float, spread: float, clipped: float, *, is_set: bool) -> str:
    if clipped > _CLIPPED:
        return "record with less gain, or reject those clips (data.filters.max_clipped_share=0)"
    problem = "quiet, and so will the voice be" if loudness < QUIET_DB else ""
    problem = f"uneven, {spread:.0f} dB between clips" if spread > _UNEVEN_DB else problem
    return f"{problem}; build with --set audio.loudness_lufs=-23" if problem and not is_set else ""
