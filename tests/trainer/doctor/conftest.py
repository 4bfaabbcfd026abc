"""What the doctor's checks are tried on."""

import textwrap

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


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    """`module(source)` writes a user's module into the working folder and gives its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "foreign_" + "".join(c for c in request.node.name if c.isalnum())

    def write(source):
        head = "import numpy as np\nimport tensorflow as tf\n"
        (tmp_path / f"{name}.py").write_text(head + textwrap.dedent(source))
        return name

    return write
