"""How a long job reports where it is."""


class Progress:
    """Receives the state of a job, and ignores it; the command line draws it."""

    def say(self, text: str) -> None:
        """One line worth reading."""

    def start(self, stage: str, clips: int, seconds: float) -> None:
        """Begin a stage of so many clips and so many seconds of audio."""

    def advance(self, clips: int, seconds: float) -> None:
        """So many clips of it were done just now."""
