"""What the doctor's checks are tried on."""

import pytest

from xtts.shared.config_files import load_config
from xtts.trainer.doctor.subject import load_subject


@pytest.fixture(scope="session")
def subject(tiny_cache, micro):
    """The shared cache with the micro settings: healthy."""
    return load_subject(["tiny"], micro, {}, tiny_cache)


@pytest.fixture(scope="session")
def configured(micro):
    """`configured("a.b=c")`: the micro configuration with changes."""
    return lambda *assignments: load_config("tiny", assignments=[*micro, *assignments])


@pytest.fixture(scope="session")
def only():
    """`only(result)`: the one finding of a check."""

    def the_one(result):
        (finding,) = result[1]
        return finding

    return the_one
