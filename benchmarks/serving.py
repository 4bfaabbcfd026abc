"""`xtts-synth serve` under load: p50 and p95, requests per second, first sound and whole time of texts, starts.

    python benchmarks/serving.py RUN [--quick] [--engines onnx] [--vocoder griffinlim|onnx:FILE] [--out FILE.json]

Each engine is started twice, first with an empty cache, where TensorFlow compiles its steps and the ONNX graph is
exported, and then with what this left. Then one text is asked for by several clients at once, each again as soon as it
has its answer, and texts of several lengths are streamed, alone and to four. `cpu_seconds` is the processor time of the
server for one request, which other work changes less than the clock. The vocoder is in all figures but the starts.
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
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from reporting.report import machine, report, section_lines, table_lines
from setup.amounts import parse, program_parser
from setup.commands import command_line

ENGINES = ("tensorflow", "onnx")
LETTERS = (100, 900, 4000)
FULL = {"clients": [1, 4, 16], "requests": 32}
QUICK = {"clients": [1, 4], "requests": 8}
SENTENCE = "The birch canoe slid on the smooth planks."
LONG = (
    "Glue the sheet to the dark blue background. It is easy to tell the depth of a well. These days a chicken leg is a "
    "rare dish. Rice is often served in round bowls. The juice of lemons makes fine punch. The box was thrown beside "
    "the parked truck. Four hours of steady work faced us. A large size in stockings is hard to sell. "
)
"""Sentences of the Harvard list."""


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder or one checkpoint")
    parser.add_argument("--vocoder", default="griffinlim", help="as of xtts-synth")
    parser.add_argument("--clients", type=int, nargs="+", help="at once")
    parser.add_argument("--requests", type=int, help="of each number of clients")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    options = parse(parser, full=FULL, quick=QUICK)
    figures = {engine: measure(engine, options) for engine in options.engines}
    section: dict[str, Any] = {
        "title": "serving",
        **{f"{engine}_{key}": seconds for engine, found in figures.items() for key, seconds in found["starts"].items()},
        "vocoder": options.vocoder,
        "table": [{"engine": engine, **row} for engine, found in figures.items() for row in found["load"]],
        **machine(("lockstep-tts", "tensorflow", "onnxruntime", "starlette", "uvicorn")),
    }  # fmt: skip
    texts = [{"engine": engine, **row} for engine, found in figures.items() for row in found["texts"]]
    report([*section_lines("server", section), *table_lines(texts)], section | {"texts": texts}, options.out)


def measure(engine: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one engine."""
    with tempfile.TemporaryDirectory() as cache:
        started, sounded = [], []
        for again in (False, True):
            with running(options, engine, cache) as server:
                started.append(server.start_seconds)
                sounded.append(server.start_seconds + server.post(SENTENCE, stream_format="audio")[0])
                if again:
                    rows = [load(server, clients, options.requests) for clients in options.clients]
                    texts = [stream(server, letters, clients) for letters in LETTERS for clients in (1, 4)]
    starts = {
        "first_start_seconds": started[0], "later_start_seconds": started[1],
        "first_start_to_sound_seconds": sounded[0], "later_start_to_sound_seconds": sounded[1],
    }  # fmt: skip
    return {"starts": starts, "load": rows, "texts": texts}


class Running:
    """A server that is ready."""

    def __init__(self, port: int, start_seconds: float) -> None:
        self.port, self.start_seconds = port, start_seconds

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
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=600) as answer:
            found = re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)
        assert found
        return float(found[1])


@contextmanager
def running(options: argparse.Namespace, engine: str, cache: str) -> Iterator[Running]:
    """A server on a free port, what it keeps in `cache`."""
    began = time.perf_counter()
    given = ("--ckpt", options.run, "--runtime", engine, "--vocoder", options.vocoder, "--port", 0, "--nfe", 10)
    line = command_line("synth", "serve", *given)
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
    half, most = np.percentile(seconds, [50, 95]).tolist()
    return {
        "clients": clients, "requests": requests, "p50_seconds": half, "p95_seconds": most,
        "requests_per_second": requests / passed, "cpu_seconds": cpu / requests,
    }  # fmt: skip


def stream(server: Running, letters: int, clients: int) -> dict[str, float | int]:
    """Of a text that so many clients ask for at once, medians: seconds to its first sound, seconds in all."""
    text = (LONG * (letters // len(LONG) + 1))[:letters]
    with ThreadPoolExecutor(clients) as threads:
        found = list(threads.map(lambda _: server.post(text, stream_format="audio"), range(clients)))
    first, whole = (float(np.median(seconds)) for seconds in list(zip(*found, strict=True))[:2])
    return {"letters": letters, "clients": clients, "first_sound_seconds": first, "whole_seconds": whole}


if __name__ == "__main__":
    main()
