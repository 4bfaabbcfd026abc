"""`xtts-precompute verify`: which checks run, what is printed, and whether the cache is sound."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from xtts.precompute.check.verify import CacheFinding, verify_cache
from xtts.precompute.corpus.corpus_entries import Data
from xtts.precompute.workers.engine import Progress
from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.errors import LockstepError
from xtts.shared.storage.urls import Location
from xtts.shared.system.folder_lock import ReadLock


@dataclass(frozen=True, kw_only=True)
class VerifyRequest:
    """What `verify` was asked to do."""

    cache: Location
    against: Data | None
    deep: int | None
    """Clips to compute again: None for no such check, 0 for all."""
    repair: bool
    workers: int
    ray_address: str | None = None
    """Where the tasks run: see `open_engine`."""

    def __post_init__(self) -> None:
        """Refuse what cannot be done with such a cache, or without a corpus."""
        if self.against is None and (self.deep is not None or self.repair):
            option = "--repair" if self.repair else "--deep"
            raise LockstepError(option, found="no corpus to work from", expected=f"{option} --against DATA")
        for option, given in (("--against", self.against), ("--engine ray", self.ray_address)):
            if given is not None and not isinstance(self.cache, Path):
                fix = f"verify {self.cache} alone; a build with the same options brings it up to date"
                raise LockstepError(option, found="a cache in an object store", expected="a folder", fix=fix)


def run_verify(request: VerifyRequest, *, as_json: bool, progress: Progress, echo: Callable[[str], None]) -> int:
    """Check, repair if asked, report; returns the exit code."""
    try:
        findings = find_problems(request, progress)
        code = 1 if findings else 0
    except LockstepError as error:
        if not as_json:
            raise
        facts = {"found": error.found, "expected": error.expected, "fix": error.fix}
        findings, code = [CacheFinding(file=error.where, where=error.where, **facts)], error.exit_code
    if as_json:
        report = {"cache": str(request.cache), "sound": code == 0, "findings": [asdict(f) for f in findings]}
        echo(json.dumps(report, indent=1))
        return code
    for finding in findings:
        echo(str(finding))
    echo(f"{request.cache}: {len(findings)} findings" if findings else f"{request.cache}: sound")
    return code


def find_problems(request: VerifyRequest, progress: Progress) -> list[CacheFinding]:
    """Check, and repair if asked: what is wrong with the cache, in the end."""
    cache, corpora, workers, ray_address = request.cache, request.against, request.workers, request.ray_address
    check = partial(verify_cache, cache, threads=workers, ray_address=ray_address)
    findings = check()
    if request.repair and findings and corpora is not None and isinstance(cache, Path):
        from xtts.precompute.check.against_corpus import repair_cache

        for finding in findings:
            progress.say(str(finding))
        repair_cache(cache, corpora, findings, workers=workers, progress=progress, ray_address=ray_address)
        progress.say(f"{len({finding.file for finding in findings})} files repaired")
        findings = check()
    if corpora is None or findings or not isinstance(cache, Path):
        return findings
    return _check_against(request, cache, corpora)


def _check_against(request: VerifyRequest, cache: Path, corpora: Data) -> list[CacheFinding]:
    from xtts.precompute.check.against_corpus import cache_request, check_corpus, check_features

    workers, ray_address = request.workers, request.ray_address
    with ReadLock(cache):
        spec = load_spec(cache)
        corpus = cache_request(cache, spec, corpora, workers=workers, ray_address=ray_address)
        findings = check_corpus(cache, corpus)
        if request.deep is not None:
            findings += check_features(cache, corpus, clips=request.deep or None)
    return findings
