"""Numbers in words where their whole construct is known.

A text is scanned once. At each number the constructs of `grammars/common.yaml` are tried in order. What none of them
covers stays as it is written: espeak-ng reads it. Words are those of num2words and CLDR (by unicode-rbnf and babel);
what they lack is in `grammars/LANGUAGE.yaml`. The patterns see 0 to 9 and plain signs, whatever the script of the text.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

from xtts.shared.text.abbreviations import any_of
from xtts.shared.text.language_tables import load_table, load_units
from xtts.shared.text.number_words import LANGUAGES, LONGEST_QUANTITY, cldr_words, say, spaced
from xtts.shared.text.scripts import plain_letters, separate_fractions

_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks of direction, which may stand inside a number."""
_PLAIN = str.maketrans("٪％－／：", "%%-/:")  # noqa: RUF001
_SLOT = re.compile(r"\{(\w+)(?::([\w-]+))?\}")
"""A value in a template: `{d}`, `{d:to_ordinal}`, `{y:spellout-ordinal-masculine-genitive}`."""
_TOKEN = re.compile(r"[^\s()\[\]\"«»“”]+")
_NEXT_WORD, _AT_END = re.compile(r"\s+(\w{3,})"), re.compile(r"\s*\Z")


def has_number_words(language: str) -> bool:
    """Whether the numbers of a language are put into words, rather than left to espeak-ng."""
    return _grammar(language) is not None


def read_numbers(text: str, language: str) -> str:
    """Return a text with the numbers and abbreviations that its language's grammar knows in words."""
    if (grammar := _grammar(language)) is None:
        return text
    text = grammar.with_words(plain_letters(_BIDI.sub("", text), language))
    plain = re.sub(r"\d", lambda digit: str(unicodedata.digit(digit[0])), text.translate(_PLAIN))
    read, done = list[str](), 0
    for match in grammar.start.finditer(plain) if re.search("[0-9]", plain) else ():
        if (start := match.start()) < done:
            continue
        words, end = ("", start) if match["address"] else grammar.read(plain, start)
        if not words:
            token = _TOKEN.match(plain, start)
            words, end = "", token.end() if token else match.end()
            read.append(text[done:end])
        else:
            read += [text[done:start], spaced(text, start, end, words, language)]
            end += bool(grammar.suffix.match(text, end))
        done = end
    return "".join([*read, text[done:]])


@lru_cache
def _grammar(language: str) -> "_Grammar | None":
    """Return the grammar of a language; None if neither a table nor num2words has its numbers."""
    name = "nb" if language == "no" else language
    table = load_table(name)
    return _Grammar(name if table else language, table) if table or language in LANGUAGES else None


class _Grammar:
    """Patterns of a language, made of its table, and readers of what they match.

    A reader raises `LookupError` for a match that the language has no words for.
    """

    def __init__(self, language: str, table: Mapping[str, Any]) -> None:
        from babel import Locale

        common, self.language, self.table, self.locale = load_table("common"), language, table, Locale.parse(language)
        percent = {"%": {"other": table["percent"]}} if "percent" in table else {}
        units: dict[str, Any] = {**load_units(language), **percent} if table else {}
        money = table.get("money", {})
        point = self.locale.number_symbols["latn"]["decimal"]
        self.money, self.nouns = frozenset(money), {"": "{0}", **units, **money}
        groups = "\u066c'\u2019" + table.get("groups", "," if point == "." else ".\xa0\u202f\u2009 ")
        hours = [rf"(?<=\b{re.escape(word)} [0-9]{h})" for word in table.get("before_time", ()) for h in ("", "[0-9]")]
        patterns = common["patterns"] | {
            "points": "".join({"\u066b", point} - {*groups}),
            "hours": "|".join(hours) or "(?!)",
            "coins": any_of({*money, *"$€£"}),
            "unit": any_of(units.keys() - {"%"}),
        }
        patterns |= {key: table[key] for key in patterns.keys() & table.keys()} | {"groups": groups}
        for name in ("quantity", "clock"):
            patterns[f"other_{name}"] = re.sub(r"(\?P<\w+)>", r"\g<1>2>", patterns[name])

        def compiled(pattern: str) -> re.Pattern[str]:
            while (expanded := re.sub(r"\{([a-z_]+)\}", lambda name: patterns[name[1]], pattern)) != pattern:
                pattern = expanded
            return re.compile(pattern)

        self.start, self.integer, self.suffix = (compiled(f"{{{name}}}") for name in ("start", "integer", "suffix"))
        behind = "{digit_behind}{behind}"
        self.constructs: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]] = []
        for name, pattern in table.get("constructs", common["constructs"]):
            endings = table.get("ordinals", {}).items() if name == "ordinal" else ()
            self.constructs += [
                (compiled(f"(?P<n>[0-9]{{1,9}})(?:{e}){behind}"), partial(self._ordinal, how)) for e, how in endings
            ]
            if name != "ordinal":
                self.constructs.append((compiled(f"(?:{pattern}){behind}"), getattr(self, f"_{name}")))
        self.words = [
            (compiled(beside.replace("{key}", f"(?P<key>{any_of(entries)})(?:(?<=\\w)(?!\\w)|(?<!\\w))")), entries)
            for name, beside in common["beside"].items() if (entries := table.get(name))
        ]

    def read(self, text: str, start: int) -> tuple[str, int]:
        """Return (words, end) of the construct at `start`, without words if there is none that is known."""
        for pattern, reader in self.constructs:
            if match := pattern.match(text, start):
                with suppress(LookupError):
                    return reader(match), match.end()
        return "", start

    def with_words(self, text: str) -> str:
        """Spell out abbreviations, and signs between numbers."""
        for pattern, entries in self.words:
            text = pattern.sub(partial(_spelled_out, entries), text)
        for sign, word in self.table.get("signs", {}).items():
            text = re.sub(rf"(?<=\d)\s?{re.escape(sign)}\s?(?=[-\u2212]?\d)", f" {word} ", text)
        return separate_fractions(text) if "mixed" in self.table else text

    def _say(self, how: str, value: int) -> str:
        """Return a number in words: `to_cardinal`, `to_ordinal`, `year`, a set of CLDR's rules, a table of endings."""
        if how == "year":
            is_year = 1100 <= value <= int(self.table.get("last_year", 1999))
            how = self.table.get("year", "to_cardinal") if is_year else "to_cardinal"
            if "{" in how:
                rest = self._say("to_cardinal", value % 100) if value % 100 else ""
                return self._fill(how, {"hundreds": str(value // 100), "rest": rest}).strip()
        if how in self.table:
            return _respell(self._say("to_ordinal", value), self.table[how])
        if how == "to_ordinal" and "ordinal" in self.table:
            return str(["", *self.table["ordinal"]][value])
        if how == "to_ordinal" and "endings" in self.table:
            return _respell(self._say("to_cardinal", value), self.table["endings"])
        if how == "to_cardinal" and ("cardinal" in self.table or self.language not in LANGUAGES):
            how = self.table.get("cardinal", "spellout-cardinal")
        words = cldr_words(how, value, self.language) if how.startswith("spellout") else say(how, value, self.language)
        return _respell(words, self.table.get("respell", {}))

    def _fill(self, template: str, values: Mapping[str, str]) -> str:
        """Return a template with its slots filled: digits in words, other texts as they are."""

        def fill(slot: re.Match[str]) -> str:
            value = values[slot[1]]
            how = slot[2] or ("year" if slot[1] == "y" else "to_cardinal")
            return self._say(how, int(value)) if value.isdecimal() else value

        return _SLOT.sub(fill, template)

    def _one_by_one(self, digits: str) -> str:
        return " ".join(self._say("to_cardinal", int(c)) if c.isdecimal() else c for c in digits)

    def _code(self, match: re.Match[str]) -> str:
        longest = int(self.table.get("code_groups", 0))
        return " ".join(
            self._one_by_one(group) if group[0] in "0" or len(group) > longest else self._say("to_cardinal", int(group))
            for group in re.findall("[0-9]+|[A-Z]", match[0])
        )

    def _version(self, match: re.Match[str]) -> str:
        return f" {self.table['version']} ".join(self._say("to_cardinal", int(part)) for part in match[0].split("."))

    def _date(self, match: re.Match[str]) -> str:
        year, month = int(match["y"]), int(match["m"])
        if not 1200 <= year < 2200:
            raise LookupError(year)
        months = self.table.get("solar_months" if year < 1600 and "solar_months" in self.table else "months")
        name = months[month - 1] if months else self.locale.months["format"]["wide"][month]
        template = self.table.get("date", "{d} {month} {y}")
        template = self.table.get("first_of_month", template) if int(match["d"]) == 1 else template
        return self._fill(template, {**match.groupdict(), "n": str(month), "month": name})

    def _time(self, match: re.Match[str]) -> str:
        times, minutes = self.table["time"], int(match["m"])
        for before, own in self.table.get("time_behind", {}).items():
            if re.search(f"{before}$", match.string[max(match.start() - 12, 0) : match.start()]):
                times = times | own
        few = times.get("few") if minutes < 10 else None
        template = times["seconds"] if match["s"] else times.get(str(minutes)) or few or times["usual"]
        return self._fill(template, match.groupdict())

    def _pair(self, match: re.Match[str]) -> str:
        word = self.table["range"] if self.table["range"] == "-" else f" {self.table['range']} "
        return word.join(self.read(match[name], 0)[0] for name in ("first", "second"))

    def _fraction(self, match: re.Match[str]) -> str:
        fraction = f"{match['n']}/{match['d']}"
        if int(match["n"]) >= int(match["d"]):
            raise LookupError(fraction)
        names, mixed = self.table.get("fractions", {}), match["w"] is not None
        spoken = (mixed and names.get(f"+{fraction}")) or names.get(fraction)
        spoken = spoken or self._fill(self.table["fraction"], match.groupdict())
        return self._fill(self.table["mixed"], {"w": match["w"], "f": spoken}) if mixed else spoken

    def _ordinal(self, how: str, match: re.Match[str]) -> str:
        with suppress(LookupError):
            return self._fill(how if "{" in how else f"{{n:{how}}}", match.groupdict())
        return ""  # espeak-ng knows more ordinals; a cardinal would be wrong

    def _range(self, match: re.Match[str]) -> str:
        (whole, fraction, low), (other, _, high) = (self._parts(match[name]) for name in ("number", "number2"))
        if other[0] == "0" < other[1:] or (match["dash"] == " - " and not match["after2"]):
            raise LookupError(match[0])
        if match["after"] or match["magnitude"] or match["before2"]:
            start = self._quantity(match)
        else:
            start = self._number(whole, fraction, match["minus"], self._frame(match, "2", high)[1])
        word = "-" if low >= high or match["dash"] == ":" else self.table["range"]  # a score
        return f"{start}{word if word == '-' else f' {word} '}{self._quantity(match, '2')}"

    def _quantity(self, match: re.Match[str], name: str = "") -> str:
        """Read a number with what is before and behind it: a sign of money, percent, a unit, a magnitude."""
        whole, fraction, value = self._parts(match[f"number{name}"])
        magnitude, sign = match[f"magnitude{name}"] or "", self._sign(match, name)
        cents = fraction if sign in self.money and len(fraction) == 2 and not magnitude else "0"
        if cents != "0":
            fraction, value = "", Decimal(int(value))
        frame, noun = self._frame(match, name, Decimal(10**6) if magnitude else value)
        words = self._number(whole, fraction, match[f"minus{name}"], noun)
        frame = frame.replace("{0} de ", "{0} ") if magnitude.endswith(" de") else frame  # Romanian
        spoken = frame.replace("{0}", f"{words} {magnitude}".strip())
        if not int(cents):
            return spoken
        forms = self.table["cents"]
        small = self._plural(forms.get(sign) or forms[""], Decimal(cents))
        return f"{spoken} {small}".replace(
            "{f}", self._number(str(int(cents)), "", None, small.replace("{f}", "").strip())
        )

    def _sign(self, match: re.Match[str], name: str) -> str:
        return (match["before"] or match[f"before{name}"] or match[f"after{name}"] or match[f"of{name}"] or "").strip()

    def _frame(self, match: re.Match[str], name: str, value: Decimal) -> tuple[str, str]:
        """Return the pattern around a number, and the noun that is counted: a magnitude, in it, or the next word."""
        sign = self._sign(match, name)
        unit, *others = [sign] if sign in self.nouns else sign.split("/")
        frame = self._plural(self.nouns[unit], value)
        for other in others:
            frame = str(self.nouns[other]["per"]).replace("{0}", frame)
        following = _NEXT_WORD.match(match.string, match.end())
        noun = frame.replace("{0}", "").strip() or (following[1] if following else "")
        return frame, match[f"magnitude{name}"] or noun

    def _plural(self, pattern: Any, value: Decimal) -> str:  # noqa: ANN401 - a pattern, or patterns by plural form
        forms = {"other": pattern} if isinstance(pattern, str) else pattern
        return str(forms.get(self.locale.plural_form(value)) or forms["other"])

    def _parts(self, number: str) -> tuple[str, str, Decimal]:
        """Return a number before its point, the digits behind it, and its value."""
        match = self.integer.match(number)
        end = match.end() if match else 0
        whole, fraction = "".join(filter(str.isdecimal, number[:end])), number[end + 1 :]
        return number[:end], fraction, Decimal(f"{whole}.{fraction}" if fraction else whole)

    def _number(self, whole: str, fraction: str, minus: str | None, noun: str) -> str:
        """Return a number in words, agreeing with a noun where the table says so."""
        how = "year" if len(whole) == 4 and not fraction else "to_cardinal"
        whole = "".join(filter(str.isdecimal, whole))
        if len(whole) > LONGEST_QUANTITY or (whole[0] == "0" and whole != "0"):
            raise LookupError(whole)
        if "decimal_names" in self.table if fraction else noun and re.match(self.table.get("feminine", "(?!)"), noun):
            how = self.table.get("feminine_words", "spellout-cardinal-feminine")
        words = self._say(how, int(whole))
        words = _respell(words, self.table.get("before_noun", {})) if noun and not fraction else words
        words = f"{self.table['minus']} {words}" if minus else words
        if not fraction:
            return words
        return f"{words} {self._plural(self.table['decimal'], Decimal(whole))} {self._decimals(fraction)}"

    def _decimals(self, digits: str) -> str:
        """Read decimals one by one, as a number, or as a number of tenths or hundredths."""
        names = self.table.get("decimal_names", [])
        if len(digits) <= len(names):
            name = self._plural(names[len(digits) - 1], Decimal(digits))
            return f"{self._say('spellout-cardinal-feminine', int(digits))} {name}"
        as_number = len(digits) <= int(self.table.get("decimals_as_number", 1)) and digits[0] != "0"
        return self._say("to_cardinal", int(digits)) if as_number else self._one_by_one(digits)


def _spelled_out(entries: Mapping[str, str], match: re.Match[str]) -> str:
    """Return an abbreviation's words; its full stop stays at the end of the text."""
    text, key = match.string, match["key"]
    gap, touching = text[match.start() - 1 : match.start()].isdecimal(), text[match.end() : match.end() + 1].isalnum()
    ends = key.endswith(".") and _AT_END.match(text, match.end()) is not None
    return " " * gap + entries[key] + "." * ends + " " * touching


def _respell(words: str, replacements: Mapping[str, str]) -> str:
    """Apply the first of the replacements, by pattern, that matches."""
    changed = (re.sub(pattern, replacement, words) for pattern, replacement in replacements.items())
    return next((one for one in changed if one != words), words)
