"""What a build is asked for, checked before anything is created."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from xtts.precompute.build.audio_index import refuse_unsuited
from xtts.precompute.build.commit import tokenizer_bytes
from xtts.precompute.build.remote_cache import RemoteCache, work_folder
from xtts.precompute.build.staging import refuse_foreign_folder
from xtts.precompute.corpus.corpora import Corpora, read_corpora
from xtts.precompute.corpus.corpus_entries import Data, parse_data
from xtts.precompute.corpus.front_end import FrontEnd
from xtts.precompute.corpus.listing import with_numbers_in_words
from xtts.precompute.workers.engine import Engine
from xtts.precompute.workers.open_engine import open_engine
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.cache_spec import ENGLISH, load_spec
from xtts.shared.cache.clip_index import Clip, iter_index
from xtts.shared.config import Config
from xtts.shared.errors import LockstepError
from xtts.shared.feature_settings import feature_config, feature_differences
from xtts.shared.storage.urls import Location, StoreUrl
from xtts.shared.text.tokenizer import Tokenizer, learn_tokenizer, load_tokenizer


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to build from what, and how."""

    corpora: Corpora
    cache: Path
    config: Config
    front_end: FrontEnd
    workers: int
    fresh: bool
    ray_address: str | None = None
    """Where the tasks run: see `open_engine`."""
    remote: StoreUrl | None = None
    """The cache in an object store for which `cache` is the folder to work in."""
    keep_days: float = 1.0
    """How long its replaced objects stay."""
    exclude: frozenset[str] = frozenset()
    """Shards that must not be used, whatever they look like."""

    def open_engine(self) -> Engine:
        """What its tasks run on."""
        return open_engine(self.workers, self.ray_address)


def make_request(
    data: Data, given: Location, config: Config, *, workers: int, limit: int | None = None, fresh: bool = False,
    ray_address: str | None = None, index_only: bool = False, keep_days: float = 1.0,
) -> Request:  # fmt: skip
    """Check what was asked for, before anything is created; of a remote cache the small files are fetched."""
    remote, cache = (None, given) if isinstance(given, Path) else (given, work_folder(given))
    if remote is not None:
        _fetch_small_files(remote, cache, ray_address)
    refuse_foreign_folder(cache)
    corpora = read_corpora(parse_data(data), limit=limit)
    if config.text.expand_numbers:
        corpora = replace(corpora, clips=with_numbers_in_words(corpora.clips, config.text.language))
    if index_only:
        refuse_unsuited(corpora.clips, config)
    front_end = _front_end(corpora.roots, config, _tokenizer(corpora.clips, config, None if fresh else cache))
    return Request(
        corpora=corpora,
        cache=cache,
        config=config,
        front_end=replace(front_end, index_only=index_only),
        workers=workers,
        fresh=fresh,
        ray_address=ray_address,
        remote=remote,
        keep_days=keep_days,
    )


def _fetch_small_files(url: StoreUrl, folder: Path, ray_address: str | None) -> None:
    if ray_address is not None:
        fix = "build into a folder that all machines see, and copy it there"
        raise LockstepError("--engine ray", found=f"--cache {url}", expected="a folder", fix=fix)
    with RemoteCache(url, folder) as remote:
        remote.mirror()


def _tokenizer(clips: list[Clip], config: Config, cache: Path | None) -> Tokenizer:
    """The tokenizer of `config`; what is learned from a corpus is kept while the text settings are the same.

    A clip more or less would otherwise give other tokens to all clips.
    """
    text, stored = config.text, _stored_tokenizer(cache, config) if cache is not None else None
    said = [clip for clip in clips if clip.text and not clip.duplicate]
    fixed = text.tokenizer != "bpe" and all((clip.language or text.language) == ENGLISH for clip in said)
    known = _known_texts(cache, text.language) if cache is not None and stored and not fixed else set()
    texts = {clip.language or text.language: list[str]() for clip in said} or {text.language: []}
    if text.language in texts:  # the main language comes first
        texts = {text.language: [], **texts}
    for clip in [] if fixed else said:
        code = clip.language or text.language
        if (code, clip.text) not in known:
            texts[code].append(clip.text)
    return learn_tokenizer(
        text.tokenizer, texts, vocabulary=text.bpe_vocabulary, add_blank=text.add_blank, previous=stored
    )  # fmt: skip


def _known_texts(cache: Path, language: str) -> set[tuple[str, str]]:
    """(language, text) of every clip that the stored tokenizer was learned from; none where the index is broken."""
    try:
        path = cache / load_spec(cache).index_file
        return {(row.clip.language or language, row.clip.text) for row in iter_index(path)}
    except LockstepError:
        return set()  # the survey says so


def _stored_tokenizer(cache: Path, config: Config) -> Tokenizer | None:
    """That of a finished cache with the same text settings, unless it is broken."""
    try:
        spec = load_spec(cache)
        tokenizer = load_tokenizer(cache / spec.tokenizer_file)
    except LockstepError:
        return None  # the survey says so
    same = not feature_differences(spec.features, {"text": feature_config(config)["text"]})
    sound = hashlib.sha256(tokenizer_bytes(tokenizer)).hexdigest() == spec.tokenizer_sha256
    return tokenizer if same and sound else None


def _front_end(roots: Mapping[str, Path], config: Config, tokenizer: Tokenizer) -> FrontEnd:
    return FrontEnd(
        roots=roots,
        profile=mel_profile(config.audio.profile),
        tokenizer=tokenizer,
        language=config.text.language,
        trim_silence_db=config.audio.trim_silence_db,
        loudness_lufs=config.audio.loudness_lufs,
        mel_dtype=config.shards.mel_dtype,
        fixed_length=config.shapes.pad_to_fixed_length,
    )
