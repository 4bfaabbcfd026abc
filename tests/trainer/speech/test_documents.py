"""Documents become lines: Markdown loses its marks, wrapped paragraphs are joined, and other lines stay apart."""

import textwrap

import pytest

from xtts.trainer.speech.documents import join_lines, read_document
from xtts.trainer.speech.sentences import split_sentences

GERMAN = (
    "Am Morgen ging der alte Fischer wie jeden Tag hinunter zum Hafen, um nach dem Boot und nach den Netzen zu sehen. "
    "Der Wind hatte in der Nacht gedreht, und über dem Wasser lag ein Nebel, der die Insel vollständig verdeckte. "
    "Seine Enkelin brachte ihm einen Korb mit Brot, Käse und zwei Äpfeln und wartete auf die Möwen."
)
ENGLISH = (
    "In the morning the old fisherman went down to the harbour of St. Ives, as he did every day, to see his nets. "
    "The wind had turned at night, and Mr. Brown from London said that a fog lay over the sea. "
    "His niece Anna brought a basket with bread, cheese and two apples."
)


@pytest.mark.parametrize(("text", "language"), [(GERMAN, "de"), (ENGLISH, "en")])
def test_a_wrapped_paragraph_has_its_sentences_at_every_width(text, language):
    for width in range(40, 101):
        wrapped = textwrap.fill(text, width)
        item = textwrap.fill(text, width, initial_indent="- ", subsequent_indent="  ")
        assert len(split_sentences(f"{wrapped}\n\n{wrapped}\n{item}", language)) == 9, width


@pytest.mark.parametrize(("text", "joined"), [
    (
        "pronun-\nciation, U-\nBahn, Vor-\nund Nachteile, self-\nmade",
        "pronunciation, U-Bahn, Vor- und Nachteile, self-made",
    ),
    ("1. one\n2. two", "1: one\n2: two"),
    (
        "The train to the north leaves every morning from the old station in\nBerlin and arrives at noon.",
        "The train to the north leaves every morning from the old station in Berlin and arrives at noon.",
    ),
    *(
        (text, text)
        for text in (
            "milk\neggs", "3. Mai\nDann", "Dear Bob,\n\nThank you.\n\nYours,\nAnna",
            "The Adventures of Tom Sawyer by Mark Twain\nTom!\nNo answer.",
            "Buy forty eggs from the market downtown today\nCall mother about the birthday party next week",
        )
    ),
])
def test_only_lines_that_were_one_are_joined(text, joined):
    assert join_lines(text) == joined


MARKDOWN = """# Head

See [the guide](https://x.y/a_b), ![a cat](x.png) and **bold** `code`.

- one

```python
x = 1
```

| a | b |
|---|---|
| 1 | 2 |
"""


def test_markdown_is_read_without_its_marks():
    lines = [line for line in read_document(MARKDOWN).splitlines() if line]
    assert lines == ["Head", "See the guide, a cat and bold code.", "one", "x = 1", "a, b,", "1, 2,"]


@pytest.mark.parametrize(("text", "read"), [
    ("**Play**\n\n[Anna]: Hallo!\n[Bob]: Hi.", "Play\n\n[Anna]: Hallo!\n[Bob]: Hi.\n\n"),
    ("Use the `<b>` tag.", "Use the &lt;b&gt; tag.\n\n"),
    ("**5** &lt;b&gt; 3", "5 &lt;b&gt; 3\n\n"),
    ("`a`, 5**2 and 2**5", "a, 5**2 and 2**5\n\n"),
    ("x<sup>2</sup>, so<SUP> 1 </SUP> 4<sup>th</sup>", "x², so¹ 4<sup>th</sup>"),
    ("for $n^2$ and $x$, $5 or $6", "for n^2 and x, $5 or $6"),
    ("\x1b[1;31mred\x1b[0m a\fb\u2028c\vd", "red a b c d"),
    *(
        (text, text)
        for text in (
            "5**2 is 25", "10. Mai: Regen.\n11. Mai: Sonne.", "5 * 3 * 2", "#1 of 2", "> 5 people", "a [b] (c)",
            "__init__", "snake_case_name",
        )
    ),
])
def test_what_only_looks_like_a_mark_is_read_and_signs_of_other_texts_stay(text, read):
    assert read_document(text).rstrip() == read.rstrip()
