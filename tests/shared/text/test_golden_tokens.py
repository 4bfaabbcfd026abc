"""Ten sentences in each of ten languages, to tokens by every tokenizer, as a person reviewed them.

Run as a script it writes `golden_tokens.json` anew; read the difference before you commit it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from xtts.shared.text.text_normalization import expand
from xtts.shared.text.tokenizer import Tokenizer, learn_tokenizer

HERE = Path(__file__).parent
SENTENCES = json.loads((HERE / "golden_sentences.json").read_text(encoding="utf-8"))
GOLDEN = HERE / "golden_tokens.json"
KINDS = ("characters", "phonemes", "bpe")


def spoken(code):
    """The sentences of a language with their numbers in words."""
    return [expand(text, code) for text in SENTENCES[code]]


def learned(kind: str, code: str) -> Tokenizer:
    return learn_tokenizer(kind, {code: spoken(code)}, add_blank=False, vocabulary=128)


def tokens() -> dict[str, list[dict[str, str]]]:
    """Sentence by sentence: the symbols of every kind (pieces of `bpe` set apart by |), and what has no token."""
    made = {(code, kind): learned(kind, code) for code in SENTENCES for kind in KINDS}
    golden: dict[str, list[dict[str, str]]] = {code: [] for code in SENTENCES}
    for code in SENTENCES:
        for text in spoken(code):
            row, left_out = {"text": text}, set[str]()
            for kind in KINDS:
                encoded = made[code, kind].encode(text)
                symbols = [made[code, kind].symbols[i] for i in encoded.ids]
                row[kind] = ("|" if kind == "bpe" else "").join(symbols)
                left_out |= set(encoded.left_out)
            golden[code].append({**row, "left out": "".join(sorted(left_out))})
    return golden


@pytest.fixture(scope="module")
def made():
    """The tokens now, made in a process of its own: other tests need espeak-ng not to be loaded in this one."""
    for library in ("espeakng_loader", "tokenizers", "pypinyin"):
        pytest.importorskip(library)
    done = subprocess.run([sys.executable, __file__, "--print"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("code", SENTENCES)
def test_tokens_equal_the_reviewed_ones(made, code):
    assert len(SENTENCES[code]) == 10
    assert made[code] == json.loads(GOLDEN.read_text(encoding="utf-8"))[code]


if __name__ == "__main__":
    written = json.dumps(tokens(), ensure_ascii=False, indent=1) + "\n"
    sys.stdout.write(written) if "--print" in sys.argv else GOLDEN.write_text(written, encoding="utf-8")
