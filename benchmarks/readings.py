# pyright: reportMissingImports=false
"""How many everyday texts are read as people say them, by our rules and by libraries that are installed.

    pip install wetext PyICU babel pint
    python benchmarks/readings.py tests/shared/text/everyday_texts.tsv

By words, and by the phonemes of espeak-ng, which also reads the texts as they are: what it does alone. A line of a
table holds a language, a text, the readings of which one must occur, and what must not occur.
"""

import argparse
import importlib.util
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from xtts.shared.text.phonemes import phonemise
from xtts.shared.text.text_normalization import expand

_NO_STRESS = str.maketrans("", "", "ˈˌ")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MEASURE = re.compile(r"(\d+(?:[.,]\d+)*)\s?([A-Za-zµ°²³]+(?:/[A-Za-z²³]+)?)(?!\w)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tables", nargs="+", type=Path)
    options = parser.parse_args()
    readers: dict[str, tuple[Callable[[str, str], str], str]] = {
        "ours": (expand, "xtts"), "wetext": (read_by_wetext, "wetext"), "ICU": (read_by_icu, "icu"),
        "num2words, babel and pint": (read_by_num2words, "pint"),
    }
    has_espeak = importlib.util.find_spec("espeakng_loader")
    installed = {name: reader for name, (reader, module) in readers.items() if importlib.util.find_spec(module)}
    for name, reader in installed.items():
        for table in options.tables:
            rows = list(read_table(table))
            for language in sorted({row[0] for row in rows}):
                own = [(text, *rest) for code, text, *rest in rows if code == language]
                right = sum(is_right(reader(text, language), *rest) for text, *rest in own)
                print(f"{name}, {table.name}, {language}: {right} of {len(own)}", end="" if has_espeak else "\n")
                if has_espeak:
                    heard = sum(is_heard(reader(text, language), language, wanted) for text, wanted, _ in own)
                    alone = sum(is_heard(text, language, wanted) for text, wanted, _ in own)
                    print(f", {heard} as phonemes; {alone} by espeak-ng alone")


def read_table(path: Path) -> Iterator[list[str]]:
    """The lines: language, text, what must occur, what must not."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return ([*line.split("\t"), ""][:4] for line in lines if line and not line.startswith("#"))


def is_right(reading: str, wanted: str, unwanted: str) -> bool:
    """Whether one of `wanted`, between |, occurs in a reading, and `unwanted` does not; marks do not count."""
    said = f" {_words(reading)} "
    bad = f" {_words(unwanted)} " in said if _words(unwanted) else unwanted and unwanted in reading
    return not bad and any(f" {_words(one)} " in said for one in wanted.split("|"))


def is_heard(text: str, language: str, wanted: str) -> bool:
    """Whether the phonemes of one of `wanted` occur in those of a text, without stress, marks and spaces."""
    sounds = [
        "".join(filter(str.isalnum, phonemise(one, language).translate(_NO_STRESS)))
        for one in (text, *wanted.split("|"))
    ]
    return any(one and one in sounds[0] for one in sounds[1:])


def _words(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower()))


def read_by_wetext(text: str, language: str) -> str:
    """WeTextProcessing's rules, which has none for German: the text as it is."""
    from wetext import Normalizer

    return str(Normalizer(lang="en", operator="tn").normalize(text)) if language == "en" else text


def read_by_icu(text: str, language: str) -> str:
    """The numbers by the rules of ICU, everything else as it is."""
    import icu

    words = icu.RuleBasedNumberFormat(icu.URBNFRuleSetTag.SPELLOUT, icu.Locale(language))
    numbers = icu.NumberFormat.createInstance(icu.Locale(language))

    def spoken(number: re.Match[str]) -> str:
        with suppress(icu.ICUError):  # 1.2.3 is not a number
            return str(words.format(numbers.parse(number[0])))
        return number[0]

    return _NUMBER.sub(spoken, text)


def read_by_num2words(text: str, language: str) -> str:
    """The numbers by num2words, the names of units by babel, which pint recognises."""
    from babel.units import format_unit
    from num2words import num2words
    from pint import get_application_registry
    from pint.errors import PintError
    from pint.util import to_units_container

    def number(written: str) -> str:
        plain = written.replace(".", "").replace(",", ".") if language == "de" else written.replace(",", "")
        version = plain.count(".") > 1
        return written if version else str(num2words(float(plain) if "." in plain else int(plain), lang=language))

    def measure(found: re.Match[str]) -> str:
        try:
            unit = to_units_container(get_application_registry().parse_units(found[2].replace("°", "deg")))
            names = ("-per-" * (power < 0) + name.replace("_", "-") for name, power in unit.items())
            return f"{number(found[1])} {format_unit(5, ''.join(names), locale=language).partition(' ')[2]}"
        except (PintError, ValueError, AttributeError):
            return f"{number(found[1])} {found[2]}"

    return _NUMBER.sub(lambda found: number(found[0]), _MEASURE.sub(measure, text))


if __name__ == "__main__":
    main()
