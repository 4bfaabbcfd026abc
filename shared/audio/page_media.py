"""Sounds and pictures inside an HTML page, as data URIs."""

import base64
import io
from typing import Any

import numpy as np
import soundfile

from xtts.shared.audio.mel_pictures import MEL_COLOURS

_MP3 = {"format": "MP3", "subtype": "MPEG_LAYER_III", "bitrate_mode": "VARIABLE", "compression_level": 0.7}


def sound_uri(samples: np.ndarray, rate: int) -> str:
    """Embed samples float32[S] at `rate` Hz as an MP3."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, **_MP3)
    return _data_uri("audio/mpeg", file)


def picture_uri(levels: np.ndarray, darkest: float, brightest: float) -> str:
    """Embed levels [T, F], time from left to right, as WebP, a third of what it takes without loss."""
    from matplotlib.image import imsave

    file, options = io.BytesIO(), dict[str, Any](quality=60)
    imsave(
        file, levels.T, format="webp", origin="lower", cmap=MEL_COLOURS, vmin=darkest, vmax=brightest,
        pil_kwargs=options,
    )
    return _data_uri("image/webp", file)


def _data_uri(kind: str, file: io.BytesIO) -> str:
    return f"data:{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
