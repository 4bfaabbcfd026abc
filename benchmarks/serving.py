"""`xtts-synth serve` under load: time to first sound, p50 and p95 of a request, requests per second.

    python benchmarks/serving.py RUN [--quick] [--out FILE.json]

The server is started twice, first with an empty XLA cache and then with the one that this left. Then one text is asked
for by 1, 4 and 16 clients at once, each again as soon as it has its answer, and a long text is streamed. `cpu_seconds`
is the processor time of the server for one request, which other work on the machine changes less than the clock.
"""

import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from reporting.report import machine, section_lines, write_json
from setup.commands import command_line

TOGETHER = (1, 4, 16)
FULL_REQUESTS, QUICK_REQUESTS = 96, 16
SENTENCE = "The birch canoe slid on the smooth planks."
LONG = (
    "Glue the sheet to the dark blue background. It is easy to tell the depth of a well. These days a chicken leg is a "
    "rare dish. Rice is often served in round bowls. The juice of lemons makes fine punch. The box was thrown beside "
    "the parked truck. Four hours of steady work faced us. A large size in stockings is hard to sell."
)
"""Sentences of the Harvard list."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder or one checkpoint")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REQUESTS} requests: indicative")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    requests = QUICK_REQUESTS if options.quick else FULL_REQUESTS
    with tempfile.TemporaryDirectory() as cache:
        with running(options.run, cache) as server:
            started = [server.start_seconds]
        with running(options.run, cache) as server:
            started.append(server.start_seconds)
            table = [load(server, clients, requests) for clients in TOGETHER]
            first, whole, seconds = first_sound(server, repeats=3 if options.quick else 10)
            compiled_later = server.metric("xtts_compile_seconds_total") - server.compiled
    section: dict[str, Any] = {
        "title": "serving",
        "first_start_seconds": started[0], "later_start_seconds": started[1],
        "compile_seconds_after_the_start": compiled_later,
        "long_text_audio_seconds": seconds, "long_text_first_sound_seconds": first, "long_text_seconds": whole,
        "table": table, **machine(("lockstep-tts", "tensorflow", "starlette", "uvicorn")),
    }  # fmt: skip
    print("\n".join(section_lines("server", section)))
    if options.out:
        write_json(options.out, section)


class Running:
    """A server that is ready."""

    def __init__(self, port: int, start_seconds: float) -> None:
        self.port, self.start_seconds = port, start_seconds
        self.compiled = self.metric("xtts_compile_seconds_total")

    def post(self, text: str, **more: object) -> tuple[float, float, bytes]:
        """(seconds to the first bytes, seconds in all, the sound)."""
        connection, began = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600), time.perf_counter()
        body = json.dumps({"input": text, "response_format": "wav"} | more)
        connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read(1024)
        first = time.perf_counter() - began
        data += answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"status {answer.status}: {data.decode()}")
        return first, time.perf_counter() - began, data

    def metric(self, name: str) -> float:
        """A figure of /metrics."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", "/metrics")
        found = re.search(rf"^{name} (\S+)$", connection.getresponse().read().decode(), re.MULTILINE)
        connection.close()
        assert found
        return float(found[1])


@contextmanager
def running(run: Path, cache: str) -> Iterator[Running]:
    """A server on a free port, its XLA cache in `cache`."""
    began = time.perf_counter()
    line = command_line("synth", "serve", "--ckpt", run, "--port", 0, "--steps", 10)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=os.environ | {"XDG_CACHE_HOME": cache})
    assert process.stdout
    ports = (re.match(r"ready .*:(\d+)/ ", shown) for shown in process.stdout)
    found = next((port for port in ports if port), None)
    if found is None:
        raise SystemExit(process.wait())
    yield Running(int(found[1]), time.perf_counter() - began)
    process.send_signal(signal.SIGTERM)
    process.wait()


def load(server: Running, clients: int, requests: int) -> dict[str, float | int]:
    """Latencies and rates with so many clients at once."""
    cpu, began = server.metric("process_cpu_seconds_total"), time.perf_counter()
    with ThreadPoolExecutor(clients) as threads:
        seconds = [whole for _, whole, _ in threads.map(lambda _: server.post(SENTENCE), range(requests))]
    passed = time.perf_counter() - began
    cpu = server.metric("process_cpu_seconds_total") - cpu
    return {
        "clients": clients,
        "requests": requests,
        "p50_seconds": float(np.percentile(seconds, 50)),
        "p95_seconds": float(np.percentile(seconds, 95)),
        "requests_per_second": requests / passed,
        "cpu_seconds": cpu / requests,
    }


def first_sound(server: Running, repeats: int) -> tuple[float, float, float]:
    """Medians for a streamed long text: seconds to its first sound, seconds in all, seconds of audio."""
    found = [server.post(LONG, stream_format="audio") for _ in range(repeats)]
    sound = found[0][2]
    return (
        float(np.median([first for first, _, _ in found])),
        float(np.median([whole for _, whole, _ in found])),
        (len(sound) - 44) / 2 / int.from_bytes(sound[24:28], "little"),
    )


if __name__ == "__main__":
    main()
