"""`--seconds`: the frames of each piece of a text that is to last for a given time."""

from collections.abc import Sequence
from dataclasses import dataclass

from xtts.shared.errors import LockstepError

MOST_CHANGE = 4.0
"""A text may be spoken in a quarter to four times its own time, the range of `--speed`."""


@dataclass(frozen=True, kw_only=True)
class TimedPiece:
    """One piece of a text before it is spoken."""

    tokens: int
    frames: int
    """At speed 1, at least its tokens."""


def check_seconds(
    seconds: float, pieces: Sequence[TimedPiece], *, frames_per_second: float, pauses: int, where: str
) -> None:
    """Raise `LockstepError` for a text that cannot be spoken in that time.

    pauses: frames between the pieces, which count and are not scaled, where: the text, for messages.
    """
    own, tokens = sum(piece.frames for piece in pieces), sum(piece.tokens for piece in pieces)
    shortest, longest = max(own / MOST_CHANGE, tokens), own * MOST_CHANGE
    if not shortest <= round(seconds * frames_per_second) - pauses <= longest:
        least, itself, most = ((frames + pauses) / frames_per_second for frames in (shortest, own, longest))
        raise LockstepError(
            where, found=f"{seconds:g} s asked for", expected=f"{least + 0.005:.2f} to {most - 0.005:.2f} s",
            fix=f"ask for a time near its own, {itself:.2f} s, or change the text",
        )  # fmt: skip


def share_frames(asked: int, pieces: Sequence[TimedPiece]) -> list[int]:
    """The frames of each piece: in proportion to its own, at least one for each token, and `asked` in all."""
    own, tokens = sum(piece.frames for piece in pieces), sum(piece.tokens for piece in pieces)
    shares = []
    for piece in pieces:
        own, tokens = own - piece.frames, tokens - piece.tokens
        share = round(asked * piece.frames / (piece.frames + own))
        shares.append(min(max(share, piece.tokens), asked - tokens))
        asked -= shares[-1]
    return shares
