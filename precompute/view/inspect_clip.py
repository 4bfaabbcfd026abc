"""`xtts-precompute inspect`: a picture of a clip's stored mel, and audio reconstructed from it."""

from pathlib import Path

import numpy as np
import soundfile

from xtts.precompute.view.cached_clips import CachedClips, plain
from xtts.precompute.workers.disks import disk_errors_explained
from xtts.shared.audio.griffin_lim import reconstruct
from xtts.shared.audio.mel_pictures import draw_mel, png_bytes
from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.cache.clip_index import IndexRow
from xtts.shared.cache.records import Record

_INCHES_WIDE, _INCHES_HIGH, _DOTS_PER_INCH = 12.0, 5.4, 120
_PADDING = "#9a9a9a"
_NAME_BYTES = 250  # a file system's most, less the suffix


def inspect_clip(cache: Path, clip_id: str, out: Path) -> str:
    """Write `ID.png` and `ID.wav` into `out`; return the lines to print, of a rejected clip the reason."""
    clips = CachedClips(cache)
    row = clips.row(clip_id)
    segment = "" if row.clip.start is None else f", {row.seconds:g} s starting at {row.clip.start:g} s"
    about = [*([f"text: {row.clip.text}"] if row.clip.text else []), f"audio: {row.clip.source}{segment}"]
    if not row.is_kept:
        reason = f"{row.clip.id}: rejected, {row.reason}" + (f" ({row.detail})" if row.detail else "")
        return "\n".join(map(plain, [reason, *about]))
    record, profile = clips.read(row), clips.spec.mel_profile
    with disk_errors_explained(out):
        out.mkdir(parents=True, exist_ok=True)
        name = row.clip.id.replace("/", "_").encode()[:_NAME_BYTES].decode(errors="ignore")  # a crop has a slash
        picture, sound = (out / f"{name}{ending}" for ending in (".png", ".wav"))
        picture.write_bytes(draw_clip(row, record, profile))
        soundfile.write(sound, reconstruct(record.unpadded_mel, profile), profile.sample_rate, subtype="PCM_16")
    lines = [figures_text(row, record, profile), *about]
    lines += [f"notes: {row.notes}"] if row.notes else []
    lines += [f"characters without a token: {left_out}"] if (left_out := row.left_out) else []
    lines += [f"{picture}", f"{sound} (reconstructed from the stored mel)"]
    return "\n".join(map(plain, lines))


def figures_text(row: IndexRow, record: Record, profile: MelProfile) -> str:
    """Return a line with the clip's lengths, stored lengths and bucket."""
    tokens = f"{record.token_length} of {len(record.tokens)} tokens, " if row.clip.text else ""
    frames = f"{record.mel_length} of {len(record.mel)} frames ({row.seconds:.2f} s)"
    return f"{row.clip.id}: {tokens}{frames}, {row.split} bucket {row.bucket:02d}"


def draw_clip(row: IndexRow, record: Record, profile: MelProfile) -> bytes:
    """Draw the stored mel, its padding shaded; return the bytes of a PNG."""
    from matplotlib.figure import Figure  # imported in 0.25 s; pyplot would look for a screen

    figure = Figure(figsize=(_INCHES_WIDE, _INCHES_HIGH), dpi=_DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots()
    mel, used = record.mel.astype(np.float32), record.mel_length
    image = draw_mel(axes, mel, width=len(mel))
    figure.colorbar(image, ax=axes, label="natural-log magnitude", pad=0.01)
    if used < len(mel):
        axes.axvspan(used, len(mel), facecolor=_PADDING, alpha=0.55, hatch="//", edgecolor="white", linewidth=0)
        axes.axvline(used, color="white", linewidth=1.2)
    axes.set_xlabel("frames (padding shaded)" if used < len(mel) else "frames")
    seconds = axes.twiny()
    seconds.set_xlim(0.0, profile.seconds(len(mel)))
    seconds.set_xlabel("seconds")
    # A dollar sign in an id must not start a formula.
    figure.suptitle(plain(figures_text(row, record, profile)), parse_math=False, fontsize=11)
    return png_bytes(figure)
