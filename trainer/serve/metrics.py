"""Counts and times of a server as Prometheus reads them (text format 0.0.4)."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from xtts.trainer.serve.warm_voice import Totals

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histograms, seconds."""


class Histogram:
    """Times in seconds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_BOUNDS) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Count one time."""
        self._counts[bisect_left(_BOUNDS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str) -> Iterator[str]:
        """The samples of a metric `name`."""
        total = 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {total}"


class Metrics:
    """What has happened since the start."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        """Answers by path and status; paths that do not exist are one."""
        self.seconds, self.first_sound = Histogram(), Histogram()
        self.abandoned = 0

    def page(self, totals: Totals, *, queue_length: int, compile_seconds: float) -> str:
        """All metrics as text."""
        answers = [
            f'xtts_requests_total{{path="{path}",status="{status}"}} {count}'
            for (path, status), count in sorted(self.answers.items())
        ]
        parts = [
            *_metric("xtts_requests_total", "counter", "Answers by path and status.", answers),
            *_metric("xtts_request_seconds", "histogram", "From a speech request to the end of its answer.",
                     self.seconds.lines("xtts_request_seconds")),
            *_metric("xtts_first_sound_seconds", "histogram", "From a speech request to its first bytes.",
                     self.first_sound.lines("xtts_first_sound_seconds")),
            *_one("xtts_queue_length", "gauge", "Requests that wait or speak.", queue_length),
            *_one("xtts_pieces_total", "counter", "Pieces of text spoken.", totals.pieces),
            *_one("xtts_abandoned_total", "counter", "Clients that left before the end.", self.abandoned),
            *_one("xtts_audio_seconds_total", "counter", "Speech made.", round(totals.audio_seconds, 6)),
            *_one("xtts_synthesis_seconds_total", "counter", "Time of making it.", round(totals.work_seconds, 6)),
            *_one("process_cpu_seconds_total", "counter", "User and system time.", round(time.process_time(), 3)),
            *_one("xtts_compile_seconds_total", "counter", "Time of making steps ready.", round(compile_seconds, 6)),
        ]  # fmt: skip
        return "\n".join(parts) + "\n"


def _metric(name: str, kind: str, description: str, samples: Iterator[str] | list[str]) -> list[str]:
    return [f"# HELP {name} {description}", f"# TYPE {name} {kind}", *samples]


def _one(name: str, kind: str, description: str, value: float) -> list[str]:
    return _metric(name, kind, description, [f"{name} {value}"])
