"""Turns alone: who speaks when, places, and the end."""

import asyncio
import io
import threading
from contextlib import redirect_stderr

import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.serve.speech_answers import Sound, Turns
from xtts.trainer.serve.speech_requests import RequestError
from xtts.trainer.serve.warm_voice import Part


def steps(name, count, done, wait=None):
    for number in range(count):
        if wait:
            wait.wait(10)
        done.append(f"{name}{number}")
        yield Part(done[-1].encode(), last=number == count - 1)


def with_turns(places):
    """Makes a test of `async def test(turns)`."""

    def as_test(test):
        async def run():
            turns = Turns(places)
            try:
                await test(turns)
            finally:
                turns.end()

        return lambda: asyncio.run(asyncio.wait_for(run(), 30))

    return as_test


async def everything(sound):
    found = []
    while (data := await sound.next_bytes()) is not None:
        found.append(data)
    return found


@with_turns(2)
async def test_jobs_take_turns_step_by_step(turns):
    done = []
    sounds = [Sound(turns, steps(name, 3, done), 20) for name in "ab"]
    assert [await everything(sound) for sound in sounds] == [[b"a0", b"a1", b"a2"], [b"b0", b"b1", b"b2"]]
    assert done == ["a0", "b0", "a1", "b1", "a2", "b2"]


@with_turns(1)
async def test_a_place_is_free_when_the_work_is_done_though_nobody_has_read_it(turns):
    done = []
    Sound(turns, steps("a", 2, done), 20)
    with pytest.raises(RequestError) as refused:
        Sound(turns, steps("b", 1, done), 20)
    assert refused.value.status == 429
    while len(turns):
        await asyncio.sleep(0.01)
    assert await everything(Sound(turns, steps("c", 1, done), 20)) == [b"c0"]


@with_turns(4)
async def test_failures_are_told_to_their_own_client_only(turns):
    def broken(error):
        yield Part()
        raise error

    errors = LockstepError("input", found="no text"), ZeroDivisionError()
    bad = [Sound(turns, broken(error), 20) for error in errors]
    good = Sound(turns, steps("a", 2, []), 20)
    with redirect_stderr(io.StringIO()) as log:
        for sound, status, words in zip(bad, (400, 500), ("input: no text", "could not be made"), strict=True):
            with pytest.raises(RequestError, match=words) as refused:
                await sound.next_bytes()
            assert refused.value.status == status
    assert await everything(good) == [b"a0", b"a1"]
    while len(turns):
        await asyncio.sleep(0.01)
    assert "ZeroDivisionError" in log.getvalue()


@with_turns(4)
async def test_idle_work_waits_for_requests(turns):
    done, go = [], threading.Event()
    Sound(turns, steps("a", 3, done, go), 20)
    idle = asyncio.create_task(turns.do_while_idle(steps("idle", 2, done)))
    await asyncio.sleep(0.1)
    go.set()
    await idle
    assert done == ["a0", "a1", "a2", "idle0", "idle1"]


@with_turns(4)
async def test_requests_let_idle_work_finish_its_step_only(turns):
    done, go = [], threading.Event()
    idle = asyncio.create_task(turns.do_while_idle(steps("idle", 3, done, go)))
    await asyncio.sleep(0.1)
    Sound(turns, steps("a", 2, done), 20)
    go.set()
    await idle
    assert done == ["idle0", "a0", "a1", "idle1", "idle2"]


@with_turns(4)
async def test_once_closed_the_step_that_is_being_done_is_the_last(turns):
    done, go = [], threading.Event()
    sounds = [Sound(turns, steps(name, 2, done, go), 20) for name in "ab"]
    await asyncio.sleep(0.1)
    turns.closed = True
    go.set()
    assert await sounds[0].next_bytes() == b"a0"
    for sound in sounds:
        with pytest.raises(RequestError, match="stopping") as refused:
            await sound.next_bytes()
        assert refused.value.status == 503
    with pytest.raises(RequestError, match="stopping"):
        Sound(turns, steps("c", 1, done), 20)
    assert done == ["a0"]


@with_turns(1)
async def test_who_is_dropped_frees_the_place_at_once_and_the_thread_after_the_step(turns):
    done, go = [], threading.Event()
    dropped = Sound(turns, steps("a", 2, done, go), 0.1)
    with pytest.raises(RequestError, match=r"not spoken within 0\.1 s"):
        await dropped.next_bytes()
    dropped.close(whole=False)
    after = Sound(turns, steps("b", 1, done), 20)
    await asyncio.sleep(0.1)
    assert done == []  # one thread uses the model, and it is in the step of the first
    go.set()
    assert await everything(after) == [b"b0"]
    assert done == ["a0", "b0"]
