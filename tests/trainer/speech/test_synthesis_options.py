"""Options of synthesis come from one model, and a bad value is the same error whatever the way in."""

import json
from pathlib import Path

import numpy as np
import pytest
from tables import cases

from xtts.shared.errors import LockstepError
from xtts.trainer import load_voice
from xtts.trainer.serve.speech_requests import Capabilities, read_request
from xtts.trainer.speech.synthesis_options import SynthesisOptions, accepted
from xtts.trainer.synth_cli import main
from xtts.trainer.web.requests import RequestError

CASES = cases(__file__)

DOCUMENT = Path(__file__).parents[3] / "docs" / "speaking.md"
CAPABILITIES = Capabilities(
    model="a", voices=["default"], languages=["en"], voice_languages={}, nfe=[4], synthesis=SynthesisOptions(),
)


@pytest.mark.parametrize(("options", "message"), [
    *CASES["refused"], ({"seed": 10**400}, f"--seed: 1{'0' * 39}, expected a whole number, 0 to 2147483647"),
])
def test_options_that_cannot_be_are_refused_in_one_line(options, message):
    for make in (SynthesisOptions, lambda **given: SynthesisOptions().replaced(**given)):
        with pytest.raises(LockstepError) as caught:
            make(**options)
        assert str(caught.value).partition(";")[0] == message


@pytest.mark.parametrize(("name", "value"), CASES["bad values"])
def test_a_bad_value_is_the_same_error_by_every_way_in(call, tmp_path, name, value):
    said = f"{name}: {value!r}, expected {accepted(name)}"
    with pytest.raises(LockstepError) as caught:  # before anything is read
        load_voice(tmp_path / "no-run", **{name: value})
    assert str(caught.value) == f"--{name}: {value!r}, expected {accepted(name)}"
    code, _, err = call(main, "--ckpt", tmp_path, f"--{name}", value, "hello")
    assert (code, err) == (2, f"error: --{said}\n")
    with pytest.raises(RequestError) as refused:
        read_request(json.dumps({"input": "a", name: value}).encode(), CAPABILITIES)
    assert (refused.value.status, refused.value.param, refused.value.message) == (400, name, said)


def test_the_document_has_a_row_for_every_option():
    rows = [
        f"| `{name}` | {accepted(name)} | {'none' if field.default is None else field.default} | {field.description} |"
        for name, field in SynthesisOptions.model_fields.items()
    ]
    assert "\n".join(rows) in DOCUMENT.read_text(encoding="utf-8"), "\n".join(rows)


def test_numbers_may_be_those_of_numpy():
    options = SynthesisOptions(nfe=np.int64(2), speed=np.float32(1.5))
    assert (options.nfe, options.speed) == (2, 1.5)
