"""One stage run under a tracer, in a process of its own: python -m code_measures.clip_trace TREE STAGE ARGUMENTS.

TREE holds the folders of the source, of any commit; ARGUMENTS are those of the stage's command. The last line that it
prints is JSON: for every function of the project that ran, how often it was entered and which functions were above it.
"""

import concurrent.futures
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ENTRIES = {"precompute": ("make_request", "run_build"), "trainer": ("training_batches", "gradient_step")}
"""Functions that a clip comes in by; only what runs below them counts."""
_AFTER_LOSS = ("backprop.py", "gradient")
"""TensorFlow's file and function that differentiate the loss."""


class InProcess(concurrent.futures.Executor):
    """Takes the place of the pool of processes, so that one tracer sees everything."""

    def __init__(self, *arguments: object, **options: object) -> None:
        """Start nothing."""

    def submit(self, fn: Callable[..., Any], /, *args: object, **kwargs: object) -> concurrent.futures.Future[Any]:
        """Run the task now."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_result(fn(*args, **kwargs))
        return future


class CallTrace:
    """Counts calls of the project's named functions below the entries of a stage, in all threads."""

    def __init__(self, folder: Path, entries: tuple[str, ...]) -> None:
        self.folder, self.entries, self.left = f"{folder}{os.sep}", entries, set(entries)
        self.calls: Counter[str] = Counter()
        self.above: dict[str, set[str]] = {}

    def __call__(self, frame: FrameType, *_: object) -> Callable[..., Any] | None:
        """What `sys.settrace` calls at every call of a Python function."""
        name = self._name(frame.f_code)
        if name is None:
            return None
        is_entry, above = frame.f_code.co_name in self.entries, self._above(frame)
        if above is not None or is_entry:
            self.calls[name] += 1
            self.above.setdefault(name, set()).update(above or ())
        frame.f_trace_lines = False
        return self._returned if is_entry else None

    def _returned(self, frame: FrameType, event: str, _: object) -> None:
        if event == "return":
            self.left.discard(frame.f_code.co_name)
            if not self.left:
                self.finish()

    def _above(self, frame: FrameType) -> set[str] | None:
        """Functions of the project between an entry and this frame; None without an entry, or after the loss."""
        found, above = set(), frame.f_back
        while above is not None:
            code = above.f_code
            if code.co_name == _AFTER_LOSS[1] and code.co_filename.endswith(_AFTER_LOSS[0]):
                return None
            if name := self._name(code):
                found.add(name)
                if code.co_name in self.entries:
                    return found
            above = above.f_back
        return None

    def _name(self, code: CodeType) -> str | None:
        """Path and name of a function of the project; None for others, comprehensions and lambdas."""
        if not code.co_filename.startswith(self.folder) or code.co_name.startswith("<"):
            return None
        return f"{code.co_filename.removeprefix(self.folder)} {code.co_qualname}"

    def finish(self) -> None:
        """Print what was found and end at once: what comes after the loss does not matter."""
        sys.settrace(None)
        found = {name: [count, sorted(self.above[name])] for name, count in self.calls.items()}
        print(f"\n{json.dumps(found)}", flush=True)
        os._exit(0)


def main() -> None:
    tree, stage, *arguments = sys.argv[1:]
    root = Path(tree).resolve()
    sys.meta_path[:] = [it for it in sys.meta_path if getattr(it, "__name__", "") != "_EditableFinder"]
    os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # what the trainer compiles meanwhile is thrown away
    concurrent.futures.ProcessPoolExecutor = InProcess  # type: ignore[misc,assignment]
    with tempfile.TemporaryDirectory(prefix="lockstep-code-") as folder:
        links = Path(folder) / "xtts"
        links.mkdir()
        for package in ("configs", "precompute", "shared", "trainer"):
            (links / package).symlink_to(root / package)
        sys.path[:0] = [folder]
        sys.argv[1:] = arguments
        command = __import__(f"xtts.{stage}.cli", fromlist=["main"]).main
        trace = CallTrace(links, ENTRIES[stage])
        threading.settrace(trace)
        sys.settrace(trace)
        command()


if __name__ == "__main__":
    main()
