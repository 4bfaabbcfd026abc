"""Wyoming, the protocol of Home Assistant's voices: the same voice and queue as over HTTP, on a port of its own."""

import asyncio
import json
import socket
from contextlib import suppress

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Eventable, async_read_event, async_write_event
from wyoming.info import Attribution, Describe, Info, TtsProgram, TtsVoice
from wyoming.tts import Synthesize, SynthesizeVoice

from xtts.shared.languages import MANDARIN
from xtts.trainer.serve.request_queue import RequestQueue
from xtts.trainer.serve.served_voice import ServedVoice, SpeechResult
from xtts.trainer.serve.speech_requests import Capabilities, read_request
from xtts.trainer.serve.speech_responses import ResponseStream
from xtts.trainer.speech.encodings import Encoder
from xtts.trainer.web.requests import RequestError


async def listen(bound: socket.socket, voice: ServedVoice, queue: RequestQueue, timeout: float) -> None:
    """Serve a bound socket while the loop runs; timeout: seconds, as in `ResponseStream`."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # the client left
            while event := await async_read_event(reader):
                try:
                    if Describe.is_type(event.type):
                        await _write(writer, _info(voice.capabilities))
                    elif Synthesize.is_type(event.type):
                        await _speak(Synthesize.from_event(event), voice, queue, timeout, writer)
                except RequestError as error:
                    await _write(writer, Error(error.message, str(error.status)))
                    break  # Home Assistant waits for a sound until the connection ends
        writer.close()

    await asyncio.start_server(converse, sock=bound)


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
    }  # fmt: skip


def _info(capabilities: Capabilities) -> Info:
    by, offers = Attribution("Lockstep", ""), _offers(capabilities).items()
    voices = [
        TtsVoice(name, by, True, None, None, ["zh" if language in MANDARIN else language])  # Home Assistant has no cmn
        for name, (_, language) in offers
    ]
    return Info(tts=[TtsProgram(capabilities.model, by, True, None, None, voices)])
