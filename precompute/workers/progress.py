"""How a long job reports where it is."""

from typing import Protocol


class Progress(Protocol):
    """Receives the state of a job; the command line draws it, tests ignore it."""

    def say(self, text: str) -> None:
        """One line worth reading."""

    def start(self, stage: str, clips: int, seconds: float) -> None:
        """Begin a stage of so many clips and so many seconds of audio."""

    def advance(self, clips: int, seconds: float) -> None:
        """So many clips of it were done just now."""


class NullProgress:
    """Watches without a word."""

    def say(self, text: str) -> None:
        """Ignore it."""

    def start(self, stage: str, clips: int, seconds: float) -> None:
        """Ignore it."""

    def advance(self, clips: int, seconds: float) -> None:
        """Ignore it."""
