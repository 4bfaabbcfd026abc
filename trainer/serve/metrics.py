"""Counts and times of this process, for Prometheus at `/metrics`."""

import time
from collections.abc import Container, Iterator, Sized

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xtts.trainer.speech.synthesizer import Synthesizer

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histograms, seconds."""

disable_created_metrics()  # type: ignore[no-untyped-call]
REGISTRY = CollectorRegistry()
ANSWERS = Counter("xtts_requests_total", "Answers by path and status.", ["path", "status"], registry=REGISTRY)
REQUEST_SECONDS = Histogram(
    "xtts_request_seconds", "From a speech request to the end of its answer.", registry=REGISTRY, buckets=_BOUNDS
)
FIRST_SOUND_SECONDS = Histogram(
    "xtts_first_sound_seconds", "From a speech request to its first bytes.", registry=REGISTRY, buckets=_BOUNDS
)
ABANDONED = Counter("xtts_abandoned_total", "Clients that disconnected before the end.", registry=REGISTRY)
PIECES = Counter("xtts_pieces_total", "Pieces of text spoken.", registry=REGISTRY)
AUDIO_SECONDS = Counter("xtts_audio_seconds_total", "Seconds of speech produced.", registry=REGISTRY)
SYNTHESIS_SECONDS = Counter("xtts_synthesis_seconds_total", "Seconds of synthesis.", registry=REGISTRY)


class LiveMetrics(Collector):
    """Metrics that are read from their sources when Prometheus asks."""

    def __init__(self, queue: Sized, synthesizer: Synthesizer) -> None:
        self._queue, self._synthesizer = queue, synthesizer

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; Prometheus appends `_total` to a counter's name."""
        yield GaugeMetricFamily("xtts_queue_length", "Requests waiting or being spoken.", len(self._queue))
        yield CounterMetricFamily("xtts_compile_seconds", "Seconds of compilation.", self._synthesizer.compile_seconds)
        yield CounterMetricFamily("process_cpu_seconds", "User and system time.", time.process_time())


class CountAnswers:
    """Middleware that counts responses by path and status."""

    def __init__(self, app: ASGIApp, *, paths: Container[str]) -> None:
        """paths: all that exist."""
        self._app, self._paths = app, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                path = scope["path"] if scope["path"] in self._paths else "other"
                ANSWERS.labels(path, message["status"]).inc()
            await send(message)

        await self._app(scope, receive, send_counted)
