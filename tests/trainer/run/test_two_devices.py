"""Two logical CPUs of one process, as two devices, or as host and device: the finished run once more."""

import pytest
from device_programs import Program, assert_same_run


@pytest.mark.long
def test_two_logical_devices_train_as_one_does(finished_run, plan_of_run, read_steps, tmp_path):
    program = Program(plan_of_run(tmp_path / "run", "training.strategy=mirrored"), tmp_path, logical_cpus=2)
    assert program.wait() == 0, program.screen
    assert_same_run(tmp_path / "run", finished_run[0], read_steps)
    figures = program.figures
    assert figures["same_replicas"] == [True]
    assert figures["update_traces"] == [1, 1]
    assert figures["steps_after_stop"] == 1
    assert figures["host_calls"] == 5  # marks at 4, 6, 8, 9 (where the decay begins) and 12
    assert [sum(trace.startswith("training") for trace in traces) for traces in figures["traces"]] == [1, 1]
    assert "2 devices, each with 50% of every batch" in program.screen


@pytest.mark.long
def test_the_loop_stays_on_the_host_and_the_steps_on_their_device(finished_run, plan_of_run, read_steps, tmp_path):
    """What crosses from the device to the host waits for the device: nothing but a step's metrics may."""
    plan = plan_of_run(tmp_path / "run", "training.strategy=single")
    program = Program(plan, tmp_path, logical_cpus=2, steps_on="CPU:1")
    assert program.wait() == 0, program.screen
    assert_same_run(tmp_path / "run", finished_run[0], read_steps)
    placed = program.figures["placed"]
    assert placed["state"] == ["CPU:1"]
    assert not placed[""]
    # The gradients of the bucket drawn, the update, and the int32 that says that both are queued.
    assert placed["CPU:1"] == ["Case", "Identity", "StatefulPartitionedCall"]
    assert {"Timestamp", "TensorListSetItem", "AssignVariableOp"} <= set(placed["CPU:0"])
