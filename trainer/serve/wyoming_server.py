"""Wyoming, the protocol of Home Assistant's voices: the same voice and turns as over HTTP, on a port of its own."""

import asyncio
import json
import socket
from contextlib import suppress

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Eventable, async_read_event, async_write_event
from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice
from wyoming.tts import Synthesize, SynthesizeVoice

from xtts.trainer.serve.speech_answers import Sound, Turns
from xtts.trainer.serve.speech_requests import Offer, RequestError, read_request
from xtts.trainer.serve.warm_voice import Spoken, WarmVoice
from xtts.trainer.synth.encodings import Encoder


async def listen(bound: socket.socket, voice: WarmVoice, turns: Turns, seconds: float) -> None:
    """Answer at a bound socket while the loop runs; seconds: as of `Sound`."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # the client left
            while event := await async_read_event(reader):
                try:
                    if Describe.is_type(event.type):
                        await _write(writer, _info(voice.offer))
                    elif Synthesize.is_type(event.type):
                        await _speak(Synthesize.from_event(event), voice, turns, seconds, writer)
                except RequestError as error:
                    await _write(writer, Error(error.message, str(error.status)))
                    break  # Home Assistant waits for a sound until the connection ends
        writer.close()

    await asyncio.start_server(converse, sock=bound)


async def _write(writer: asyncio.StreamWriter, told: Eventable) -> None:
    await async_write_event(told.event(), writer)


async def _speak(
    asked: Synthesize, voice: WarmVoice, turns: Turns, seconds: float, writer: asyncio.StreamWriter
) -> None:
    """Send the sound of a text while it is made; `RequestError` as over HTTP."""
    rate, chosen = voice.offer.sample_rate, asked.voice or SynthesizeVoice()
    fields = {"input": asked.text, "voice": chosen.speaker or chosen.name, "language": chosen.language}
    request, _ = read_request(json.dumps(fields).encode(), voice.offer)
    sound, whole = Sound(turns, voice.speak(request, Spoken()), Encoder("pcm", rate, streams=True), seconds), False
    try:
        data = await sound.next_bytes()
        await _write(writer, AudioStart(rate, 2, 1))
        while data:
            await _write(writer, AudioChunk(rate, 2, 1, data))
            data = await sound.next_bytes()
        await _write(writer, AudioStop())
        whole = True
    finally:
        sound.close(whole=whole)


def _info(offer: Offer) -> Info:
    by = Attribution("Lockstep", "")
    voices = [TtsVoice(name, by, True, None, None, offer.languages) for name in offer.voices]
    return Info(tts=[TtsProgram(offer.model, by, True, None, None, voices)])
