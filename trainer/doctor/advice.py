"""The findings as an overlay that `--config` takes."""

from collections.abc import Sequence
from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.shared.system import atomic_files
from xtts.trainer.doctor.finding import Finding, as_yaml


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
