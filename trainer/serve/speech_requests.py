"""What a client sends to `/v1/audio/speech`, checked field by field, and how a refusal is told."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field
from pydantic_core import from_json

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions

_Choice = TypeVar("_Choice", str, int)


class RequestError(Exception):
    """A request that gets no speech: an HTTP status, and the error object that OpenAI clients expect."""

    def __init__(self, status: int, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param = status, message, param

    @property
    def content(self) -> dict[str, dict[str, str | None]]:
        """The body of the answer, for JSON."""
        kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        kind = kinds.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": None}}


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a request may choose from; the first of each is its default."""

    model: str
    voices: list[str]
    aliases: dict[str, str]
    """Voices by other names that they are asked for by."""
    languages: list[str]
    nfe: list[int]
    synthesis: SynthesisOptions
    """Of a request that asks for nothing else."""
    formats: list[str]
    sample_rate: int
    letters: int


def _voice_name(voice: object) -> object:
    """The name in OpenAI's object of a voice, {"id": name}."""
    return voice["id"] if isinstance(voice, dict) and "id" in voice else voice


class SpeechRequest(SynthesisOptions):
    """The JSON of a request: the fields of OpenAI's API, those of this server, and the options of synthesis."""

    input: Annotated[str, Field(min_length=1)]
    model: Any = None
    """A server has one."""
    voice: Annotated[str | None, BeforeValidator(_voice_name)] = None
    instructions: str | None = None
    """How to speak; no voice of ours can be told."""
    language: str | None = None
    response_format: str = "mp3"
    stream_format: Literal["audio", "sse"] | None = None
    """Sentence by sentence, as bytes or as events; without it the whole file at once, except pcm."""
    timestamps: bool = False
    """Answer with JSON, whole whatever the other fields say: the audio in base64 and the times of its words."""

    @property
    def streams(self) -> bool:
        """Whether bytes are sent before the whole text has been spoken."""
        return not self.timestamps and (self.stream_format is not None or self.response_format == "pcm")


def read_request(body: bytes, offer: Offer) -> tuple[SpeechRequest, list[str]]:
    """The request in a body, its choices made, and warnings; `RequestError` 400 names the first wrong field.

    What is missing, or null, has the server's default. So has a voice that is not ours: clients send OpenAI's names,
    and many let nobody choose another. Fields of other servers are ignored, with a warning.
    """
    try:
        given = from_json(body)
    except ValueError as error:
        raise RequestError(400, f"Invalid JSON: {error}") from None
    if not isinstance(given, dict):
        raise RequestError(400, "expected an object")
    known = {name: given[name] for name in SpeechRequest.model_fields if given.get(name) is not None}
    try:
        asked = SpeechRequest(**{**offer.synthesis.model_dump(), **known})
    except LockstepError as error:
        param = _printable(error.where.removeprefix("--"))
        expected = f", expected {error.expected}" if error.expected else ""
        raise RequestError(400, f"{param}: {error.found}{expected}", param=param) from None
    voice, warnings = offer.aliases.get(asked.voice or "", asked.voice), list[str]()
    if voice is not None and voice not in offer.voices:
        warnings.append(f"voice: {_printable(repr(voice))} is not here, {offer.voices[0]} speaks")
        voice = None
    unknown = [name for name in given if name not in SpeechRequest.model_fields]
    warnings += [f"{_printable(name)}: ignored, unknown field" for name in unknown]
    if asked.instructions:
        warnings.append("instructions: ignored, the voice cannot be told how to speak")
    chosen = asked.replaced(
        voice=_chosen("voice", voice, offer.voices),
        language=_chosen("language", asked.language and re.split("[-_]", asked.language)[0].lower(), offer.languages),
        nfe=_chosen("nfe", asked.nfe, offer.nfe),
        response_format=_chosen("response_format", asked.response_format, offer.formats),
    )
    return chosen, warnings


def _chosen(param: str, asked: _Choice | None, offered: list[_Choice]) -> _Choice:
    if asked is None:
        return offered[0]
    if asked not in offered:
        found = _printable(repr(asked))
        raise RequestError(400, f"{param}: {found} is not one of {', '.join(map(str, offered[:20]))}", param=param)
    return asked


def _printable(text: str) -> str:
    """A client's words as an answer may repeat them: short."""
    return text if len(text) <= 60 else f"{text[:60]}..."
