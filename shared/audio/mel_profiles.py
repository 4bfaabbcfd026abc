"""Mel profiles, one per vocoder family: settings, the length formula and the silence value.

Letters used everywhere: B batch, L tokens, T frames, M mel channels, S samples, D width.
"""

import math
from dataclasses import dataclass, replace

from xtts.shared.errors import LockstepError

EDGE_FRAMES = 6
"""Frames of silence at either end of a clip's mel: the model learns to start from silence and to decay into it, however
tightly the recordings are trimmed."""


@dataclass(frozen=True, kw_only=True)
class MelProfile:
    """Settings by which S samples become a log-mel of T frames and M channels, always with a periodic Hann window."""

    name: str
    sample_rate: int
    """Hz."""
    fft_size: int
    """Samples."""
    hop_samples: int
    window_samples: int
    mel_channels: int
    low_hz: float
    high_hz: float
    centered: bool
    """True: reflect n_fft/2 and T = 1 + S//hop. False: reflect (n_fft-hop)/2 and T = S//hop."""
    mel_scale: str
    """`slaney` (scale and area norm) or `htk` (no norm), as in librosa.filters.mel."""
    magnitude_floor: float
    """Constant added to re^2+im^2 under the square root."""
    log_floor: float
    """Mel magnitudes are clamped here before the natural logarithm."""

    @property
    def padding_samples(self) -> int:
        """Samples reflected at each end."""
        return self.fft_size // 2 if self.centered else (self.fft_size - self.hop_samples) // 2

    @property
    def silence(self) -> float:
        """Log-mel value of digital silence and of padding: ln(log_floor)."""
        return math.log(self.log_floor)

    def frames(self, samples: int) -> int:
        """Return T for S samples at the profile's rate."""
        return samples // self.hop_samples + (1 if self.centered else 0)

    def clip_frames(self, samples: int) -> int:
        """Return the frames of a clip of S samples, silent edges included."""
        return self.frames(samples) + 2 * EDGE_FRAMES

    @property
    def shortest_frames(self) -> int:
        """Fewest frames of a clip: with fewer it is too short for the reflection at its ends."""
        return self.clip_frames(self.padding_samples) + 1

    def seconds(self, frames: int) -> float:
        """Return the duration of T frames."""
        return frames * self.hop_samples / self.sample_rate


_HIFIGAN = MelProfile(
    name="hifigan", sample_rate=22_050, fft_size=1024, hop_samples=256, window_samples=1024, mel_channels=80,
    low_hz=0.0, high_hz=8_000.0, centered=False, mel_scale="slaney", magnitude_floor=1e-9, log_floor=1e-5,
)

_TACOTRON2 = replace(_HIFIGAN, name="tacotron2", centered=True, magnitude_floor=0.0)
_BIGVGAN24 = replace(_HIFIGAN, name="bigvgan24", sample_rate=24_000, mel_channels=100, high_hz=12_000.0)
_VOCOS24 = replace(
    _BIGVGAN24, name="vocos24", centered=True, mel_scale="htk", magnitude_floor=0.0, log_floor=1e-7
)

MEL_PROFILES: dict[str, MelProfile] = {
    profile.name: profile for profile in [_HIFIGAN, _TACOTRON2, _BIGVGAN24, _VOCOS24]
}


def mel_profile(name: str) -> MelProfile:
    """Return the profile of this name; raises `LockstepError` if there is none."""
    if name not in MEL_PROFILES:
        raise LockstepError("audio.profile", found=repr(name), expected="one of " + ", ".join(sorted(MEL_PROFILES)))
    return MEL_PROFILES[name]
