"""The requests that clients send to `/v1/audio/speech`, checked field by field, and the errors that refuse them."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from xtts.shared.errors import LockstepError, warn
from xtts.shared.languages import chosen_language
from xtts.shared.text.alphabet import join_surrogates
from xtts.trainer.speech.encodings import MEDIA_TYPES, format_name
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.voice_source import chosen_name
from xtts.trainer.web.requests import RequestError

FORMATS = list(MEDIA_TYPES)
"""Formats of a response, the default first."""
_Choice = TypeVar("_Choice", str, int)
_log = lru_cache(1000)(warn)
"""Logs a warning, once."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """Abilities of a server; the first value of each list is the default of a request."""

    model: str
    voices: list[str]
    languages: list[str]
    voice_languages: dict[str, str]
    """The language of a voice, its default; empty for a model of one language."""
    nfe: list[int]
    synthesis: SynthesisOptions
    """Defaults of a request."""


def _voice_name(voice: object) -> object:
    """Return the name in OpenAI's object of a voice, {"id": name}."""
    return voice["id"] if isinstance(voice, dict) and "id" in voice else voice


class SpeechRequest(SynthesisOptions):
    """The JSON of a request: the fields of OpenAI's API, those of this server, and the options of synthesis."""

    input: Annotated[str, Field(min_length=1)]
    model: object = None
    """Ignored: a server has one model."""
    voice: Annotated[str | None, BeforeValidator(_voice_name)] = None
    instructions: str | None = None
    """Instructions on how to speak: ignored with a warning."""
    language: str | None = None
    response_format: Annotated[str, AfterValidator(format_name)] = FORMATS[0]
    stream_format: Literal["audio"] | None = None
    """Send sentence by sentence; without it the file is sent at once, except pcm."""
    timestamps: Annotated[bool, Field(strict=False)] = False
    """Respond with JSON, never streamed: the audio in base64 and the times of its words."""

    @property
    def streams(self) -> bool:
        """Whether bytes are sent before the whole text has been spoken."""
        return not self.timestamps and (self.stream_format is not None or self.response_format == "pcm")


def read_request(body: bytes, capabilities: Capabilities) -> tuple[SpeechRequest, list[str]]:
    """Parse a body: (request with every default filled in, warnings).

    Missing and null fields get the server's default: the language of the voice, or the first voice of the language. So
    does a voice that the server lacks: clients send OpenAI's names, and many allow no other. Fields of other
    servers are understood or ignored; a warning is in the log, too.

    Raises:
        RequestError: 400, which names the first wrong field.
    """
    fields = _fields(body)
    given = {name: fields[name] for name in SpeechRequest.model_fields if fields.get(name) is not None}
    try:
        request = SpeechRequest(**{**capabilities.synthesis.model_dump(), **given})
    except LockstepError as error:
        param = _shortened(error.location.removeprefix("--").replace("-", "_"))
        expected = f", expected {error.expected}" if error.expected else ""
        raise RequestError(400, f"{param}: {error.found}{expected}", param=param) from None
    language = chosen_language(request.language, capabilities.languages)
    own, asked = capabilities.voice_languages, request.voice
    if asked is not None:
        asked = chosen_name(asked, capabilities.voices)
    spoken = language or own.get(capabilities.voices[0], capabilities.languages[0])
    fitting = [name for name in capabilities.voices if own.get(name) == spoken] or capabilities.voices
    voice = asked if asked in capabilities.voices else fitting[0]
    warnings = [] if asked in (None, voice) else [f"unknown voice {_shortened(repr(asked))}; using {voice}"]
    unknown = [name for name in fields if name not in SpeechRequest.model_fields]
    warnings += [f"{_shortened(name)}: unknown field; ignored" for name in unknown]
    if request.instructions:
        warnings.append("instructions: not supported; ignored")
    for warning in warnings:
        _log(warning)
    request = request.replaced(
        voice=voice,
        language=_choose("language", language or own.get(voice), capabilities.languages),
        nfe=_choose("nfe", request.nfe, capabilities.nfe),
        response_format=_choose("response_format", request.response_format, FORMATS),
    )
    return request, warnings


def _fields(body: bytes) -> dict[str, Any]:
    """Parse the fields of a body."""
    try:
        fields = json.loads(join_surrogates(json.dumps(json.loads(body), ensure_ascii=False)))
    except (ValueError, RecursionError) as error:
        raise RequestError(400, f"Invalid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise RequestError(400, "expected an object")
    return fields


def _choose(param: str, value: _Choice | None, choices: list[_Choice]) -> _Choice:
    """Return `value`, by default the first choice; `RequestError` if it is not among them."""
    if value is None:
        return choices[0]
    if value not in choices:
        allowed = ", ".join(map(str, choices[:20]))
        raise RequestError(400, f"{param}: {_shortened(repr(value))} is not one of {allowed}", param=param)
    return value


def _shortened(text: str) -> str:
    """Shorten a client's words for an error message."""
    return text if len(text) <= 60 else f"{text[:60]}..."
