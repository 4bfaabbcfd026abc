"""How a log-mel is drawn, wherever one is: the same colours, the same way up. Matplotlib is imported by use."""

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
"""Natural-log magnitude of the brightest colour, where pictures are to be compared: loud speech hardly passes it."""


def draw_mel(axes: "Axes", mel: np.ndarray, *, width: float, limits: tuple[float, float] | None = None) -> "AxesImage":
    """Put a mel [T, M] on axes whose x runs from 0 to `width` for its T frames; the colour bar is the caller's.

    limits: natural-log magnitudes of the darkest and the brightest colour; the mel's own where none are given.
    """
    low, high = limits or (None, None)
    axes.set_ylabel("mel channel")
    return axes.imshow(
        mel.T, origin="lower", aspect="auto", interpolation="nearest", cmap=MEL_COLOURS,
        extent=(0.0, width, 0.0, mel.shape[1]), vmin=low, vmax=high,
    )  # fmt: skip


@lru_cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont("DejaVu Sans")).get_charmap())


def has_glyphs(text: str) -> bool:
    """Whether matplotlib's own font has every character, one by one."""
    return all(ord(character) in _glyphs() for character in text)


def can_draw(text: str) -> bool:
    """Whether matplotlib sets a text as it is read: it has the glyphs, and nothing runs from right to left.

    It neither joins Arabic letters nor turns their order round; such a text belongs beside the picture.
    """
    return has_glyphs(text) and not any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def png_bytes(figure: "Figure") -> bytes:
    """The figure as a PNG file."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # drawn as an empty box
        file = io.BytesIO()
        figure.savefig(file, format="png")
    return file.getvalue()
