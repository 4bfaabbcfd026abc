"""What a client sends to `/v1/audio/speech`, checked field by field, and how a refusal is told."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.model.sampling_schedule import Solver

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
    languages: list[str]
    steps: list[int]
    synthesis: SynthesisOptions
    """Of a request that asks for nothing else."""
    formats: list[str]
    sample_rate: int
    mel_channels: int
    letters: int


class SpeechRequest(BaseModel):
    """The JSON of a request: the fields of OpenAI's API, then those of this server."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    input: Annotated[str, Field(min_length=1)]
    model: str = ""
    """Any: a server has one."""
    voice: str | None = None
    response_format: str = "mp3"
    speed: float = SynthesisOptions.speed
    stream_format: Literal["audio", "sse"] | None = None
    """Sentence by sentence, as bytes or as events; without it the whole file at once, except pcm."""

    language: str | None = None
    steps: int | None = None
    solver: Solver | None = None
    temperature: float = SynthesisOptions.temperature
    seed: int = SynthesisOptions.seed
    seconds: float | None = None
    """Of the whole text, instead of a speed."""

    def options(self, offer: Offer) -> SynthesisOptions:
        """What it is spoken with; `LockstepError` for values that cannot be used."""
        default = offer.synthesis
        return replace(
            default, steps=self.steps or default.steps, solver=self.solver or default.solver,
            temperature=self.temperature, speed=self.speed, seed=self.seed,
            seconds=self.seconds,
        )  # fmt: skip

    @property
    def streams(self) -> bool:
        """Whether bytes are sent before the whole text has been spoken."""
        return self.stream_format is not None or self.response_format == "pcm"


def read_request(body: bytes, offer: Offer) -> SpeechRequest:
    """The request in a body, its choices made; `RequestError` with status 400 names the first wrong field."""
    try:
        asked = SpeechRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        param = ".".join(map(str, first["loc"])) or None
        said = "unknown field" if first["type"] == "extra_forbidden" else str(first["msg"])
        raise RequestError(400, f"{_printable(param)}: {said}" if param else said, param=_printable(param)) from None
    if len(asked.input) > offer.letters:
        raise RequestError(400, f"input: {len(asked.input)} characters, at most {offer.letters}", param="input")
    if asked.seconds is not None and asked.speed != SynthesisOptions.speed:
        raise RequestError(400, "seconds: together with speed", param="seconds")
    chosen = asked.model_copy(
        update={
            "voice": _chosen("voice", asked.voice, offer.voices),
            "language": _chosen("language", asked.language, offer.languages),
            "steps": _chosen("steps", asked.steps, offer.steps),
            "response_format": _chosen("response_format", asked.response_format, offer.formats),
        }
    )
    try:
        chosen.options(offer)
    except LockstepError as error:
        param = error.where.removeprefix("--").replace("-", "_")
        raise RequestError(400, f"{param}: {error.found}, expected {error.expected}", param=param) from None
    return chosen


def _chosen(param: str, asked: _Choice | None, offered: list[_Choice]) -> _Choice:
    if asked is None:
        return offered[0]
    if asked not in offered:
        found = _printable(repr(asked))
        raise RequestError(400, f"{param}: {found} is not one of {', '.join(map(str, offered[:20]))}", param=param)
    return asked


def _printable(text: str | None) -> str | None:
    """A client's words as an answer may repeat them: short."""
    return text if text is None or len(text) <= 60 else f"{text[:60]}..."
