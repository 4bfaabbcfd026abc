"""The workers of a run, as TF_CONFIG lists them, and their wait for each other, without TensorFlow."""

import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xtts.shared.errors import LockstepError

VARIABLE = "TF_CONFIG"
LONGEST_SECONDS = 600.0
_PAUSE_SECONDS, _ANSWER_SECONDS = 0.2, 2.0
_EXPECTED = '{"cluster": {"worker": ["HOST:PORT", ...]}, "task": {"type": "worker", "index": 0}}'


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The processes that train together, and which of them this one is."""

    addresses: tuple[str, ...]
    """HOST:PORT of each worker."""
    index: int
    """Index of this worker."""

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
            fix="set it for every worker (docs/beyond-one-machine.md), or train with --set training.strategy=auto",
        )
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


def _wrong(problem: str) -> LockstepError:
    return LockstepError(VARIABLE, found=problem, expected=_EXPECTED, fix="see docs/beyond-one-machine.md")


def wait_for_workers(cluster: Cluster, *, seconds: float = LONGEST_SECONDS) -> None:
    """Return once something has listened at the address of each worker; this one listens at its own meanwhile.

    TensorFlow's own wait, which follows at the same port, has no end and lets no Python run. Raises `LockstepError`
    for a port that is taken, and for workers that do not answer within `seconds`.
    """
    deadline = time.monotonic() + seconds
    missing = {index: address for index, address in enumerate(cluster.addresses) if index != cluster.index}
    with _listener(cluster):
        while missing:
            missing = {index: address for index, address in missing.items() if not _answers(address)}
            if missing and time.monotonic() >= deadline:
                named = ", ".join(f"worker {index} ({address})" for index, address in missing.items())
                raise LockstepError(
                    cluster.name, found=f"waited {seconds:.0f} s without {named}", expected="all workers to be started",
                    fix=f"see their output; check {VARIABLE}, and that no firewall closes these ports",
                    exit_code=1,
                )
            time.sleep(_PAUSE_SECONDS if missing else 0.0)


def _listener(cluster: Cluster) -> socket.socket:
    """A socket that listens at this worker's port, on every interface; nobody has to accept a connection."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    _, port = _host_and_port(cluster.addresses[cluster.index])
    try:
        return socket.create_server(("", port), family=family, backlog=128, dualstack_ipv6=both)
    except OSError as error:
        raise LockstepError(
            cluster.name, found=f"cannot listen at port {port}: {error.strerror}",
            fix=f"end the program that uses it, or give this worker another port in {VARIABLE}",
        ) from None


def _answers(address: str) -> bool:
    try:
        socket.create_connection(_host_and_port(address), timeout=_ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
