"""Home Assistant's protocol, by wyoming's own client."""

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest
from device_programs import free_ports
from server_process import running_server
from tables import cases
from test_serve_speech import HELLO, samples_of
from wyoming.audio import AudioChunk, AudioStart
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.event import async_read_event
from wyoming.info import Describe, Info
from wyoming.tts import Synthesize, SynthesizeVoice

from xtts.shared.errors import LockstepError
from xtts.trainer.serve.request_queue import RequestQueue
from xtts.trainer.serve.wyoming_server import listen
from xtts.trainer.web.address import listening_socket

CASES = cases(__file__)


def test_wyoming_describes_speaks_and_ends_after_a_failure(onnx_folder, spoken_by_command):
    (port,) = free_ports(1)

    async def converse():
        async with AsyncTcpClient("127.0.0.1", port) as client:
            await client.write_event(Describe().event())
            (program,) = Info.from_event(await client.read_event()).tts
            assert (program.name, program.voices[0].name, program.voices[0].languages) == (
                "small-voice", "default", ["en"],
            )
            await client.write_event(Synthesize(HELLO, SynthesizeVoice("default")).event())
            events = []
            while not events or events[-1].type != "audio-stop":
                events.append(await client.read_event())
            start, *chunks = events[:-1]
            assert AudioStart.from_event(start) == AudioStart(22_050, 2, 1)
            sound = b"".join(AudioChunk.from_event(chunk).audio for chunk in chunks)
            assert np.array_equal(np.frombuffer(sound, "<i2"), samples_of(spoken_by_command(HELLO, speed=1)))
            await client.write_event(Synthesize("hello", SynthesizeVoice(language="fa-IR")).event())
            error = Error.from_event(await client.read_event())
            assert (error.text, error.code) == ("language: 'fa-IR' is not one of en", "400")
            assert await client.read_event() is None

    with running_server(onnx_folder, "--wyoming", str(port)):
        asyncio.run(converse())


class Asked:
    """A voice that speaks nothing and records its requests."""

    def __init__(self, served_voice, **capabilities):
        self.mel_profile = served_voice.mel_profile
        self.capabilities = replace(served_voice.capabilities, languages=["en", "de"], **capabilities)
        self.requests = []

    def speak(self, request, _):
        self.requests.append((request.voice, request.language))
        raise LockstepError("input", found="nothing to speak")
        yield


@pytest.mark.parametrize(("voices", "own", "offers"), CASES["voices"])
def test_a_voice_asked_for_by_name_alone_speaks_the_language_it_is_offered_in(served_voice, voices, own, offers):
    voice = Asked(served_voice, voices=voices, voice_languages=own)

    async def told(event):
        async with AsyncTcpClient("127.0.0.1", port) as client:
            await client.write_event(event.event())
            return await client.read_event()

    async def converse():
        await listen(bound, voice, RequestQueue(2), 60.0, 4096)
        (program,) = Info.from_event(await told(Describe())).tts
        for name in offers:
            await told(Synthesize("hello", SynthesizeVoice(name)))
        await told(Synthesize("hello", SynthesizeVoice(language="de-AT")))
        return {voice.name: voice.languages for voice in program.voices}

    bound = listening_socket("127.0.0.1", 0)
    port = bound.getsockname()[1]
    assert asyncio.run(converse()) == {name: [language] for name, language in offers.items()}
    spoken = [(name.partition(" ")[0], language) for name, language in offers.items()]
    assert voice.requests == [*spoken, (next((n for n, code in own.items() if code == "de"), voices[0]), "de")]


@pytest.mark.parametrize(("line", "said"), CASES["events"])
def test_an_event_that_cannot_be_read_is_answered_and_ends_the_connection(served_voice, line, said):
    async def converse():
        await listen(bound, served_voice, RequestQueue(2), 60.0, 4096)
        reader, writer = await asyncio.open_connection("127.0.0.1", bound.getsockname()[1])
        writer.write(json.dumps(line).encode() + b"\n")
        answer = await async_read_event(reader)
        return Error.from_event(answer).text, await reader.read()

    bound = listening_socket("127.0.0.1", 0)
    assert asyncio.run(converse()) == (said, b"")
