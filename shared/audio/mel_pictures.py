"""Pictures of log-mels, all in the same colours and the same way up. Matplotlib is imported on use."""

import io
import unicodedata
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

MEL_COLOURS = "magma"
LOUDEST = 2.0
"""Natural-log magnitude of the brightest colour in pictures to compare: loud speech hardly exceeds it."""


def draw_mel(axes: "Axes", mel: np.ndarray, *, width: float, limits: tuple[float, float] | None = None) -> "AxesImage":
    """Draw a mel [T, M] on axes whose x runs from 0 to `width`; the colour bar is up to the caller.

    limits: natural-log magnitudes of the darkest and the brightest colour; by default the mel's own.
    """
    low, high = limits or (None, None)
    axes.set_ylabel("mel channel")
    return axes.imshow(
        mel.T, origin="lower", aspect="auto", interpolation="nearest", cmap=MEL_COLOURS,
        extent=(0.0, width, 0.0, mel.shape[1]), vmin=low, vmax=high,
    )


@lru_cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont("DejaVu Sans")).get_charmap())


def has_glyphs(text: str) -> bool:
    """Whether matplotlib's default font has a glyph for every character."""
    return all(ord(character) in _glyphs() for character in text)


def can_draw(text: str) -> bool:
    """Whether matplotlib can set a text: it has the glyphs, and no part of it runs from right to left.

    Matplotlib neither joins Arabic letters nor reverses their order; such a text belongs beside the picture.
    """
    return has_glyphs(text) and not any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def png_bytes(figure: "Figure") -> bytes:
    """Return a figure as a PNG file."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # drawn as an empty box
        file = io.BytesIO()
        figure.savefig(file, format="png")
    return file.getvalue()
