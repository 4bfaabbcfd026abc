"""The replicas that share every step, one on each device, and the messages between their processes.

A single device is a group of one: the sum over its replicas is the identity.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import click
import numpy as np
import tensorflow as tf

from xtts.shared.config import TrainingConfig
from xtts.shared.errors import LockstepError
from xtts.trainer.loop.failures import explained
from xtts.trainer.loop.rendezvous import VARIABLE, Cluster, find_cluster, wait_for_workers
from xtts.trainer.system.device import step_device

T = TypeVar("T")
_CHUNKS = 8
"""Numbers of 16 bits that a digest is sent as: float32 sums them exactly."""


@dataclass(frozen=True, kw_only=True)
class ProcessGroup:
    """R replicas in one or more processes; each holds the whole model and computes its rows of every batch."""

    strategy: tf.distribute.Strategy | None = None
    """None for a single replica."""
    cluster: Cluster | None = None
    """None for one process."""

    @property
    def size(self) -> int:
        """R: replicas of all processes."""
        return int(self.strategy.num_replicas_in_sync) if self.strategy else 1

    @property
    def devices(self) -> tuple[str, ...]:
        """TensorFlow's names of the devices of this process."""
        return tuple(self.strategy.extended.worker_devices) if self.strategy else (step_device(),)

    @property
    def first(self) -> int:
        """Index of this process' first replica among all."""
        return self.cluster.index * len(self.devices) if self.cluster else 0

    @property
    def described(self) -> str:
        """Counts of devices and processes, to follow the name of a device; empty for a single one."""
        if self.size == 1:
            return ""
        workers = f" of {len(self.cluster.addresses)} workers" if self.cluster else ""
        return f"; {self.size} devices{workers}, each with {1 / self.size:.0%} of every batch"

    def run(self, body: Callable[[int], T]) -> list[T]:
        """Results of `body(index)` on each device of this process, inside a graph; index: of `devices`."""
        if self.strategy is None:
            return [body(0)]

        def call() -> T:
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            return body(int(tf.get_static_value(replica)) - self.first)

        return list(self.strategy.experimental_local_results(self.strategy.run(call)))

    def sum(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The sums over all replicas, in `body` of `run`; never inside a compiled function, where they do not exist."""
        if self.strategy is None:
            return list(tensors)
        return list(tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, list(tensors)))

    def sum_of_processes(self, vector: np.ndarray) -> np.ndarray:
        """Sum over the processes of float32[n], called from Python by all of them in the same order."""

        def add() -> tf.Tensor:
            return self.run(lambda index: self.sum([tf.constant(vector * (index == 0), tf.float32)])[0])[0]

        with explained("all workers", "see their output"):
            return np.asarray(tf.function(add, autograph=False)())

    def rank_0_says(self, flag: bool) -> bool:
        """The flag of rank 0, in every process; waits until all have called it."""
        if self.cluster is None:
            return flag
        return bool(self.sum_of_processes(np.array([flag and self.cluster.index == 0], np.float32))[0])

    def check_same(self, facts: Mapping[str, str], *, fix: str) -> None:
        """Raise `LockstepError` in every process if a fact differs between them; facts: value by name."""
        if self.cluster is None:
            return
        own = np.zeros([len(self.cluster.addresses), len(facts), _CHUNKS], np.float32)
        digests = [hashlib.sha256(f"{name}={value}".encode()).digest() for name, value in facts.items()]
        own[self.cluster.index] = [np.frombuffer(digest[: 2 * _CHUNKS], np.uint16) for digest in digests]
        of_workers = self.sum_of_processes(own.ravel()).reshape(own.shape)
        for worker, numbers in enumerate(of_workers):
            for i, name in enumerate(facts):
                if (numbers[i] != of_workers[0, i]).any():
                    with suppress(LockstepError, tf.errors.OpError):  # no process ends before all have compared
                        self.sum_of_processes(np.zeros(1, np.float32))
                    raise LockstepError(
                        f"worker {worker}", found=f"its {name} differs from worker 0's",
                        expected=f"the same in all workers; worker {self.cluster.index} has {facts[name]}",
                        fix=fix,
                    )


ALONE = ProcessGroup()
"""The group of one replica."""


def join_group(training: TrainingConfig) -> ProcessGroup:
    """The replicas of `training.strategy`, once all workers have joined.

    Call it before TensorFlow does anything else. Raises `LockstepError` for a strategy that this machine or the
    settings do not allow.
    """
    cluster = find_cluster(training.strategy)
    if training.runtime == "jax":
        if cluster or training.strategy == "mirrored":
            found, expected = "jax, which trains on one device", "tensorflow for several"
            raise LockstepError("training.runtime", found=found, expected=expected)
        return ALONE
    if cluster is None:
        names = _mirrored_devices(training)
        group = ProcessGroup(strategy=tf.distribute.MirroredStrategy(names)) if names else ALONE
    else:
        group = ProcessGroup(strategy=_join(cluster), cluster=cluster)
    check_micro_batches(training, group.size)
    return group


def _mirrored_devices(training: TrainingConfig) -> list[str]:
    """Names of the devices of this process that train together; none for a single one."""
    strategy, micro_batches = training.strategy, training.gradient_accumulation_steps
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    if strategy == "mirrored" and len(devices) < 2:
        raise LockstepError(
            "training.strategy", found=f"mirrored, but there is one device ({devices[0].name})",
            expected="several GPUs", fix="train with --set training.strategy=auto",
        )
    if strategy == "auto" and len(gpus) > 1 and micro_batches % len(gpus):
        click.echo(
            f"training on one of {len(gpus)} GPUs: they cannot share {micro_batches} micro-batches evenly; to use all: "
            f"--set training.gradient_accumulation_steps={_nearest_multiple(micro_batches, len(gpus))}"
        )
        return []
    wanted = strategy == "mirrored" or (strategy == "auto" and len(gpus) > 1)
    return [device.name for device in devices] if wanted else []


def _join(cluster: Cluster) -> tf.distribute.Strategy:
    """TensorFlow's strategy for the cluster, once all workers have joined."""
    click.echo(f"{cluster.name}: waiting for {', '.join(cluster.addresses)}")
    wait_for_workers(cluster)
    kinds = tf.distribute.experimental.CommunicationImplementation
    kind = kinds.AUTO if tf.config.list_physical_devices("GPU") else kinds.RING
    options = tf.distribute.experimental.CommunicationOptions(implementation=kind)
    with explained(cluster.name, f"check the addresses in {VARIABLE}, and that their ports are free"):
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)


def check_micro_batches(training: TrainingConfig, devices: int) -> None:
    """Raise `LockstepError` unless R devices get the same number of micro-batches."""
    micro_batches = training.gradient_accumulation_steps
    if micro_batches % devices == 0:
        return
    nearest = _nearest_multiple(micro_batches, devices)
    raise LockstepError(
        "training.gradient_accumulation_steps",
        found=f"{micro_batches}, which {devices} devices cannot share evenly",
        expected=f"a multiple of {devices}",
        fix=f"set it to {nearest}; the losses depend on it, not on the number of devices",
    )


def _nearest_multiple(micro_batches: int, devices: int) -> int:
    """The closest number of micro-batches that the devices share evenly."""
    return max(devices, round(micro_batches / devices) * devices)
