"""Writes docs/demo/index.html, a page to hear the voices of this tree: `make demo`.

docs/demo/demo.yaml lists its sentences, each with its sounds by name: a file beside the list (a recording, or what a
voice outside the tree said), or a voice of the tree, which speaks anew. The page names list and networks, so that a
test knows whether it is older than they are.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import soundfile
import yaml

from xtts.shared.languages import find_language
from xtts.trainer import load_voice
from xtts.trainer.evaluation.listening_page import Section, Sentence, Sound, render_page, sound_of

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "demo"
PAGE, LIST = FOLDER / "index.html", FOLDER / "demo.yaml"
VOICE = ROOT / "voices" / "base"


def main() -> None:
    """Write the page."""
    listed = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    sections = [
        Section(
            title=section["title"], remark=section["remark"], sentences=[sentence(row) for row in section["sentences"]]
        ) for section in listed["sections"]
    ]
    page = render_page(listed["title"], listed["remark"], sections, ckpt="voices/base")
    PAGE.write_text(page.replace("<head>", f"<head>\n<!-- {made_of()} -->", 1), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {PAGE.stat().st_size / 1e6:.1f} MB")


def made_of() -> str:
    """What the page is made of, as digests: the list and the networks of the voice."""
    files = (LIST, VOICE / "model.onnx", VOICE / "vocoder.onnx")
    return ", ".join(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}" for path in files)


def sentence(row: Mapping[str, Any]) -> Sentence:
    """Make or read the sounds of a sentence of the list."""
    sounds = [
        stored(name, FOLDER / source) if source.endswith(".mp3") else spoken(name, row, ROOT / source)
        for name, source in row["sounds"].items()
    ]
    return Sentence(text=row["text"], direction=find_language(row["language"]).direction, sounds=sounds)


def spoken(name: str, row: Mapping[str, Any], voice: Path) -> Sound:
    """Speak the text of a sentence with a voice."""
    loaded = load_voice(voice, language=row["language"])
    return sound_of(name, loaded.speak(row["text"]).samples, loaded.sample_rate)


def stored(name: str, file: Path) -> Sound:
    """A sound that is embedded as it lies there."""
    samples, rate = soundfile.read(file, dtype="float32")
    return replace(
        sound_of(name, samples, rate), uri=f"data:audio/mpeg;base64,{base64.b64encode(file.read_bytes()).decode()}"
    )


if __name__ == "__main__":
    main()
