"""Home Assistant's protocol, by wyoming's own client."""

import asyncio

import numpy as np
from device_programs import free_ports
from server_process import running_server
from test_serve_speech import HELLO, samples_of
from wyoming.audio import AudioChunk, AudioStart
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.info import Describe, Info
from wyoming.tts import Synthesize, SynthesizeVoice


def test_wyoming_describes_speaks_and_ends_after_a_failure(onnx_folder, spoken_by_command):
    (port,) = free_ports(1)

    async def converse():
        async with AsyncTcpClient("127.0.0.1", port) as client:
            await client.write_event(Describe().event())
            (program,) = Info.from_event(await client.read_event()).tts
            assert (program.name, program.voices[0].name, program.voices[0].languages) == (
                "small-voice", "default", ["en"],
            )  # fmt: skip
            await client.write_event(Synthesize(HELLO, SynthesizeVoice("default")).event())
            events = []
            while not events or events[-1].type != "audio-stop":
                events.append(await client.read_event())
            start, *chunks = events[:-1]
            assert AudioStart.from_event(start) == AudioStart(22_050, 2, 1)
            sound = b"".join(AudioChunk.from_event(chunk).audio for chunk in chunks)
            assert np.array_equal(np.frombuffer(sound, "<i2"), samples_of(spoken_by_command(HELLO, speed=1)[0]))
            await client.write_event(Synthesize("hello", SynthesizeVoice(language="fa-IR")).event())
            error = Error.from_event(await client.read_event())
            assert (error.text, error.code) == ("language: 'fa' is not one of en", "400")
            assert await client.read_event() is None

    with running_server(onnx_folder, "--wyoming", str(port)):
        asyncio.run(converse())
