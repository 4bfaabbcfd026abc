"""Solvers."""

import math

import numpy as np
import pytest
import tensorflow as tf
from scipy.integrate import solve_ivp

from xtts.trainer.model.networks import solve
from xtts.trainer.model.sampling_schedule import evaluations_per_step, sampling_schedule


def error(solver, steps):
    """Of dx/dt = x cos(4 t) + t."""
    exact = solve_ivp(lambda t, x: x * math.cos(4 * t) + t, (0, 1), [1.0], rtol=1e-10, atol=1e-12).y[0, -1]
    schedule = sampling_schedule(steps * evaluations_per_step(solver), solver)
    end = solve(lambda x, t: x * tf.cos(4 * t) + t, tf.constant([1.0]), tf.constant(schedule))
    return abs(float(end[0]) - exact)


@pytest.mark.parametrize(("solver", "order"), [("euler", 1), ("midpoint", 2)])
def test_the_error_falls_with_the_order_of_the_solver(solver, order):
    ratio = error(solver, 16) / error(solver, 32)
    assert 2**order * 0.8 < ratio < 2**order * 1.25


@pytest.mark.parametrize("solver", ["euler", "midpoint"])
def test_a_schedule_counts_evaluations_and_goes_from_0_to_1(solver):
    schedule = sampling_schedule(6, solver)
    assert (schedule.shape, schedule.dtype) == ((6, 3), np.float32)
    assert schedule[:, 1].sum() == pytest.approx(1.0)
    assert schedule[0, 0] == 0.0
    assert schedule[-1, 2] == 0.0, "nothing is evaluated after the last"
    assert ((schedule[:, 0] >= 0) & (schedule[:, 0] <= 1)).all()
