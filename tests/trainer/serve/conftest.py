"""One served voice for all tests of this folder, and what the command speaks with it."""

import pytest
from server_process import client_here, listening_server, settings_of

from xtts.trainer.serve.served_voice import ServedVoice
from xtts.trainer.speech.voice_source import open_source
from xtts.trainer.synth_cli import main

LIMITS = {"max_letters": 2000, "max_requests": 4}


@pytest.fixture(scope="session")
def served_voice(onnx_folder):
    return ServedVoice(open_source(onnx_folder), settings_of(max_letters=2000), print)


@pytest.fixture(scope="session")
def server(served_voice):
    """A client of the application that the tests share; it takes four requests at once."""
    with client_here(served_voice, **LIMITS) as client:
        yield client


@pytest.fixture(scope="session")
def listening(served_voice):
    """A client of the same behind a socket, for what needs one."""
    with listening_server(served_voice, **LIMITS) as client:
        yield client


@pytest.fixture(scope="session")
def spoken_by_command(call, onnx_folder, tmp_path_factory):
    """`spoken_by_command(text, seed=..., speed=..., ckpt=...)`: the wav of a command in two steps."""
    base, known = tmp_path_factory.mktemp("command"), {}

    def speak(text, *, seed=0, speed=4, ckpt=onnx_folder):
        key = (text, seed, speed, ckpt)
        if key not in known:
            wav = base / f"{len(known)}.wav"
            options = ("--nfe", 2, "--seed", seed, "--speed", speed, "-o", wav)
            call(main, "--ckpt", ckpt, *options, text).succeeded()
            known[key] = wav.read_bytes()
        return known[key]

    return speak
