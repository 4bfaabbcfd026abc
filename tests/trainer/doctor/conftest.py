"""What the doctor's checks are tried on."""

from types import SimpleNamespace

import pytest

from xtts.shared.config_files import load_config
from xtts.trainer.data.training_bucket import training_buckets
from xtts.trainer.doctor.results import Problem
from xtts.trainer.doctor.settings import load_setup
from xtts.trainer.models.acoustic.objective import ACOUSTIC


@pytest.fixture(scope="session")
def setup(tiny_cache, micro):
    """The shared cache with the micro settings: healthy."""
    return load_setup(["tiny"], [*micro, "training.validate_every=24"], {}, tiny_cache)


@pytest.fixture(scope="session")
def workload(one_shape_cache, micro):
    """(setup, loops) of one shape that are healthy; of the loops what the checks of one look at, without its steps."""
    examined = load_setup(["tiny"], [*micro, "shapes.buckets=1"], {}, one_shape_cache)
    buckets = training_buckets(examined.cache, examined.spec, examined.config)
    steps = SimpleNamespace(metrics=ACOUSTIC, training=examined.config.training)
    return SimpleNamespace(setup=examined, loops=SimpleNamespace(buckets=buckets, step_functions=steps))


@pytest.fixture(scope="session")
def micro_options(one_shape_cache, micro):
    """The options that name what `workload` is made of."""
    settings = [*micro, "shapes.buckets=1"]
    return ["--cache", one_shape_cache, *(part for setting in settings for part in ("--set", setting))]


@pytest.fixture(scope="session")
def configured(micro):
    """`configured("a.b=c")`: the micro configuration with changes, and the tokenizer of the shared caches."""
    return lambda *assignments: load_config("tiny", assignments=[*micro, "text.tokenizer=characters", *assignments])


@pytest.fixture(scope="session")
def problems():
    """`problems(findings)`: those of a check."""
    return lambda findings: [finding for finding in findings if isinstance(finding, Problem)]


@pytest.fixture(scope="session")
def only(problems):
    """`only(findings)`: the one problem of a check."""

    def the_one(findings):
        (problem,) = problems(findings)
        return problem

    return the_one
