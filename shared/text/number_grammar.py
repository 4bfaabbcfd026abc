"""Numbers of languages other than English and German, in words where their whole construct is known.

A text is scanned once. At each number the constructs are tried in order: date, code, version, time, fraction, range,
ordinal, quantity. What none of them covers stays as it is written: espeak-ng reads it. Words are those of num2words and
CLDR (by unicode-rbnf and babel); what they lack is in `grammars/LANGUAGE.yaml`, explained in `grammars/common.yaml`.
The patterns see 0 to 9 and plain signs, whatever the script of the text.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import yaml

from xtts.shared.text.number_contexts import separate_fractions
from xtts.shared.text.number_words import LANGUAGES, LONGEST_QUANTITY, cldr_words, say
from xtts.shared.text.scripts import plain_letters

_TABLES = Path(__file__).with_name("grammars")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks of direction, which may stand inside a number."""
_PLAIN = str.maketrans("٪％−－／：", "%%--/:")  # noqa: RUF001
_SLOT = re.compile(r"\{(\w+)(?::([\w-]+))?\}")
"""A value in a template: `{d}`, `{d:to_ordinal}`, `{y:spellout-ordinal-masculine-genitive}`."""
_TOKEN = re.compile(r"[^\s()\[\]\"«»“”]+")
_NUMBER_BEHIND = r"(?![0-9_])(?![.,:/\u066b\u066c-][0-9])"
_ADDRESS = r"(?P<address>(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+\.[\w.-]+|(?:[\w-]+\.)+(?:com|org|net|ir|io)\b)"
_CODE = (
    r"\+[0-9]{1,3}(?:[ -]?\([0-9]{1,4}\))?(?:[ -]?[0-9]{2,4}){2,}"  # +98 21 8877 6655
    r"|\(?0[0-9]{1,4}\)?[ -]?[0-9]{3,4}(?:[ -]?[0-9]{2,4})+|0[0-9](?:[ .-][0-9]{2}){4}"  # 021-88776655, 06 12 34 56 78
    r"|[0-9]{4}(?:[ -][0-9]{4}){2,4}|[0-9]{3}-[0-9]{3,4}-[0-9]{4}"  # cards
    r"|[A-Z]{2}[0-9]{2}(?: ?[0-9]{4}){3,5}(?: ?[0-9]{1,4})?|0[0-9]+|[0-9]{16,}"
)
"""Numbers of telephones, cards and accounts, and serial numbers."""
_DATES = (
    r"(?P<y>[12][0-9]{3})(?P<s>[/.-])(?P<m>0?[1-9]|1[0-2])(?P=s)(?P<d>0?[1-9]|[12][0-9]|3[01])",
    r"(?P<d>0?[1-9]|[12][0-9]|3[01])(?P<s>[/.-])\s?(?P<m>0?[1-9]|1[0-2])(?P=s)\s?(?P<y>[12][0-9]{3})",
)


def read_numbers(text: str, language: str) -> str:
    """Return a text with the numbers and abbreviations that its language's grammar knows in words."""
    if (grammar := _grammar(language)) is None:
        return text
    text = grammar.with_words(plain_letters(_BIDI.sub("", text), language))
    plain = "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text.translate(_PLAIN))
    read, done = list[str](), 0
    for match in grammar.start.finditer(plain):
        start = match.start()
        if start < done:
            continue
        found = None if match["address"] else grammar.read(plain, start)
        if found is None:
            token = _TOKEN.match(plain, start)
            end = token.end() if token else match.end()
            read.append(text[done:end])
        else:
            words, end = found
            gaps = [" " * text[max(start - 1, 0) : start].isalpha(), " " * text[end : end + 1].isalpha()]
            read += [text[done:start], gaps[0], words, gaps[1]]
        done = end
    return "".join([*read, text[done:]])


@lru_cache
def _grammar(language: str) -> "_Grammar | None":
    """Return the grammar of a language; None if neither a table nor num2words has its numbers."""
    name = "nb" if language == "no" else language
    if (_TABLES / f"{name}.yaml").exists():
        return _Grammar(name, _load(name))
    return _Grammar(language, {}) if language in LANGUAGES else None


class _Grammar:
    """Patterns made of a language's table, and readers of what they match."""

    def __init__(self, language: str, table: Mapping[str, Any]) -> None:
        self.language, self.table, self.locale = language, table, _locale(language)
        self.units, self.money = self._units() if table else {}, dict[str, Any](table.get("money", {}))
        places = (
            ("abbreviations", r"(?<!\w)", ""),
            ("before_number", r"(?<!\w)", r"(?=\s?\d)"),
            ("after_number", r"(?<=\d)\s?", ""),
        )
        self.words = [
            (re.compile(rf"{before}(?P<key>{_any_of(entries)})(?:(?<=\w)(?!\w)|(?<!\w)){behind}"), entries)
            for name, before, behind in places
            if (entries := table.get(name, {}))
        ]
        self.number = re.compile(self._number_pattern())
        self.first = "%|" * bool(table.get("percent_first")) + _any_of({*self.money, *"$€£"})
        letter, free = ("A-Za-z", "[0-9A-Za-z_]") if table.get("touching") else (r"^\W\d_", r"\w")
        self.constructs = [
            (re.compile(f"(?:{pattern}){_NUMBER_BEHIND}(?![{letter}])"), reader)
            for pattern, reader in self._constructs()
        ]
        self.start = re.compile(
            rf"{_ADDRESS}|(?<!{free})(?<![0-9][.,:/\u066b\u066c])"
            rf"(?:[A-Z]{{2}}(?=[0-9]{{2}}[0-9 ])|(?:(?:{self.first})\s?)?[-+\u2212(]{{0,2}}(?=[0-9]))"
        )

    def _number_pattern(self) -> str:
        """Return a pattern of an integer `i` with its decimals `f`, by the language's signs."""
        point = self.locale.number_symbols["latn"]["decimal"] if self.locale else "."
        groups = "\u066c'\u2019" + self.table.get("groups", "," if point == "." else ".\xa0\u202f\u2009 ")
        points = "".join({"\u066b", point} - {*groups})
        other = rf"[{self.table.get('other_points', '.')}](?![0-9]{{3}}(?![0-9]))"
        slash = "|/(?=[0-9]{1,2}(?![0-9]))" * ("slash" in self.table)
        lakhs = r"[0-9]{1,2}(?:,[0-9]{2})*,[0-9]{3}(?![0-9])|" * bool(self.table.get("lakhs"))
        integer = rf"{lakhs}[0-9]{{1,3}}(?:[{groups}][0-9]{{3}})+(?![0-9])|[0-9]+"
        return rf"(?P<i>{integer})(?:(?:[{points}]|{other}{slash})(?P<f>[0-9]+))?"

    def _constructs(self) -> Iterator[tuple[str, Callable[[re.Match[str]], str | None]]]:
        """Yield (pattern, its reader) in the order in which they are tried."""
        table, number = self.table, re.sub(r"\?P<[if]>", "?:", self.number.pattern)
        signs, unit, magnitude = _any_of({*self.money, *"$€£"}), _any_of(self.units), table.get("magnitudes", "(?!)")

        def quantity(name: str, minus: str) -> str:
            return (
                rf"(?:(?P<before{name}>{self.first})\s?)?(?P<minus{name}>{minus})?(?P<number{name}>{number})"
                rf"(?:\s?(?P<after{name}>%|{signs}(?!\w)|{unit}(?![\w²³/]))"
                rf"|\s(?P<magnitude{name}>{magnitude})(?!\w)(?:\s?(?P<of{name}>{signs}(?!\w)))?)?"
            )

        year_words = rf"(?:\s?(?:{table.get('year_words', '(?!)')}))?"
        yield from ((date + year_words, self._date) for date in _DATES)
        yield _CODE, self._code
        yield rf"(?!(?:{number}){_NUMBER_BEHIND})[0-9]+(?:\.[0-9]+){{2,}}", self._version
        said = rf"(?:\s?(?:{table.get('hour_words', '(?!)')})(?![^\W\d_]))"
        hours = [
            rf"(?<=\b{re.escape(word)} {h})" for word in table.get("before_time", ()) for h in ("[0-9]", "[0-9]{2}")
        ]
        clock = rf"[{table.get('time_signs', ':')}]|(?:{'|'.join(hours) or '(?!)'})\.|\.(?=[0-5][0-9]{said})"
        yield rf"(?P<h>[01]?[0-9]|2[0-4])(?:{clock})(?P<m>[0-5][0-9])(?::(?P<s>[0-5][0-9]))?{said}?", self._time
        share = rf"(?!\s?(?:%|{table.get('slash') or '(?!)'}|{magnitude}|{unit}))"
        yield rf"(?:(?P<w>[0-9]+)[ +])?(?P<n>[1-9][0-9]?)[/\u2044](?P<d>[2-9]|10{{1,3}}){share}", self._fraction
        one, other = quantity("", r"(?<![\w)])[-\u2212]"), quantity("2", "(?!)")
        yield one + r"(?P<dash>\s?[-\u2013\u2014]\s?)" + other, self._range
        for ending, how in table.get("ordinals", {}).items():
            yield rf"(?P<n>[0-9]{{1,4}})(?:{ending})", partial(self._ordinal, how)
        yield one, self._quantity

    def read(self, text: str, start: int) -> tuple[str, int] | None:
        """Return (words, end) of the construct at `start`; None if there is none that is known."""
        for pattern, reader in self.constructs:
            if match := pattern.match(text, start):
                try:
                    words = reader(match)
                except LookupError:  # a word that the language lacks
                    return None
                if words is not None:
                    return words, match.end()
        return None

    def with_words(self, text: str) -> str:
        """Spell out abbreviations, and signs between numbers."""
        for pattern, entries in self.words:
            text = pattern.sub(partial(_spelled_out, entries), text)
        for sign, word in self.table.get("signs", {}).items():
            text = re.sub(rf"(?<=\d)\s?{re.escape(sign)}\s?(?=[-\u2212]?\d)", f" {word} ", text)
        return separate_fractions(text) if "mixed" in self.table else text

    def _units(self) -> dict[str, Mapping[str, str]]:
        """Return CLDR's patterns by plural form, of each unit by its international and its own symbols."""
        patterns = self.locale._data["unit_patterns"] if self.locale else {}
        units = dict[str, Mapping[str, str]]()
        for symbol, name in _common()["units"].items():
            if long := patterns.get(name, {}).get("long"):
                short = str(patterns[name].get("short", {}).get("other", ""))
                own = [sign for sign in [short.replace("{0}", "").strip("\u200e \xa0")] if " " not in sign]
                units |= {sign: long for sign in (symbol, *own) if sign and not sign.isdecimal()}
        units |= {
            symbol: {"other": pattern} if isinstance(pattern, str) else pattern
            for symbol, pattern in self.table.get("units", {}).items()
        }
        spellings = _common()["spellings"] | self.table.get("unit_symbols", {})
        return units | {sign: units[symbol] for sign, symbol in spellings.items() if symbol in units}

    def _say(self, how: str, value: int) -> str:
        if how == "digits":
            return " ".join(self._say("to_cardinal", int(digit)) for digit in str(value))
        if how in self.table:
            return _respell(self._say("to_ordinal", value), self.table[how])
        if how == "to_ordinal" and "endings" in self.table:
            return _respell(self._say("to_cardinal", value), self.table["endings"])
        if how == "to_cardinal" and ("cardinal" in self.table or self.language not in LANGUAGES):
            how = self.table.get("cardinal", "spellout-cardinal")
        words = cldr_words(how, value, self.language) if how.startswith("spellout") else say(how, value, self.language)
        return _respell(words, self.table.get("respell", {}))

    def _fill(self, template: str, values: Mapping[str, int | str]) -> str:
        def fill(slot: re.Match[str]) -> str:
            value = values[slot[1]]
            return value if isinstance(value, str) else self._say(slot[2] or "to_cardinal", value)

        return _SLOT.sub(fill, template)

    def _digits(self, digits: str) -> str:
        return " ".join(self._say("to_cardinal", int(digit)) for digit in digits)

    def _code(self, match: re.Match[str]) -> str:
        """Read digits in their groups: one by one, or as numbers where the language does so."""
        read = []
        for group in re.findall("[0-9]+|[A-Z]+", match[0]):
            whole = (
                int(self.table.get("code_groups", 0)) >= len(group.lstrip("0")) > 0
                and group.isdigit()
                and group != match[0]
            )
            zeros = len(group) - len(group.lstrip("0"))
            number = (
                [self._digits(group[:zeros])] * bool(zeros) + [self._say("to_cardinal", int(group))] if whole else []
            )
            read.append(" ".join(number) if whole else self._digits(group) if group.isdigit() else " ".join(group))
        return " ".join(read)

    def _version(self, match: re.Match[str]) -> str:
        return f" {self.table['version']} ".join(self._say("to_cardinal", int(part)) for part in match[0].split("."))

    def _date(self, match: re.Match[str]) -> str | None:
        year, month = int(match["y"]), int(match["m"])
        names = self.table["solar_months"] if 1200 <= year < 1600 and "solar_months" in self.table else self._months()
        if not names or not 1200 <= year < 2200:
            return None
        values = {"d": int(match["d"]), "n": month, "month": names[month - 1], "y": year}
        template = self.table.get("date", "{d} {month} {y}")
        return self._fill(self.table.get("first_of_month", template) if values["d"] == 1 else template, values)

    def _months(self) -> list[str]:
        names = self.locale.months["format"]["wide"] if self.locale else {}
        return list(self.table.get("months", [names[month] for month in sorted(names)]))

    def _time(self, match: re.Match[str]) -> str | None:
        times: Mapping[str, str] = self.table["time"]
        values = {name: int(match[name] or 0) for name in "hms"}
        kind = "seconds" if match["s"] else "usual" if values["m"] else "full"
        if kind == "usual":
            kind = "half" if values["m"] == 30 and "half" in times else "few" if values["m"] < 10 else kind
        if kind == "few" and kind not in times:
            kind = "usual"
        return self._fill(times[kind], values)

    def _fraction(self, match: re.Match[str]) -> str | None:
        n, d = int(match["n"]), int(match["d"])
        if n >= d:
            return None
        spoken = self.table.get("fractions", {}).get(f"{n}/{d}") or self._fill(self.table["fraction"], {"n": n, "d": d})
        return self._fill(self.table["mixed"], {"w": int(match["w"]), "f": spoken}) if match["w"] else spoken

    def _ordinal(self, how: str, match: re.Match[str]) -> str:
        return self._fill(how, {"n": int(match["n"])}) if "{" in how else self._say(how, int(match["n"]))

    def _range(self, match: re.Match[str]) -> str | None:
        low, high = self._value(match["number"]), self._value(match["number2"])
        if low >= high or match["number2"].startswith("0") or (match["dash"] == " - " and not match["after2"]):
            return None
        end = self._quantity(match, "2", sign=match["before"] or "")
        if match["after"] or match["magnitude"]:
            start = self._quantity(match)
        else:
            start = self._number(match["number"], match["minus"], self._noun(match, "2"))
        word = self.table["range"]
        return f"{start}{word if word == '-' else f' {word} '}{end}" if start and end else None

    def _quantity(self, match: re.Match[str], name: str = "", sign: str = "") -> str | None:
        """Read a number with what is before and behind it: a sign of money, percent, a unit, a magnitude."""
        before, after = (match[f"before{name}"] or sign).strip(), match[f"after{name}"] or match[f"of{name}"] or ""
        digits, magnitude = match[f"number{name}"], match[f"magnitude{name}"]
        sign = before or after
        if (
            not magnitude
            and sign in self.money
            and (cents := self.number.fullmatch(digits))
            and len(cents["f"] or "") == 2
        ):
            return self._cents(cents, match[f"minus{name}"], sign)
        words = self._number(digits, match[f"minus{name}"], "" if magnitude else self._noun(match, name))
        if words is None or (sign and sign not in self.units and not (pattern := self._pattern(sign))):
            return None
        words += f" {magnitude}" if magnitude else ""
        pattern = self._pattern(sign) if sign else "{0}"
        return self._plural(pattern, self._value(digits)).replace("{0}", words)

    def _cents(self, digits: re.Match[str], minus: str | None, sign: str) -> str | None:
        whole, cents = self._integer(digits), int(digits["f"])
        forms = self.table.get("cents", {})
        form = forms.get(sign, forms.get("")) if cents else "{f}"
        name = self._plural(self._pattern(sign), Decimal(whole))
        words = self._number(whole, minus, name.replace("{0}", "").strip())
        if words is None or form is None:
            return None
        small = self._number(str(cents), None, self._plural(form, Decimal(cents)).replace("{f}", "").strip()) or ""
        main = name.replace("{0}", words)
        return f"{main} {self._plural(form, Decimal(cents)).replace('{f}', small)}" if cents else main

    def _pattern(self, sign: str) -> Any:  # noqa: ANN401 - a pattern, or patterns by plural form
        """Return the pattern of a unit, percent or money; raises `LookupError` if the language lacks it."""
        if sign == "%":
            return self.table.get("percent") or self.units["%"]
        return self.units[sign] if sign in self.units else self.money[sign]

    def _plural(self, pattern: Any, value: Decimal) -> str:  # noqa: ANN401 - as above
        if isinstance(pattern, str):
            return pattern
        form = self.locale.plural_form(value)
        return str(pattern[form] if form in pattern else pattern["other"])

    def _noun(self, match: re.Match[str], name: str) -> str:
        """Return the noun that is counted: a unit's name, or the next word of the text."""
        sign = (match[f"before{name}"] or match[f"after{name}"] or match[f"of{name}"] or "").strip()
        if sign:
            return self._plural(self._pattern(sign), self._value(match[f"number{name}"])).replace("{0}", "").strip()
        following = re.match(r"\s+(\w+)", match.string[match.end() :])
        return following[1] if following else ""

    def _number(self, number: str, minus: str | None, noun: str) -> str | None:
        """Return a number in words, agreeing with a noun where the table says so; None if it cannot be read."""
        digits = self.number.fullmatch(number)
        if digits is None or len(whole := self._integer(digits)) > LONGEST_QUANTITY or re.match("0[0-9]", whole):
            return None
        how, value = (
            self.table.get("year", "to_cardinal") if re.fullmatch("1[1-9][0-9]{2}", number) else "to_cardinal",
            int(whole),
        )
        names = digits["f"] and self.table.get("decimal_names")
        if names or (noun and (gender := self.table.get("feminine")) and re.match(gender, noun)):
            how = self.table.get("feminine_words", "spellout-cardinal-feminine")
        words = self._say(how, value)
        if noun and not digits["f"]:
            words = _respell(words, self.table.get("before_noun", {}))
        if minus:
            words = f"{self.table['minus']} {words}"
        if fraction := digits["f"]:
            words += f" {self._plural(self.table['decimal'], Decimal(whole))} {self._decimals(fraction)}"
        return words

    def _decimals(self, digits: str) -> str:
        """Read decimals one by one, as a number, or as a number of tenths or hundredths."""
        names = self.table.get("decimal_names", [])
        if len(digits) <= len(names):
            name = self._plural(names[len(digits) - 1], Decimal(digits))
            return f"{self._say('spellout-cardinal-feminine', int(digits))} {name}"
        as_number = len(digits) <= int(self.table.get("decimals_as_number", 1)) and digits[0] != "0"
        return self._say("to_cardinal", int(digits)) if as_number else self._digits(digits)

    def _integer(self, digits: re.Match[str]) -> str:
        return "".join(filter(str.isdecimal, digits["i"]))

    def _value(self, number: str) -> Decimal:
        digits = self.number.fullmatch(number)
        if digits is None:
            raise LookupError(number)
        return Decimal(f"{self._integer(digits)}.{digits['f']}" if digits["f"] else self._integer(digits))


def _spelled_out(entries: Mapping[str, str], match: re.Match[str]) -> str:
    """Return an abbreviation's words; its full stop stays at the end of the text."""
    ends = match["key"].endswith(".") and not match.string[match.end() :].strip()
    gap = " " * (match.string[match.start() - 1 : match.start()].isdecimal())
    touching = " " * match.string[match.end() : match.end() + 1].isalnum()
    return gap + entries[match["key"]] + "." * ends + touching


def _respell(words: str, replacements: Mapping[str, str]) -> str:
    """Apply the first of the replacements, by pattern, that matches."""
    for pattern, replacement in replacements.items():
        changed = re.sub(pattern, replacement, words)
        if changed != words:
            return changed
    return words


def _any_of(entries: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(entries, key=len, reverse=True))) or '(?!)'})"


def _locale(language: str) -> Any:  # noqa: ANN401 - a class of a library without types
    """Return CLDR's data of a language; None if it has none."""
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        return None


@lru_cache
def _common() -> dict[str, Any]:
    return _load("common")


def _load(name: str) -> dict[str, Any]:
    text = (_TABLES / f"{name}.yaml").read_text(encoding="utf-8")
    return dict(yaml.load(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader)))  # all values are texts
