"""Our prompts, and the order in which a file's prompts are recorded."""

import random

import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.record.prompts import in_order, phoneme_pairs, read_prompts

COUNTS = (20, 50, 100, 150)


def pair_cover(prompts, language):
    """The share of all pairs of the prompts that the first so many of them contain."""
    pairs = [phoneme_pairs(prompt, language) for prompt in prompts]
    return [len(set().union(*pairs[:count])) / len(set().union(*pairs)) for count in COUNTS]


@pytest.mark.parametrize("language", ["en", "de", "fa"])
def test_our_prompts_are_150_of_all_kinds_and_the_first_cover_most_pairs(language):
    pytest.importorskip("espeakng_loader")
    prompts = read_prompts(None, language)
    assert len({*prompts}) == 150
    words = [len(prompt.split()) for prompt in prompts]
    assert {*words} <= {1, *range(3, 13)}
    assert sum(count == 1 for count in words) >= 10
    assert sum(prompt.endswith(("?", "؟")) for prompt in prompts) >= 20
    assert sum(prompt.endswith("!") for prompt in prompts) >= 10
    cover = pair_cover(prompts, language)
    print(language, *(f"{share:.0%} after {count}," for count, share in zip(COUNTS, cover, strict=True)))
    shuffled = random.Random(0).sample(prompts, len(prompts))
    assert cover[0] > 1.15 * pair_cover(shuffled, language)[0]
    assert cover[-1] == 1.0
    pairs = sorted({pair for prompt in prompts for pair in phoneme_pairs(prompt, language)})
    assert len(pairs) > 400, "a diverse text"


def test_the_prompt_with_most_new_pairs_comes_first_and_the_order_is_the_files(tmp_path):
    few, many, other = "aa bb aa bb.", "the quick brown fox jumps.", "over lazy dogs."
    assert in_order([few, many, other], "eo") == [many, other, few]
    (file := tmp_path / "prompts.txt").write_text(f"\ufeff{few}\n\n  {many} \n{other}\n{other}\n", encoding="utf-8")
    assert read_prompts(file, "eo") == [many, other, few] == read_prompts(file, "eo")


@pytest.mark.parametrize(("text", "language", "words"), [
    (None, "nl", r"--language: no prompts in 'nl', expected de, en, fa; --prompts FILE"),
    ("one\ntwo | three\n", "nl", r"prompts.txt:2: a \|, which ends a column of metadata.csv; remove it"),
    ("\n \n", "nl", r"prompts.txt: 0 prompts, expected 1 to 9,999"),
])
def test_prompts_that_cannot_be_recorded_are_refused(tmp_path, text, language, words):
    file = None if text is None else tmp_path / "prompts.txt"
    if file:
        file.write_text(text)
    with pytest.raises(LockstepError, match=words):
        read_prompts(file, language)
