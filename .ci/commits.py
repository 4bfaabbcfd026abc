"""Check the messages of commits that have not landed: a subject of at most 72 characters, and a body that says why.

    python .ci/commits.py    # a line for each commit to reword; exit status 1 if there is one

Not landed is what origin/main lacks; without an origin, what came after the commit in .ci/long-passed. Merges are
skipped, and commits older than this program. History that a shallow clone lacks is not checked.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 72


def git(root: Path, *words: str) -> str:
    """Output of git; empty if it fails."""
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False).stdout


def problems(root: Path) -> list[str]:
    """A line for each commit to reword: its SHA, its subject, and what to do."""
    landed = git(root, "rev-parse", "--verify", "--quiet", "origin/main") or (root / ".ci/long-passed").read_text()
    start = git(root, "log", "--diff-filter=A", "--format=%H", "--", ".ci/commits.py").split()[:1]
    older = [f"^{commit}" for commit in (landed.strip(), *start) if git(root, "cat-file", "-t", commit)]
    lines = []
    for sha in git(root, "log", "--no-merges", "--format=%h", "HEAD", *older).split():
        subject, _, body = git(root, "log", "-1", "--format=%s%n%b", sha).partition("\n")
        if len(subject) > LONGEST:
            fix = f"{len(subject)} characters; fix: git rebase -i, at most {LONGEST}"
        elif not body.strip():
            fix = "no body; fix: git rebase -i, say why below an empty line"
        else:
            continue
        lines.append(f"commit {sha} ({subject}): {fix}")
    return lines


if __name__ == "__main__":
    sys.exit("\n".join(problems(ROOT)) or 0)
