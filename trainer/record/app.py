"""The recorder's server: its paths, from the first take to the downloads."""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import soundfile
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from xtts.shared.errors import LockstepError
from xtts.shared.languages import find_language
from xtts.trainer.record.making import VoiceMaker
from xtts.trainer.record.phone import ALIKE, Ear, Listener, PhoneRecording, likeness
from xtts.trainer.record.take_checks import CheckedTake, check_room, check_take, expected_seconds, faults, reading_pace
from xtts.trainer.record.takes import Takes, read_wav
from xtts.trainer.speech.encodings import Encoder
from xtts.trainer.speech.loaded_voice import load_voice
from xtts.trainer.speech.long_form import LoadedVoice
from xtts.trainer.web.address import SHARED
from xtts.trainer.web.guard import Guard
from xtts.trainer.web.requests import REFUSALS, RequestError, read_body

_PAGE = Path(__file__).with_name("page")
_PAGE_FILES = {"/": _PAGE / "index.html", **SHARED} | {
    f"/{name}": _PAGE / name for name in ("record.css", "record.js", "microphone.js", "worklet.js")
}
_LISTENING_POLICY = "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'"
"""That of `listen.html`, which embeds its pictures and sounds."""
_TAKE_BYTES = 2**23
"""Largest take: 87 s at 48 kHz."""
_TEXT_BYTES, _MOST_LETTERS = 2**14, 2000
FEWEST_TAKES = 20
"""Takes from which a voice can be made."""
_T = TypeVar("_T")


class Recorder:
    """Handlers of the paths. What they change is in the folder; what they keep is read from it again."""

    def __init__(self, takes: Takes, language: str, maker: VoiceMaker, ear: Ear) -> None:
        self.takes, self.language, self.maker = takes, language, maker
        self._expected = expected_seconds(language)
        threading.Thread(target=self._expected, args=(takes.prompts[0],), daemon=True).start()  # loads a voice
        self._checked: dict[int, tuple[int, str, CheckedTake]] = {}
        self._spoken: tuple[int, LoadedVoice] | None = None
        self.listener, self.phone = Listener(ear), PhoneRecording(takes, ear)

    async def page(self, request: Request) -> Response:
        """Return a file of the page."""
        return FileResponse(_PAGE_FILES[request.scope["path"]])

    async def state(self, _: Request) -> Response:
        """Return everything that the page shows."""
        return JSONResponse(
            {
                "folder": str(self.takes.folder.resolve()), "language": self.language,
                "direction": find_language(self.language).direction, "prompts": self.takes.prompts,
                "fewest": FEWEST_TAKES, "takes": await _apart(self.checked_takes), **self._making(),
            }
        )

    async def making(self, _: Request) -> Response:
        """Return the state of the voice, and that of a long recording that is being cut."""
        return JSONResponse(self._making())

    def _making(self) -> dict[str, object]:
        voice = self.maker.voice
        listening = voice is not None and (voice / "listen.html").is_file()
        made = {"voice": voice is not None, "listening": listening}
        return {"making": asdict(self.maker.state()) | made, "phone": asdict(self.phone.state)}

    def checked_takes(self) -> list[dict[str, Any]]:
        """Return all takes with their faults, the worst first; only new recordings are measured."""
        texts, checked = self.takes.texts(), dict[int, CheckedTake]()
        for number, text in texts.items():
            changed = self.takes.wav(number).stat().st_mtime_ns
            known = self._checked.get(number)
            if known is None or known[:2] != (changed, text):
                samples, rate = soundfile.read(self.takes.wav(number), dtype="float32")
                mono = samples if samples.ndim == 1 else samples.mean(axis=1)
                known = self._checked[number] = changed, text, check_take(mono, rate, self._expected(text))
            checked[number] = known[2]
        pace, rows = reading_pace(checked), list[dict[str, Any]]()
        for number, take in checked.items():
            wrong, text = faults(take, pace), texts[number]
            heard = self.listener.heard(number, self._checked[number][0])
            if heard and likeness(heard, text, self.language) < ALIKE:
                wrong.append((4.5, f"Whisper heard: {heard}"))
            row = {"number": number, "text": text, "seconds": round(take.seconds, 1), "heard": heard}
            advice = "; ".join(words for _, words in sorted(wrong, reverse=True))
            rows.append(row | {"weight": sum(weight for weight, _ in wrong), "advice": advice})
        return sorted(rows, key=lambda row: (-row["weight"], row["number"]))

    async def record(self, request: Request) -> Response:
        """`POST /api/takes?prompt=TEXT`: store a take, and return it with all others."""
        samples, rate = read_wav(await read_body(request, _TAKE_BYTES, "audio/wav"))
        prompt = request.query_params.get("prompt", "")
        number = await _apart(lambda: self.takes.store(prompt, samples, rate))
        self.listener.add(number, self.takes.wav(number).stat().st_mtime_ns, samples, rate)
        return JSONResponse({"number": number, "takes": await _apart(self.checked_takes)})

    async def take(self, request: Request) -> Response:
        """Return the sound of a take."""
        return FileResponse(self._wav(request), media_type="audio/wav")

    async def remove(self, request: Request) -> Response:
        """Remove a take."""
        self._wav(request)
        await _apart(lambda: self.takes.remove(request.path_params["number"]))
        return JSONResponse({"takes": await _apart(self.checked_takes)})

    def _wav(self, request: Request) -> Path:
        number = request.path_params["number"]
        if number not in self.takes.texts():
            raise RequestError(404, f"no take {number}")
        return self.takes.wav(number)

    async def room(self, request: Request) -> Response:
        """`POST /api/room`: judge five seconds of silence and a test sentence, which are not kept."""
        samples, rate = read_wav(await read_body(request, _TAKE_BYTES, "audio/wav"))
        good, words = await _apart(lambda: check_room(samples / np.float32(32768), rate))
        return JSONResponse({"good": good, "words": words})

    async def make(self, _: Request) -> Response:
        """Make the voice, or go on."""
        if len(self.takes.texts()) < FEWEST_TAKES:
            raise RequestError(409, f"record {FEWEST_TAKES} sentences first")
        await _apart(self.maker.start)
        return JSONResponse(self._making())

    async def stop(self, _: Request) -> Response:
        """Stop the making."""
        await _apart(self.maker.stop)
        return JSONResponse(self._making())

    async def phone_recording(self, request: Request) -> Response:
        """`POST /api/phone`: cut one long recording of many prompts, in any format."""
        self.phone.begin(await self.phone.receive(request))
        return JSONResponse(self._making())

    async def listen(self, _: Request) -> Response:
        """Return the listening page of the voice."""
        path = self._voice() / "listen.html"
        if not path.is_file():
            raise RequestError(404, "this voice has no listening page")
        return FileResponse(path, headers={"content-security-policy": _LISTENING_POLICY})

    async def speak(self, request: Request) -> Response:
        """`POST /api/speech`: speak a text with the new voice, as a wav."""
        body = await read_body(request, _TEXT_BYTES)
        try:
            text = str(json.loads(body)["text"])[:_MOST_LETTERS]
        except (ValueError, KeyError, TypeError):
            raise RequestError(400, 'expected {"text": ...}') from None
        return Response(await _apart(lambda: self._speak(text)), media_type="audio/wav")

    def _speak(self, text: str) -> bytes:
        voice = self._voice()
        version = (voice / "voice.json").stat().st_mtime_ns
        if self._spoken is None or self._spoken[0] != version:
            self._spoken = version, load_voice(voice)
        loaded = self._spoken[1]
        return Encoder("wav", loaded.sample_rate, streams=False).add(loaded.speak(text).samples, last=True)

    async def download(self, request: Request) -> Response:
        """Return a zip file: the voice, the voice for Piper and Home Assistant, or the recordings."""
        name = request.path_params["name"]
        if name not in ("voice", "piper", "recordings"):
            raise RequestError(404, f"no download {name!r:.40}")
        if name != "recordings":
            self._voice()
        path = await _apart(lambda: self._zip(name))
        title = f"{self.takes.folder.resolve().name}-{name}.zip"
        return FileResponse(path, filename=title, background=BackgroundTask(path.unlink))

    def _zip(self, name: str) -> Path:
        folder = self.takes.folder
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".download-", delete=False) as file:
            path = Path(file.name)
        try:
            with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as scratch:
                root = Path(scratch) / "piper" if name == "piper" else self.maker.run / "voice"
                if name == "piper":
                    _export_for_piper(self.maker.run, root)
                files = [each for each in sorted(root.rglob("*")) if each.is_file()]
                if name == "recordings":
                    root, wavs = folder, [self.takes.wav(number) for number in self.takes.texts()]
                    files = [folder / "metadata.csv", *wavs]
                with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                    for each in files:
                        archive.write(each, each.relative_to(root))
        except BaseException:
            path.unlink()
            raise
        return path

    def _voice(self) -> Path:
        if (voice := self.maker.voice) is None:
            raise RequestError(404, "no voice has been made yet")
        return voice


def _export_for_piper(run: Path, out: Path) -> None:
    command = [sys.executable, "-m", "xtts.trainer.synth_cli", "export", "--ckpt", run, "--format", "piper", out]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LockstepError("Piper", found=(done.stderr.strip().splitlines() or ["the export failed"])[-1])


async def _apart(work: Callable[[], _T]) -> _T:
    """Do work in a thread, while other requests are answered."""
    return await asyncio.to_thread(work)


async def _refuse(request: Request, error: Exception) -> Response:
    """Refuse what the user or the disk got wrong, in the words of the error."""
    status = 507 if isinstance(error, OSError) else 400
    words = f"not saved: {error.strerror}" if isinstance(error, OSError) else str(error)
    refuse = REFUSALS[RequestError]
    return await refuse(request, RequestError(status, words))


def make_app(recorder: Recorder) -> Starlette:
    """Make the application with its paths."""
    api: Mapping[str, Any] = {
        "GET /api/state": recorder.state, "GET /api/making": recorder.making, "POST /api/takes": recorder.record,
        "GET /api/takes/{number:int}.wav": recorder.take, "DELETE /api/takes/{number:int}": recorder.remove,
        "POST /api/room": recorder.room, "POST /api/voice": recorder.make, "DELETE /api/voice": recorder.stop,
        "GET /api/listen": recorder.listen, "POST /api/speech": recorder.speak,
        "GET /api/downloads/{name}": recorder.download, "POST /api/phone": recorder.phone_recording,
    }
    routes = [
        Route(path, handler, methods=[method]) for (method, path), handler in ((k.split(), v) for k, v in api.items())
    ]
    routes += [Route(path, recorder.page) for path in _PAGE_FILES]
    handlers = REFUSALS | {LockstepError: _refuse, OSError: _refuse}
    return Starlette(routes=routes, middleware=[Middleware(Guard)], exception_handlers=handlers)
