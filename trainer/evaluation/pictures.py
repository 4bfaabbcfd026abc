"""Pictures of speech next to its recording, for TensorBoard and the README. Matplotlib is imported on use."""

from typing import TYPE_CHECKING

import numpy as np

from xtts.shared.audio.mel_pictures import LOUDEST, draw_mel
from xtts.shared.audio.mel_profiles import MelProfile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABELLED_TOKENS = 60
"""Largest number of symbols that is readable on an axis."""


def draw_pair(recorded: np.ndarray, spoken: np.ndarray, profile: MelProfile) -> "Figure":
    """Draw the mels of a recording and its synthesis, [T, M] each, one above the other with shared time and colours."""
    figure = _figure(4.6)
    axes = figure.subplots(2, 1, sharex=True, sharey=True)
    limits = (profile.silence, LOUDEST)
    for axis, mel, name in zip(axes, (recorded, spoken), ("recording", "synthesised"), strict=True):
        image = draw_mel(axis, mel, width=profile.seconds(len(mel)), limits=limits)
        axis.set_title(f"{name}, {profile.seconds(len(mel)):.2f} s", loc="left", fontsize=9)
    axes[0].set_xlim(0.0, profile.seconds(max(len(recorded), len(spoken))))
    axes[1].set_xlabel("seconds")
    figure.colorbar(image, ax=axes, label="natural-log magnitude", pad=0.01)
    return figure


def draw_alignment(
    durations: np.ndarray, recorded: np.ndarray, profile: MelProfile, symbols: list[str]
) -> "Figure":
    """Draw a recording's mel and, below it, the token that each frame is aligned to.

    durations: int[L], frames per token, recorded: [T, M], symbols: L strings.
    """
    figure = _figure(5.6)
    above, axes = figure.subplots(2, 1, sharex=True, height_ratios=[1.0, 2.0])
    seconds = profile.seconds(len(recorded))
    draw_mel(above, recorded, width=seconds, limits=(profile.silence, LOUDEST))
    path = np.repeat(np.arange(len(durations)), durations)
    grid = path[None, :] == np.arange(len(durations))[:, None]
    axes.imshow(
        grid, origin="lower", aspect="auto", interpolation="nearest", cmap="Blues", vmin=0, vmax=1,
        extent=(0.0, seconds, 0.0, len(durations)),
    )
    axes.set_xlabel("seconds")
    if len(symbols) > _LABELLED_TOKENS:
        axes.set_ylabel("token")
    else:
        from matplotlib.font_manager import findfont
        from matplotlib.ft2font import FT2Font

        glyphs = FT2Font(findfont("DejaVu Sans")).get_charmap().keys()  # others would be boxes, all alike
        labels = [symbol if glyphs >= {*map(ord, symbol)} else f"U+{ord(symbol[0]):04X}" for symbol in symbols]
        labels = ["\N{OPEN BOX}" if label == " " else label for label in labels]
        axes.set_yticks(np.arange(len(symbols)) + 0.5, labels, fontsize=6, parse_math=False)
    return figure


def _figure(inches_high: float) -> "Figure":
    from matplotlib.figure import Figure  # takes a quarter of a second; not pyplot, which would look for a display

    return Figure(figsize=(9.0, inches_high), dpi=100, layout="constrained")
