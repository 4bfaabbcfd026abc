"""A run on the cache: whether its held-out losses rise while those of its training fall."""

from pathlib import Path

from xtts.shared.errors import LockstepError
from xtts.trainer.doctor.finding import Fact, Finding, Result
from xtts.trainer.reporting.run_folder import RunFolder
from xtts.trainer.run.best_validation import REMEDY, Overfitting


def overfitting(path: Path) -> Result:
    """What the validations of a run folder say; `LockstepError` if it has none."""
    rows = list(RunFolder(path).metrics())
    validations = [row for row in rows if row["split"] == "validation"]
    if not validations:
        raise LockstepError("--run", found=f"{path} has no validation", expected="a run folder")
    text = f"{len(validations)} to step {validations[-1]['step']}"
    findings = [
        Finding(
            name="overfitting", section="run", what=line, cause="the recordings are few for so many steps", fix=REMEDY
        )
        for line in Overfitting().replay(rows)
    ]
    return [Fact(name="validations", value=len(validations), text=text)], findings
