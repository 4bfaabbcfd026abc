"""One server for all tests of this folder."""

import os

import forked_program
import pytest
from server_process import XTTS_SYNTH, running_server


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory):
    """XLA's cache of these servers and commands alone."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="session")
def start_server(finished_run, compile_cache):
    """`with start_server("--option", ..., VARIABLE=...) as client`: a server of its own."""

    def start(*arguments, **environment):
        return running_server(finished_run[0], *arguments, XDG_CACHE_HOME=str(compile_cache), **environment)

    return start


@pytest.fixture(scope="session")
def server(start_server):
    """The server that the tests share, with the engine that it chooses, ONNX; it takes eight requests at once."""
    with start_server("--max-requests", "8", "--max-letters", "2000") as client:
        yield client


@pytest.fixture(scope="session")
def tensorflow_server(start_server):
    """The server of the other engine."""
    with start_server("--engine", "tensorflow", "--timeout", "600") as client:
        yield client


@pytest.fixture(scope="session")
def command(finished_run, compile_cache):
    """`command(folder, *arguments, engine=...)`: `xtts-synth` in two steps, in a folder."""

    def run(folder, *arguments, engine="onnx"):
        line = [XTTS_SYNTH, "--ckpt", finished_run[0].resolve(), "--steps", 2, "--engine", engine, *arguments]
        inherited = {name: value for name, value in os.environ.items() if name != "TF_XLA_FLAGS"}
        environment = inherited | {"XDG_CACHE_HOME": str(compile_cache)}
        forked_program.run(line, check=True, cwd=folder, env=environment)

    return run


@pytest.fixture(scope="session")
def hello_by_command(command, tmp_path_factory):
    """The folder of out.wav and mel.npy, "hello there" at the speed of the model."""
    folder = tmp_path_factory.mktemp("hello")
    command(folder, "--mel-out", "mel.npy", "hello there")
    return folder
