"""The workers of a run, as TF_CONFIG names them; nothing here imports TensorFlow."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xtts.shared.errors import LockstepError

VARIABLE = "TF_CONFIG"
_EXPECTED = '{"cluster": {"worker": ["HOST:PORT", ...]}, "task": {"type": "worker", "index": 0}}'


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The processes that train together, and which of them this one is."""

    addresses: tuple[str, ...]
    """HOST:PORT of each worker."""
    index: int
    """Number of this worker."""

    @property
    def chief(self) -> bool:
        """True for the worker that owns the run folder."""
        return self.index == 0

    @property
    def name(self) -> str:
        """The worker, in words."""
        return f"worker {self.index} of {len(self.addresses)}"


def find_cluster(strategy: str, environment: Mapping[str, str] = os.environ) -> Cluster | None:
    """The cluster that a strategy trains on; None where this process trains alone.

    strategy: `training.strategy`. Raises `LockstepError` for a TF_CONFIG that is missing or malformed.
    """
    text = environment.get(VARIABLE, "")
    if strategy not in ("auto", "multiworker") or (strategy == "auto" and not text):
        return None
    if not text:
        raise LockstepError(
            "training.strategy", found=f"multiworker, but {VARIABLE} is not set", expected=_EXPECTED,
            fix="set it for every worker (docs/devices.md), or train with --set training.strategy=auto",
        )  # fmt: skip
    cluster = _read(text)
    return cluster if len(cluster.addresses) > 1 else None


def _read(text: str) -> Cluster:
    try:
        fields: Any = json.loads(text)
    except ValueError as error:
        raise _wrong(f"not JSON ({error})") from None
    jobs, task = (fields.get(name) if isinstance(fields, dict) else None for name in ("cluster", "task"))
    if not isinstance(jobs, dict) or not isinstance(task, dict):
        raise _wrong("no `cluster` or no `task`")
    addresses, index = jobs.get("worker"), task.get("index")
    if set(jobs) != {"worker"} or task.get("type") != "worker":
        raise _wrong(f"jobs {', '.join(sorted(map(str, jobs)))}, task of type {task.get('type')}: only workers train")
    if not isinstance(addresses, list) or not addresses or not all(map(_is_address, addresses)):
        raise _wrong(f"worker addresses {json.dumps(addresses)}")
    if len(set(addresses)) < len(addresses):
        raise _wrong("a worker address twice")
    if type(index) is not int or not 0 <= index < len(addresses):
        raise _wrong(f"task index {json.dumps(index)} of {len(addresses)} workers")
    return Cluster(addresses=tuple(addresses), index=index)


def _is_address(address: object) -> bool:
    host, _, port = str(address).rpartition(":")
    return isinstance(address, str) and bool(host) and port.isdecimal() and 0 < int(port) < 65_536


def _wrong(found: str) -> LockstepError:
    return LockstepError(VARIABLE, found=found, expected=_EXPECTED, fix="see docs/devices.md")
