"""The ONNX graph of a checkpoint, exported once and kept in the user's cache folder."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from xtts.shared.system import atomic_files
from xtts.shared.system.machine import user_cache
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.synth.export.onnx_model import OnnxOptions, make_graph
from xtts.trainer.synth.voice_source import Source

_DIGEST_BYTES = 32
_MOST_KEPT = 9
"""Graphs that stay, those used last."""
_PACKAGES = ("lockstep-tts", "tensorflow", "tf2onnx")


def kept_graph(source: Source, tell: Callable[[str], None]) -> bytes:
    """The graph of a run or of a folder of safetensors; `LockstepError` if it cannot be exported.

    A damaged file is written anew. A folder that cannot be written to costs the time of an export at each start. The
    file is the SHA-256 of the graph, then the graph.
    """
    path = _folder() / f"{_key(source)}.graph"
    with suppress(OSError):
        data = path.read_bytes()
        if hashlib.sha256(data[_DIGEST_BYTES:]).digest() == data[:_DIGEST_BYTES]:
            path.touch()
            return data[_DIGEST_BYTES:]
    tell(f"{source.checkpoint}: exporting an ONNX graph, once")
    graph = make_graph(source, synthesis=SynthesisOptions(), options=OnnxOptions()).data
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.write(path, hashlib.sha256(graph).digest() + graph)
        for old in sorted(path.parent.glob("*.graph"), key=_last_use)[:-_MOST_KEPT]:
            old.unlink(missing_ok=True)
    return graph


def _folder() -> Path:
    return user_cache() / "onnx"


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _key(source: Source) -> str:
    """Digest of what the graph comes from: weights, model, voice, versions and the code of model and export."""
    trainer = Path(__file__).parents[2]
    code = hashlib.sha256()
    for file in sorted((*(trainer / "model").glob("*.py"), *(trainer / "synth" / "export").glob("onnx_*.py"))):
        code.update(file.read_bytes())
    described = {
        "weights": source.weights_digest(),
        "model": source.model.model_dump(mode="json"),
        "voice": source.voice.model_dump(mode="json"),
        "versions": [metadata.version(name) for name in _PACKAGES],
        "code": code.hexdigest(),
    }
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:32]
