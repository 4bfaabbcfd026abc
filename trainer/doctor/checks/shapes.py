"""Compares batches read from every bucket with the locked signatures."""

from collections.abc import Mapping

import tensorflow as tf

from xtts.trainer.data.batch import Batch
from xtts.trainer.doctor.finding import Fact, Finding, Result

_BATCHES = 2


def shapes(datasets: Mapping[str, tf.data.Dataset], signatures: Mapping[str, Batch]) -> Result:
    """Read batches of each data set and compare them with the signature of the same name."""
    read, findings = 0, []
    for name, dataset in datasets.items():
        expected = [_form(part) for part in signatures[name]]
        for batch in dataset.take(_BATCHES):
            found = [_form(part) for part in batch]
            read += 1
            if found == expected:
                continue
            findings.append(_mismatch(name, found, expected))
            break
    text = f"{read} batches of {len(datasets)} pipelines read" + ("" if findings else ", all of the locked shapes")
    return [Fact(name="batches read", value=read, text=text)], findings


def _form(part: tf.Tensor | tf.TensorSpec) -> str:
    return f"{part.dtype.name}{part.shape.as_list()}"


def _mismatch(name: str, found: list[str], expected: list[str]) -> Finding:
    pairs = [f"{have}, locked to {want}" for have, want in zip(found, expected, strict=False) if have != want]
    return Finding(
        name="wrong-shape",
        section="shapes",
        what=f"{name}: " + (pairs[0] if pairs else f"{len(found)} tensors, locked to {len(expected)}"),
        cause="the batch does not have the signature that its step was compiled for",
        fix="run xtts-precompute verify on the cache; it names what is wrong and the command that repairs it",
        gain="no step is retraced",
    )
