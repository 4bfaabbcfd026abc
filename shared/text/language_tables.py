"""Tables of languages, in `grammars/`, and units by CLDR's names: `5 mg/kg` is 5 milligrams per kilogram."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

Forms = Mapping[str, str]
"""Patterns such as `{0} kilometers` by plural form; `per`, where there is one, is `{0} per kilometer`."""
_WITH_POWERS = "km m dm cm mm mi yd ft in s".split()


@lru_cache
def load_table(name: str) -> dict[str, Any]:
    """Read a table, of a language or shared by several; all its values are texts. Empty if there is none."""
    path = Path(__file__).with_name("grammars") / f"{name}.yaml"
    if not path.exists():
        return {}
    return dict(yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CBaseLoader", yaml.BaseLoader)))


@lru_cache
def load_units(language: str) -> dict[str, Forms]:
    """Return the units of a language by symbol: those of `grammars/common.yaml` and of its own table, with powers."""
    from babel import Locale

    data, common, table = Locale.parse(language)._data, load_table("common"), load_table(language)
    patterns, units = data["unit_patterns"], dict[str, Any]()
    for symbol, name in common["units"].items():
        if long := patterns.get(name, {}).get("long"):
            own = str(patterns[name].get("short", {}).get("other", "")).replace("{0}", "").strip("\u200e \xa0")
            units |= {sign: long for sign in (symbol, own) if sign and " " not in sign}
    for symbol, entry in table.get("units", {}).items():
        forms = entry if isinstance(entry, dict) else {"other": entry}
        units[symbol] = forms if "{0}" in forms["other"] else patterns[entry]["long"]
    spellings = common["spellings"] | table.get("unit_symbols", {})
    units = {sign: units[symbol] for sign, symbol in spellings.items() if symbol in units} | units
    own = data["compound_unit_patterns"]
    compound = {name: str(own[name]["long"]["compound"]) for name in ("per", "power2", "power3")}
    units = _with_powers(units, compound) | units
    return {symbol: _with_per(forms, compound["per"]) for symbol, forms in units.items()}


def _with_powers(units: Mapping[str, Forms], compound: Forms) -> dict[str, Forms]:
    """Return squares and cubes where CLDR has one pattern for all: `square {0}`, not one that inflects."""
    powered = dict[str, Forms]()
    for symbol in {*_WITH_POWERS} & units.keys():
        for power, signs in (("2", "2 ^2 ²"), ("3", "3 ^3 ³")):
            pattern = compound[f"power{power}"]
            if not pattern.startswith("{0}"):
                texts = {form: text.replace("\xa0", " ") for form, text in units[symbol].items() if form != "per"}
                names = {form: text.partition("{0} ")[2] for form, text in texts.items()}
                lower = not pattern.endswith(" {0}")  # Quadratmeter
                forms = {f: "{0} " + pattern.replace("{0}", n.lower() if lower else n) for f, n in names.items()}
                powered |= {f"{symbol}{sign}": forms for sign in signs.split()}
    return powered


def _with_per(forms: Forms, per: str) -> Forms:
    """Add the pattern behind another unit where the language forms it from the name."""
    forms = {form: str(text).replace("\xa0", " ") for form, text in forms.items()}
    name = forms.get("one", forms["other"]).replace("{0}", "").strip()
    return forms if "per" in forms or "/" in per else forms | {"per": per.replace("{1}", name)}
