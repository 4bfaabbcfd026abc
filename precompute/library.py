"""Stage 1 for Python programs: `from xtts.precompute import build_cache, verify_cache`."""

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike

from xtts.precompute.check.against_corpus import cache_request, check_corpus, compare_features, repair_cache
from xtts.precompute.check.verify import CacheFinding, check_cache
from xtts.precompute.corpus.corpus_entries import Data, parse_data
from xtts.precompute.pipeline.build_cache import BuildReport, run_build
from xtts.precompute.pipeline.build_request import make_request
from xtts.precompute.workers.open_pool import open_pool
from xtts.precompute.workers.worker_pool import Progress
from xtts.shared.cache.object_store import local_build, local_cache, upload_cache
from xtts.shared.config_flags import config_names, resolve
from xtts.shared.errors import LockstepError, counted_noun
from xtts.shared.system.folder_lock import ReadLock
from xtts.shared.system.machine import usable_cores


def build_cache(
    data: Data, cache: str | PathLike[str], *, config: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    settings: Mapping[str, object] | None = None, workers: int | None = None, limit: int | None = None,
    fresh: bool = False, layout: str | None = None, columns: str | None = None, speakers: str | None = None,
    engine: str = "local", progress: Progress | None = None,
) -> BuildReport:
    """Build the cache of a corpus, or bring it up to date, as `xtts-precompute build` does.

    The work is done by processes that are spawned: a script has to call this below `if __name__ == "__main__":`, or
    pass `workers=0`.

    Args:
        data: The corpus: a folder, or a file that lists its clips (docs/corpus.md names the layouts). Several:
            a list of paths and of "NAME=PATH", or a YAML file.
        cache: Folder of the cache, created if it is missing, or its URL in an object store, as in "s3://BUCKET/FOLDER".
        config: YAML file, or a name in configs/ such as "normal" (default "tiny"); of several, later ones win.
        settings: Single keys over those, as in `{"shapes.buckets": 8}`.
        workers: Processes (default: one a core); 0 runs in this process.
        limit: Count of clips, the first of each corpus in equal shares.
        fresh: Rebuild everything, whatever the folder holds.
        layout: Name of the corpus' layout, such as "piper"; needed only if it cannot be recognised.
        columns: Columns of its CSV or TSV file, as in "id=0,speaker=1,text=2", instead of a layout.
        speakers: "folders" if its folders are the speakers, "one" if it has only one (default: by their names).
        engine: "local" for processes of this machine, "ray" for the Ray cluster at `RAY_ADDRESS` ("auto" or
            "HOST:PORT" in the environment; default: a new one on this machine, of `workers` CPUs).
        progress: Receives the progress of the build (default: nothing is shown).

    Returns:
        A report: `spec` (the content of cache.json: L tokens and T frames of each bucket, shards, statistics),
        `rejected` (clips by reason), `changed`, `wall_seconds`, `peak_bytes`.

    Raises:
        LockstepError: The corpus, the settings or the disk are not usable; its text says what to do.
    """
    pool = open_pool(usable_cores() if workers is None else workers, engine)
    folder = local_build(cache, fresh=fresh)
    request = make_request(
        data, folder, resolve(config_names(config), (), settings or {}), limit=limit, fresh=fresh,
        layout=layout, columns=columns, speakers=speakers,
    )
    report = run_build(request, pool, progress or Progress())
    upload_cache(folder, cache)
    return report


def verify_cache(
    cache: str | PathLike[str], *, against: Data | None = None, deep: int | None = None, repair: bool = False,
    workers: int | None = None, layout: str | None = None, columns: str | None = None, speakers: str | None = None,
    engine: str = "local", progress: Progress | None = None,
) -> list[CacheFinding]:
    """Check every byte of a cache, as `xtts-precompute verify` does; no findings: it is sound.

    Args:
        cache: Folder or URL of the cache; of a URL, the local copy is checked.
        against: The corpus, to compare with as well: changed, added and removed clips.
        deep: Count of clips whose features are recomputed (0: all); needs `against`.
        repair: Rewrite the broken files, and no others; needs `against`. The result is the problems that remain.
        workers: Threads of the check, and processes of a repair (default: one a core).
        layout: How the corpus lies on the disk, as for `build_cache`.
        columns: Or which columns its list has.
        speakers: Who speaks, as for `build_cache`.
        engine: "local" or "ray", as for `build_cache`, for `deep` and `repair`.
        progress: Receives the problems that are repaired, and the progress (default: nothing is shown).

    Returns:
        All problems, in the order of the files: `file`, `location`, `found`, `expected` and `fix` of each.

    Raises:
        LockstepError: There is no cache to check or no corpus for the requested work.
    """
    folder, progress = local_cache(cache), progress or Progress()
    corpora = None if against is None else parse_data(against, layout=layout, columns=columns, speakers=speakers)
    if corpora is None and (deep is not None or repair):
        option = "--repair" if repair else "--deep"
        raise LockstepError(option, found="needs the corpus", expected=f"{option} --against DATA")
    # Never in this process: the last digits of its numpy's results may differ from a worker's.
    workers = max(1, usable_cores() if workers is None else workers)
    check = partial(check_cache, folder, threads=workers)
    findings = check()
    if corpora is None:
        return findings
    if repair and findings:
        for finding in findings:
            progress.say(str(finding))
        repair_cache(folder, corpora, findings, open_pool(workers, engine), progress)
        progress.say(f"{counted_noun(len({finding.file for finding in findings}), 'file')} repaired")
        findings = check()
    if not findings:
        with ReadLock(folder):
            request = cache_request(folder, corpora)
            findings = check_corpus(folder, request)
            if deep is not None:
                compared = compare_features(folder, request, open_pool(workers, engine), clips=deep or None)
                findings = [*dict.fromkeys([*findings, *compared])]
    return findings
