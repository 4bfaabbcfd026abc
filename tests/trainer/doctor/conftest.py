"""What the doctor's checks are tried on."""

from types import SimpleNamespace

import pytest

from xtts.shared.config_files import load_config
from xtts.trainer.doctor.results import Problem
from xtts.trainer.doctor.settings import load_setup


@pytest.fixture(scope="session")
def setup(tiny_cache, micro):
    """The shared cache with the micro settings: healthy."""
    return load_setup(["tiny"], [*micro, "training.validate_every=24"], {}, tiny_cache)


@pytest.fixture(scope="session")
def workload(one_shape_cache, micro, run_steps):
    """(setup, loops) that are healthy, of one shape, with steps that the runs of other tests share."""
    from xtts.trainer.data.training_bucket import training_buckets
    from xtts.trainer.doctor.checks import warm_up
    from xtts.trainer.loop.replicas import build_loops

    run_steps()
    examined = load_setup(["tiny"], [*micro, "shapes.buckets=1"], {}, one_shape_cache)
    loops = build_loops(
        training_buckets(examined.cache, examined.spec, examined.config), examined.kind.objective, examined.config
    )
    warm_up(loops)
    return SimpleNamespace(setup=examined, loops=loops)


@pytest.fixture(scope="session")
def micro_options(workload, micro):
    """The options that name what `workload` is made of."""
    settings = [*micro, "shapes.buckets=1"]
    return ["--cache", workload.setup.cache, *(part for setting in settings for part in ("--set", setting))]


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
