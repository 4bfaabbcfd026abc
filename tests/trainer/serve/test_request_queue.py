"""The queue alone: turns, places, and its end."""

import asyncio
import threading

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


def in_a_queue(places, test):
    """Run `test(queue)` while the queue takes its turns."""

    async def run():
        queue = RequestQueue(places)
        turns = asyncio.create_task(queue.run())
        try:
            await test(queue)
        finally:
            turns.cancel()
            queue.end()

    asyncio.run(asyncio.wait_for(run(), 30))


async def everything(job):
    found = []
    while (data := await job.next_bytes()) is not None:
        found.append(data)
    return found


def test_jobs_take_turns_step_by_step():
    async def test(queue):
        done = []
        jobs = [queue.submit(steps(name, 3, done)) for name in "ab"]
        assert [await everything(job) for job in jobs] == [[b"a0", b"a1", b"a2"], [b"b0", b"b1", b"b2"]]
        assert done == ["a0", "b0", "a1", "b1", "a2", "b2"]

    in_a_queue(2, test)


def test_a_place_is_free_when_the_work_is_done_though_nobody_has_read_it():
    async def test(queue):
        done = []
        queue.submit(steps("a", 2, done))
        with pytest.raises(RequestError) as refused:
            queue.submit(steps("b", 1, done))
        assert refused.value.status == 429
        while len(queue):
            await asyncio.sleep(0.01)
        assert await everything(queue.submit(steps("c", 1, done))) == [b"c0"]

    in_a_queue(1, test)


def test_a_dropped_job_does_no_further_step():
    async def test(queue):
        done, go = [], threading.Event()
        dropped = queue.submit(steps("a", 5, done, go))
        await asyncio.sleep(0.1)
        queue.drop(dropped)
        assert len(queue) == 0
        last = queue.submit(steps("b", 1, done))
        go.set()
        await everything(last)
        assert done == ["a0", "b0"]

    in_a_queue(1, test)


def test_a_closed_queue_ends_its_jobs_after_the_step_at_hand():
    async def test(queue):
        done, go = [], threading.Event()
        first, second = queue.submit(steps("a", 5, done, go)), queue.submit(steps("b", 5, done))
        await asyncio.sleep(0.1)
        queue.close()
        go.set()
        assert await first.next_bytes() == b"a0"
        for job in (first, second):
            with pytest.raises(RequestError, match="the server is stopping"):
                await job.next_bytes()
        with pytest.raises(RequestError, match="the server is stopping"):
            queue.submit(steps("c", 1, done))
        assert done == ["a0"]

    in_a_queue(4, test)


def test_failures_are_told_to_their_own_client_only(capfd):
    def broken(error):
        yield Part()
        raise error

    async def test(queue):
        bad = [queue.submit(broken(error)) for error in (LockstepError("input", found="no text"), ZeroDivisionError())]
        good = queue.submit(steps("a", 2, []))
        for job, status, words in zip(bad, (400, 500), ("input: no text", "could not be made"), strict=True):
            with pytest.raises(RequestError, match=words) as refused:
                await job.next_bytes()
            assert refused.value.status == status
        assert await everything(good) == [b"a0", b"a1"]
        assert len(queue) == 0

    in_a_queue(4, test)
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_idle_work_waits_for_jobs():
    async def test(queue):
        done, go = [], threading.Event()
        queue.submit(steps("a", 3, done, go))
        queue.idle_work = steps("idle", 2, done)
        await asyncio.sleep(0.1)
        go.set()
        while len(done) < 5:
            await asyncio.sleep(0.01)
        assert done == ["a0", "a1", "a2", "idle0", "idle1"]

    in_a_queue(4, test)
