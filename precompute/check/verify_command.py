"""`xtts-precompute verify`: choosing the checks."""

from functools import partial
from pathlib import Path

from xtts.precompute.check.verify import CacheFinding, verify_cache
from xtts.precompute.corpus.corpus_entries import Data
from xtts.precompute.workers.open_pool import open_pool
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.errors import LockstepError
from xtts.shared.storage.urls import PathOrUrl
from xtts.shared.system.folder_lock import ReadLock


def find_problems(
    cache: PathOrUrl, against: Data | None, progress: Progress, *, deep: int | None, repair: bool, workers: int,
    ray_address: str | None = None,
) -> list[CacheFinding]:  # fmt: skip
    """Check the cache, repair it if requested, and return the problems that remain.

    deep: count of clips to compute again; 0 for all, None to skip that check. ray_address: see `open_pool`.

    Raises a `LockstepError` if a check is impossible with a remote cache or without a corpus.
    """
    if against is None and (deep is not None or repair):
        option = "--repair" if repair else "--deep"
        raise LockstepError(option, found="no corpus to work from", expected=f"{option} --against DATA")
    for option, value in (("--against", against), ("--engine ray", ray_address)):
        if value is not None and not isinstance(cache, Path):
            fix = f"verify {cache} alone; a build with the same options brings it up to date"
            raise LockstepError(option, found="a cache in an object store", expected="a folder", fix=fix)
    workers = max(1, workers)  # never in this process: its numpy may compute other last digits than a worker's
    check = partial(verify_cache, cache, threads=workers, ray_address=ray_address)
    findings = check()
    if against is None or not isinstance(cache, Path):
        return findings
    from xtts.precompute.check.against_corpus import cache_request, check_corpus, compare_features, repair_cache

    if repair and findings:
        for finding in findings:
            progress.say(str(finding))
        repair_cache(cache, against, findings, open_pool(workers, ray_address), progress)
        progress.say(f"{len({finding.file for finding in findings})} files repaired")
        findings = check()
    if not findings:
        with ReadLock(cache):
            request = cache_request(cache, against)
            findings = check_corpus(cache, request)
            if deep is not None:
                findings += compare_features(cache, request, open_pool(workers, ray_address), clips=deep or None)
    return findings
