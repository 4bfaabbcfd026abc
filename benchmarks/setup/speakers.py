"""Programs that speak, each in a process of its own, in the Python of an environment that has the program.

    PYTHON benchmarks/setup/speakers.py PROGRAM SOUNDS [FILE] < TEXTS

Each line of TEXTS becomes SOUNDS/NN.wav, after the first once for what loads late; FILE is what `lockstep` (an exported
folder) and `piper` (a voice) speak with. Every network has one thread of onnxruntime, whatever its program asks for.
"""

import importlib
import json
import sys
import time
import wave
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Voice = tuple[Callable[[str], np.ndarray], int, list[str]]
"""(text -> samples float32[S] in -1 to 1, Hz, files of its networks from phonemes to sound)."""


def lockstep(folder: str) -> Voice:
    loaded = importlib.import_module("xtts.trainer").load_voice(folder)
    return lambda text: loaded.speak(text).samples, loaded.sample_rate, [*map(str, Path(folder).glob("*.onnx"))]


def hibari() -> Voice:
    loaded = importlib.import_module("hibari").Hibari()
    return partial(loaded, seed=0), loaded.sample_rate, [loaded.model_path]


def piper(file: str) -> Voice:
    loaded = importlib.import_module("piper").PiperVoice.load(file)
    rate, chunks = loaded.config.sample_rate, loaded.synthesize
    return lambda text: np.hstack([chunk.audio_float_array for chunk in chunks(text)]), rate, [file]


PROGRAMS: dict[str, Callable[..., Voice]] = {"lockstep": lockstep, "hibari": hibari, "piper": piper}


def one_thread(session: Callable[..., Any], model: str | bytes, sess_options: Any, **others: Any) -> Any:  # noqa: ANN401
    sess_options.intra_op_num_threads = sess_options.inter_op_num_threads = 1
    return session(model, sess_options, **others)


def main() -> None:
    name, sounds, *files = sys.argv[1:]
    runtime: Any = importlib.import_module("onnxruntime")
    runtime.InferenceSession = partial(one_thread, runtime.InferenceSession)
    runtime.set_seed(0)
    speak, rate, networks = PROGRAMS[name](*files)
    texts = sys.stdin.read().splitlines()
    speak(texts[0])
    began = time.process_time()
    spoken = [speak(text) for text in texts]
    factor = (time.process_time() - began) * rate / sum(map(len, spoken))
    for number, samples in enumerate(spoken):
        with wave.open(f"{sounds}/{number:02}.wav", "wb") as file:
            file.setparams((1, 2, rate, 0, "NONE", ""))
            file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    program = f"{name}-tts {version(f'{name}-tts')}"
    print(json.dumps({"program": program, "real_time_factor": factor, "networks": networks}))


if __name__ == "__main__":
    main()
