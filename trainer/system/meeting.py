"""Workers wait for each other before TensorFlow does, whose wait has no end and lets no Python run."""

import socket
import time

from xtts.shared.errors import LockstepError
from xtts.trainer.system.cluster import VARIABLE, Cluster

LONGEST_SECONDS = 600.0
_PAUSE_SECONDS, _ANSWER_SECONDS = 0.2, 2.0


def wait_for_workers(cluster: Cluster, *, seconds: float = LONGEST_SECONDS) -> None:
    """Return once something has listened at the address of each worker; this one listens at its own meanwhile.

    A worker that has met all others goes on to TensorFlow, which listens at the same port. Raises `LockstepError` for
    a port that is taken, and for workers that were not there within `seconds`.
    """
    deadline = time.monotonic() + seconds
    missing = {number: address for number, address in enumerate(cluster.addresses) if number != cluster.index}
    with _listener(cluster):
        while missing:
            missing = {number: address for number, address in missing.items() if not _answers(address)}
            if missing and time.monotonic() >= deadline:
                named = ", ".join(f"worker {number} ({address})" for number, address in missing.items())
                raise LockstepError(
                    cluster.name, found=f"waited {seconds:.0f} s without {named}", expected="all workers to be started",
                    fix=f"look at their output; check {VARIABLE}, and that no firewall closes these ports",
                    exit_code=1,
                )  # fmt: skip
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
            fix=f"end the program that has it, or give this worker another port in {VARIABLE}",
        ) from None  # fmt: skip


def _answers(address: str) -> bool:
    try:
        socket.create_connection(_host_and_port(address), timeout=_ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
