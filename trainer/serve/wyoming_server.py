"""Wyoming, the protocol of Home Assistant's voices: the same voice and queue as over HTTP, on a port of its own."""

import asyncio
import json
import socket
from contextlib import suppress

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, Eventable, async_write_event
from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice
from wyoming.tts import Synthesize, SynthesizeVoice

from xtts.shared.languages import MANDARIN
from xtts.trainer.serve.request_queue import RequestQueue
from xtts.trainer.serve.served_voice import ServedVoice, SpeechResult
from xtts.trainer.serve.speech_requests import Capabilities, read_request
from xtts.trainer.serve.speech_responses import ResponseStream
from xtts.trainer.speech.encodings import Encoder
from xtts.trainer.web.requests import RequestError

_EVENT_SECONDS = 10.0
"""Longest time for a client to send the rest of an event."""


async def listen(
    bound: socket.socket, voice: ServedVoice, queue: RequestQueue, timeout: float, most_bytes: int
) -> None:
    """Serve a bound socket while the loop runs; timeout: seconds, as in `ResponseStream`; most_bytes: of an event."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # the client left
            try:
                while event := await _read_event(reader, most_bytes):
                    if Describe.is_type(event.type):
                        await _write(writer, _info(voice.capabilities))
                    elif Synthesize.is_type(event.type):
                        await _speak(_synthesize(event), voice, queue, timeout, writer)
            except RequestError as error:  # Home Assistant waits for a sound until the connection ends
                await _write(writer, Error(error.message, str(error.status)))
        writer.close()

    await asyncio.start_server(converse, sock=bound)


async def _read_event(reader: asyncio.StreamReader, most_bytes: int) -> Event | None:
    """Read an event; None at the end. `RequestError` for one that is too long, too slow or none of the protocol."""
    try:
        if not (line := await reader.readline()):
            return None
        header = json.loads(line)
        data_length, payload_length = (int(header.get(f"{part}_length") or 0) for part in ("data", "payload"))
        if not 0 <= data_length + payload_length <= most_bytes or min(data_length, payload_length) < 0:
            raise RequestError(413, f"an event of {data_length + payload_length} bytes, expected at most {most_bytes}")
        async with asyncio.timeout(_EVENT_SECONDS):
            data = json.loads(await reader.readexactly(data_length)) if data_length else {}
            payload = await reader.readexactly(payload_length)
        return Event(str(header["type"]), {**(header.get("data") or {}), **data}, payload)
    except (ValueError, LookupError, TypeError, AttributeError):
        raise RequestError(400, "no event of the Wyoming protocol") from None
    except (TimeoutError, asyncio.IncompleteReadError):
        raise RequestError(408, f"the rest of the event did not arrive within {_EVENT_SECONDS:g} s") from None


def _synthesize(event: Event) -> Synthesize:
    """Return the request in an event; `RequestError` for one without a text."""
    try:
        return Synthesize.from_event(event)
    except (LookupError, TypeError, AttributeError):
        raise RequestError(400, "synthesize without a text") from None


async def _write(writer: asyncio.StreamWriter, message: Eventable) -> None:
    await async_write_event(message.event(), writer)


async def _speak(
    synthesize: Synthesize, voice: ServedVoice, queue: RequestQueue, timeout: float, writer: asyncio.StreamWriter
) -> None:
    """Send the audio of a text while it is made; `RequestError` as over HTTP."""
    rate, chosen = voice.mel_profile.sample_rate, synthesize.voice or SynthesizeVoice()
    asked = chosen.speaker or chosen.name
    name, language = _offers(voice.capabilities).get(asked or "", (asked, chosen.language))
    fields = {"input": synthesize.text, "voice": name, "language": language}
    request, _ = read_request(json.dumps(fields).encode(), voice.capabilities)
    encoder = Encoder("raw", rate, streams=True)
    stream = ResponseStream(queue, voice.speak(request, SpeechResult()), encoder, timeout)
    try:
        data = await stream.next_bytes()
        await _write(writer, AudioStart(rate, 2, 1))
        while data:
            await _write(writer, AudioChunk(rate, 2, 1, data))
            data = await stream.next_bytes()
        await _write(writer, AudioStop())
    finally:
        stream.close()


def _offers(capabilities: Capabilities) -> dict[str, tuple[str, str]]:
    """Return (voice, language) by its name in Wyoming: clients send a name without a language."""
    own, every = capabilities.voice_languages, capabilities.languages
    spoken = [(name, [own[name]] if name in own else every) for name in capabilities.voices]
    return {
        name if language == languages[0] else f"{name} ({language})": (name, language)
        for name, languages in spoken for language in languages
    }


def _info(capabilities: Capabilities) -> Info:
    by, offers = Attribution("Lockstep", ""), _offers(capabilities).items()
    voices = [
        TtsVoice(name, by, True, None, None, ["zh" if language in MANDARIN else language])  # Home Assistant has no cmn
        for name, (_, language) in offers
    ]
    return Info(tts=[TtsProgram(capabilities.model, by, True, None, None, voices)])
