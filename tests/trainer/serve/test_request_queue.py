"""The request queue alone: who speaks when, how many wait, and the end."""

import asyncio
import io
import threading
from contextlib import redirect_stderr
from functools import partial
from unittest.mock import patch

import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.serve import request_queue
from xtts.trainer.serve.request_queue import RequestQueue
from xtts.trainer.serve.served_voice import Piece
from xtts.trainer.serve.speech_responses import ResponseStream
from xtts.trainer.web.requests import RequestError

LONG_SECONDS = 3600.0
"""Longest wait for a sound: no test comes to it."""


class Plain:
    """An encoder of sounds that are bytes; at once, or whole at the end."""

    def __init__(self, *, streams=True):
        self.streams, self.heard = streams, []

    def add(self, sound, *, last):
        self.heard.append(sound)
        return sound if self.streams else b"".join(self.heard) if last else b""


def pieces(name, count, done, wait=None):
    """A job whose sounds, `name` and a number each, are made once `wait()` returns."""

    def sound(number):
        if wait:
            wait()
        done.append(f"{name}{number}")
        return f"{name}{number}".encode()

    for number in range(count):
        yield Piece(partial(sound, number), last=number == count - 1)


def with_queue(most_requests, cores=1):
    """Makes a test of `async def test(queue)`."""

    def as_test(test):
        async def run():
            with patch.object(request_queue, "usable_cores", lambda: cores):
                await test(RequestQueue(most_requests))

        return lambda: asyncio.run(run())

    return as_test


async def everything(stream):
    chunks = []
    while (data := await stream.next_bytes()) is not None:
        chunks.append(data)
    return chunks


@with_queue(2)
async def test_jobs_take_turns_step_by_step(queue):
    done = []
    streams = [ResponseStream(queue, pieces(name, 3, done), Plain(), LONG_SECONDS) for name in "ab"]
    assert [await everything(stream) for stream in streams] == [[b"a0", b"a1", b"a2"], [b"b0", b"b1", b"b2"]]
    assert done == ["a0", "b0", "a1", "b1", "a2", "b2"]


@with_queue(1)
async def test_a_finished_job_leaves_the_queue_before_it_is_read_and_a_closed_queue_takes_none(queue):
    ResponseStream(queue, pieces("a", 2, []), Plain(), LONG_SECONDS)
    with pytest.raises(RequestError, match="too many requests are waiting") as refused:
        ResponseStream(queue, pieces("b", 1, []), Plain(), LONG_SECONDS)
    assert refused.value.status == 429
    while len(queue):
        await asyncio.sleep(0.01)
    assert await everything(ResponseStream(queue, pieces("c", 1, []), Plain(), LONG_SECONDS)) == [b"c0"]
    queue.closed = True
    with pytest.raises(RequestError, match="stopping") as refused:
        ResponseStream(queue, pieces("d", 1, []), Plain(), LONG_SECONDS)
    assert refused.value.status == 503


@with_queue(4)
async def test_failures_are_told_to_their_own_client_only(queue):
    def broken(error):
        raise error
        yield

    errors = LockstepError("input", found="no text"), ZeroDivisionError()
    bad = [ResponseStream(queue, broken(error), Plain(), LONG_SECONDS) for error in errors]
    good = ResponseStream(queue, pieces("a", 2, []), Plain(), LONG_SECONDS)
    with redirect_stderr(io.StringIO()) as log:
        for stream, status, words in zip(bad, (400, 500), ("input: no text", "synthesis failed"), strict=True):
            with pytest.raises(RequestError, match=words) as refused:
                await stream.next_bytes()
            assert refused.value.status == status
    assert await everything(good) == [b"a0", b"a1"]
    assert "ZeroDivisionError" in log.getvalue()


@with_queue(1)
async def test_a_dropped_job_leaves_at_once_and_ends_after_its_step(queue):
    done, go = [], threading.Semaphore(0)
    dropped = ResponseStream(queue, pieces("a", 2, done, go.acquire), Plain(), 0.1)
    with pytest.raises(RequestError, match=r"no sound for 0\.1 s"):
        await dropped.next_bytes()
    dropped.close()
    go.release(2)
    after = ResponseStream(queue, pieces("b", 1, done), Plain(), LONG_SECONDS)
    assert await everything(after) == [b"b0"]
    assert "a1" not in done


@pytest.mark.parametrize("requests", [1, 2])
def test_two_cores_make_two_sounds_at_once_of_one_text_or_of_two(requests):
    @with_queue(4, cores=2)
    async def speak(queue):
        both = threading.Barrier(2)
        streams = [
            ResponseStream(queue, pieces(name, 4 // requests, [], both.wait), Plain(), LONG_SECONDS)
            for name in "ab"[:requests]
        ]
        heard = [await everything(stream) for stream in streams]
        assert heard == [[f"{name}{i}".encode() for i in range(4 // requests)] for name in "ab"[:requests]]

    speak()


@pytest.mark.parametrize("streams", [True, False])
def test_an_answer_may_take_longer_than_the_time_without_a_sound(streams):
    @with_queue(1)
    async def speak(queue):
        now, go, encoder = [asyncio.get_running_loop().time()], threading.Semaphore(0), Plain(streams=streams)
        asyncio.get_running_loop().time = lambda: now[0]
        heard = asyncio.create_task(everything(ResponseStream(queue, pieces("a", 4, [], go.acquire), encoder, 8)))
        for count in range(1, 5):
            await asyncio.sleep(0)  # the clock stands still while the sound is waited for
            now[0] += 5
            go.release()
            while len(encoder.heard) < count and not heard.done():
                await asyncio.sleep(0)
        assert b"".join(await heard) == b"a0a1a2a3"

    speak()
