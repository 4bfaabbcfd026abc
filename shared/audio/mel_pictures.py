"""Pictures of log-mels, all in the same colours and the same way up. Matplotlib is imported on use."""

import io
import warnings
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


def png_bytes(figure: "Figure") -> bytes:
    """Return a figure as a PNG file."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # drawn as an empty box
        file = io.BytesIO()
        figure.savefig(file, format="png")
    return file.getvalue()
