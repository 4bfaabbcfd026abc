"""What tests of several devices share."""

import pytest
from device_programs import Program


@pytest.fixture(scope="module")
def alone(tmp_path_factory, plan_of):
    """The run on one device, of the module's own `plan_of`, and its folder."""
    folder = tmp_path_factory.mktemp("alone")
    program = Program(plan_of(folder / "run", "single"), folder)
    assert program.wait() == 0, program.screen
    return program, folder / "run"
