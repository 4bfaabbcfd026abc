"""The doctor's report: measured facts, findings to act on, the sections that hold them, and an overlay of advice."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files

HELP = "docs/troubleshooting.md"
"""Has a section for every finding, by its name."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One measurement or observation."""

    name: str
    value: Any
    """Value for JSON: SI units without prefix (seconds, bytes, FLOP/s), shares from 0 to 1."""
    text: str
    """Text for the page."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that costs speed or clips, and its fix."""

    name: str
    """The anchor of its section in `HELP`."""
    section: str
    what: str
    cause: str
    setting: str = ""
    """The `section.key` to change; empty if no setting fixes it."""
    value: Any = None
    """What to set it to."""
    fix: str = ""
    """What else to do, or what to do if there is no setting."""
    gain: str = ""
    """Expected benefit, from the measured numbers."""

    @property
    def remedy(self) -> str:
        """What to do, in one line."""
        change = f"set {self.setting} to {as_yaml(self.value)}" if self.setting else ""
        return "; ".join(part for part in (change, self.fix) if part)

    @property
    def help(self) -> str:
        """Link to the explanation."""
        return f"{HELP}#{self.name}"


Result = tuple[list[Fact], list[Finding]]


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of the page."""

    name: str
    facts: list[Fact]
    findings: list[Finding]

    @property
    def healthy(self) -> bool:
        """True when there is nothing to act on."""
        return not self.findings


@dataclass(frozen=True)
class Report:
    """The whole page."""

    sections: list[Section] = field(default_factory=list)

    def add(self, name: str, *results: Result) -> None:
        """Add a section with the results of its checks."""
        facts = [fact for found, _ in results for fact in found]
        self.sections.append(Section(name=name, facts=facts, findings=[f for _, some in results for f in some]))

    @property
    def findings(self) -> list[Finding]:
        """Findings of all sections, in order."""
        return [finding for section in self.sections for finding in section.findings]

    @property
    def healthy(self) -> bool:
        """True when there is nothing to act on."""
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """The same content for programs."""
        sections = {
            section.name: {"healthy": section.healthy, "facts": {fact.name: fact.value for fact in section.facts}}
            for section in self.sections
        }
        advice = [{**asdict(finding), "remedy": finding.remedy, "help": finding.help} for finding in self.findings]
        return {"healthy": not advice, "sections": sections, "advice": advice}


def as_yaml(value: Any) -> str:  # noqa: ANN401 - a setting's value is any of YAML's
    """A setting's value as written in YAML; JSON scalars are valid YAML."""
    return value if isinstance(value, str) else json.dumps(value)


def overlay(findings: Sequence[Finding]) -> str:
    """YAML of every advised setting, each under the problem it fixes; empty without any.

    Where two findings advise the same setting, the first one wins.
    """
    sections: dict[str, dict[str, Finding]] = {}
    for finding in findings:
        section, _, field = finding.setting.partition(".")
        if field:
            sections.setdefault(section, {}).setdefault(field, finding)
    lines = []
    for section, fields in sections.items():
        lines.append(f"{section}:")
        for field, finding in fields.items():
            lines += [f"  # {finding.what}", f"  {field}: {as_yaml(finding.value)}"]
    return "".join(f"{line}\n" for line in lines)


def write_overlay(path: Path, findings: Sequence[Finding]) -> bool:
    """Write the overlay; False, and no file, if there is no setting to change."""
    text = overlay(findings)
    if not text:
        return False
    heading = "# Advised by xtts-doctor: give it as a second --config, after the one that was examined.\n"
    try:
        atomic_files.write(path, (heading + text).encode())
    except OSError as error:
        raise LockstepError(str(path), found=f"cannot be written ({error.strerror})") from None
    return True
