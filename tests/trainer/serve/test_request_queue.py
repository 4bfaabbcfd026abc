"""The queue alone: turns, places, and its end."""

import asyncio
import io
import threading
from contextlib import redirect_stderr

import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.serve.request_queue import Part, RequestQueue
from xtts.trainer.serve.speech_requests import RequestError


def steps(name, count, done, wait=None):
    for number in range(count):
        if wait:
            wait.wait(10)
        done.append(f"{name}{number}")
        yield Part(done[-1].encode(), last=number == count - 1)


def in_a_queue(places):
    """Turns `async def test(queue)` into a test that runs while the queue takes its turns."""

    def as_test(test):
        async def run():
            queue = RequestQueue(places)
            turns = asyncio.create_task(queue.run())
            try:
                await test(queue)
            finally:
                turns.cancel()
                queue.end()

        return lambda: asyncio.run(asyncio.wait_for(run(), 30))

    return as_test


async def everything(job):
    found = []
    while (data := await job.next_bytes()) is not None:
        found.append(data)
    return found


@in_a_queue(2)
async def test_jobs_take_turns_step_by_step(queue):
    done = []
    jobs = [queue.submit(steps(name, 3, done)) for name in "ab"]
    assert [await everything(job) for job in jobs] == [[b"a0", b"a1", b"a2"], [b"b0", b"b1", b"b2"]]
    assert done == ["a0", "b0", "a1", "b1", "a2", "b2"]


@in_a_queue(1)
async def test_a_place_is_free_when_the_work_is_done_though_nobody_has_read_it(queue):
    done = []
    queue.submit(steps("a", 2, done))
    with pytest.raises(RequestError) as refused:
        queue.submit(steps("b", 1, done))
    assert refused.value.status == 429
    while len(queue):
        await asyncio.sleep(0.01)
    assert await everything(queue.submit(steps("c", 1, done))) == [b"c0"]


@in_a_queue(4)
async def test_failures_are_told_to_their_own_client_only(queue):
    def broken(error):
        yield Part()
        raise error

    bad = [queue.submit(broken(error)) for error in (LockstepError("input", found="no text"), ZeroDivisionError())]
    good = queue.submit(steps("a", 2, []))
    with redirect_stderr(io.StringIO()) as log:
        for job, status, words in zip(bad, (400, 500), ("input: no text", "could not be made"), strict=True):
            with pytest.raises(RequestError, match=words) as refused:
                await job.next_bytes()
            assert refused.value.status == status
    assert await everything(good) == [b"a0", b"a1"]
    assert len(queue) == 0
    assert "ZeroDivisionError" in log.getvalue()


@in_a_queue(4)
async def test_idle_work_waits_for_jobs(queue):
    done, go = [], threading.Event()
    queue.submit(steps("a", 3, done, go))
    queue.idle_work = steps("idle", 2, done)
    await asyncio.sleep(0.1)
    go.set()
    while len(done) < 5:
        await asyncio.sleep(0.01)
    assert done == ["a0", "a1", "a2", "idle0", "idle1"]
