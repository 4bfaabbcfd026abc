"""Runs on several devices, as tests start them: workers as processes of their own, or one with several logical CPUs."""

import json
import multiprocessing
import os
import random
import socket
from contextlib import suppress

import numpy as np
import pytest

STATE, FIGURES, SCREEN = "state.npz", "figures.json", "screen.txt"
POSITION = ("epoch", "consumed")
"""Kept once in a process."""
STEPS = 8
LEAST = (
    "model.text_expansion=1", "model.duration_layers=1", "model.decoder_expansion=1", "training.batch_size=4",
    "training.gradient_accumulation_steps=4", f"training.steps={STEPS}", "training.decay_fraction=0",
    "training.warmup_fraction=0",
)
"""The least model, few steps."""
TOLERANCE = 1e-5
"""Relative, of a loss on several devices to that on one."""


def free_ports(count):
    """Ports that nothing listens on, below those that systems give to connections and to whoever asks for any."""
    ports = set()
    while len(ports) < count:
        with suppress(OSError), socket.create_server(("127.0.0.1", random.randrange(12_000, 30_000))) as server:
            ports.add(server.getsockname()[1])
    return list(ports)


def _main(plan, left, config, logical_cpus, steps_on):
    """One run; it leaves in the folder `left` its last state, its figures, and its output."""
    os.environ.pop("TF_CONFIG", None)
    if config:
        os.environ["TF_CONFIG"] = config
    screen = os.open(left / SCREEN, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(screen, 1)
    os.dup2(screen, 2)
    from xtts.shared.errors import report_errors

    with report_errors():
        _train(plan, left, logical_cpus, steps_on)


def _train(plan, left, logical_cpus, steps_on):
    import tensorflow as tf
    from rich.console import Console

    from xtts.trainer.loop import process_group
    from xtts.trainer.run import trainer, training_run

    if steps_on:
        process_group.step_device = lambda: steps_on
    if logical_cpus:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * logical_cpus)
    made = []

    class Watched(training_run.TrainingRun):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    trainer.TrainingRun = Watched
    with plan.held():
        complete = trainer.train(plan, Console(width=200))
    loop, state, replicas = made[0].loop, made[0].state, made[0].loops.replicas
    np.savez(left / STATE, **state.arrays())
    here = [{name: array for name, array in one.state.arrays().items() if name not in POSITION} for one in replicas]
    same = [all(np.array_equal(array, other[name]) for name, array in here[0].items()) for other in here[1:]]
    figures = {
        "complete": complete, "step": made[0].step, "host_calls": loop.host_calls,
        "traces": [one.step_functions.guard.traces for one in replicas], "same_replicas": same,
        "update_traces": [one.step_functions.update.experimental_get_tracing_count() for one in replicas],
        "best": vars(made[0].best), "placed": _placed(loop, state) if steps_on else None,
    }
    if logical_cpus:  # a stop that no call has passed on is not lost
        loop.stop()
        figures["steps_after_stop"] = len(loop.run(3).metrics)
    (left / FIGURES).write_text(json.dumps(figures))


def _placed(loop, state):
    """Devices of the variables, and by device, if any, the ops of a turn of the loop."""
    graph = loop._run.graph.as_graph_def()
    (turn,) = (node.attr["body"].func.name for node in graph.node if node.op in ("While", "StatelessWhile"))
    (body,) = (function.node_def for function in graph.library.function if function.signature.name == turn)
    variables = [state.variables["first"], state.step, *(weight.value for weight in state.optimizer.weights)]
    ops = {place: sorted({node.op for node in body if node.device[-5:] == place}) for place in ("CPU:0", "CPU:1", "")}
    return {"state": sorted({variable.device[-5:] for variable in variables}), **ops}


class Program(multiprocessing.get_context("spawn").Process):
    """One started run; it ends with the tests."""

    def __init__(self, plan, left, *, config="", logical_cpus=0, steps_on=""):
        left.mkdir(parents=True, exist_ok=True)
        self._left = left
        super().__init__(target=_main, args=(plan, left, config, logical_cpus, steps_on), daemon=True)
        self.start()

    def wait(self):
        """Its exit code, once it has ended."""
        self.join()
        return self.exitcode

    @property
    def screen(self):
        """What it has said so far."""
        return (self._left / SCREEN).read_text() if (self._left / SCREEN).exists() else ""

    @property
    def figures(self):
        """Figures of a run that has ended."""
        return json.loads((self._left / FIGURES).read_text())

    @property
    def state(self):
        """Arrays of a run that has ended."""
        with np.load(self._left / STATE) as arrays:
            return {name: arrays[name] for name in arrays.files}


def start_workers(plans, left):
    """Workers of one run on this machine, one for each plan."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(len(plans))]}
    tasks = [{"cluster": cluster, "task": {"type": "worker", "index": index}} for index in range(len(plans))]
    return [Program(plan, left / f"worker-{i}", config=json.dumps(tasks[i])) for i, plan in enumerate(plans)]


def assert_same_run(found, expected, read_steps):
    """The steps and validations that both runs have are the same; the first may have more."""
    for split, most in (("train", STEPS), ("validation", STEPS - 1)):
        theirs = [line for line in read_steps(expected, split) if line["step"] <= most]
        ours = [line for line in read_steps(found, split) if line["step"] <= most]
        assert len(ours) == len(theirs) > 0
        for line, other in zip(ours, theirs, strict=True):
            assert line.keys() == other.keys()
            for name in other.keys() - {"split", "traces"}:
                assert line[name] == pytest.approx(other[name], rel=TOLERANCE), (split, line["step"], name)
