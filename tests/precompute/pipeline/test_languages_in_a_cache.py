"""Corpora in other languages, and in several: no letter is lost in silence, each clip is read in its own language."""

import json

import pytest
from builds import Listener, build, command, problems, records, rows_of, shards, sound, write_files
from cache_files import tokenizer_path

from xtts.shared.cache.cache_spec import load_spec
from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import load_tokenizer
from xtts.trainer.speech.voice_description import Voice
from xtts.trainer.stored.run_folder import voice_of

PERSIAN = "می‌خواهم یک کتابِ تازه بخرم؛ تو چه؟"
GERMAN = "Zwölf Boxkämpfer jagen Viktor über den Deich."


@pytest.fixture
def corpus(tone_corpus, tmp_path):
    """`corpus(text, ...)`: clips whose lines end in these columns, one after the other."""

    def make(*columns, clips=12):
        root = tone_corpus(tmp_path / "corpus", clips, seconds=(3.0, 4.0))
        lines = [f"tone-{i:04d}|{columns[i % len(columns)]}" for i in range(clips)]
        (root / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return root

    return make


@pytest.mark.parametrize(("text", "language", "message"), [
    (PERSIAN, "fa", r"English \(en\), but most letters are Arabic, .*--set text.language=CODE"),
    (GERMAN, "de", r"of the letters are not English and would lose their accents .*--set text.language=CODE"),
])
def test_another_language_stops_the_build_unless_it_is_set(corpus, tmp_path, text, language, message):
    root = corpus(text)
    with pytest.raises(LockstepError, match=message) as stopped:
        build(root, tmp_path / "features")
    assert stopped.value.exit_code == 1
    assert not (tmp_path / "features" / "cache.json").exists()
    report = build(root, tmp_path / "features", f"text.language={language}")
    assert report.spec.statistics.clips == 12
    assert all(row.is_kept and not row.left_out for row in rows_of(tmp_path / "features").values())
    tokenizer = load_tokenizer(tokenizer_path(tmp_path / "features"))
    ids = tokenizer.encode(text).ids
    assert tokenizer.languages == (language,) == tuple(load_spec(tmp_path / "features").languages)
    stored = [record for record, _, _ in records(tmp_path / "features").values()]
    assert all(record.tokens[: record.token_length].tolist() == ids for record in stored)


def test_a_changed_lexicon_tokenises_again_and_is_stored(corpus, tmp_path):
    root, cache, listener = corpus("one colonel", "another Äsel"), tmp_path / "features", Listener()
    words = tmp_path / "words.tsv"
    settings = ("text.language=de", f"text.lexicon={words}")
    words.write_text("colonel\tkernel\n", encoding="utf-8")
    build(root, cache, *settings)
    assert load_tokenizer(tokenizer_path(cache)).lexicon == {"colonel": "kernel"}
    words.write_text("colonel\tqurnel\näsel\tox\n", encoding="utf-8")
    report = build(root, cache, *settings, progress=listener)
    said = "\n".join(listener.lines)
    assert "text.lexicon: 2 words changed: all texts are tokenised again" in said
    assert "(12 clips, 0 of them from audio and 12 from stored mels)" in said
    voice = Voice.model_validate_json(voice_of(cache, report.spec).model_dump_json())
    assert voice.tokenizer == load_tokenizer(tokenizer_path(cache))
    assert voice.tokenizer.lexicon == {"colonel": "qurnel", "äsel": "ox"}
    stored = [record.tokens[: record.token_length].tolist() for record, _, _ in records(cache).values()]
    assert {voice.tokenizer.decode(ids) for ids in stored} == {"one qurnel", "another ox"}, "q and x are new letters"
    words.unlink()
    assert not problems(cache, root, deep=0), "the cache itself knows the words"


def test_lost_letters_are_named_and_their_share_decides_no_byte_of_a_shard(corpus, tmp_path):
    root = corpus("a sentence without any strange letter at all", "one with a ж and no more than that")
    with pytest.raises(LockstepError, match=r"Cyrillic: ж 6x in clip tone-0001"):
        build(root, tmp_path / "features")
    cache, sets = ["--cache", tmp_path / "features"], ["--set=shapes.buckets=1", "--set=text.max_unknown_share=0.05"]
    told = command("build", "--data", root, *cache, *sets, "--workers", 0).output
    assert "ж CYRILLIC SMALL LETTER ZHE: 6x dropped, as in tone-0001" in told
    assert build(root, tmp_path / "features", "text.max_unknown_share=0.5").written_shards == 0


def test_the_alphabet_keeps_its_ids_while_clips_come_and_go(corpus, tmp_path):
    root, cache, settings = corpus(GERMAN, "Eine Pause."), tmp_path / "features", ["text.language=de"]
    build(root, cache, *settings)
    before = load_tokenizer(tokenizer_path(cache)).symbols
    lines = (root / "metadata.csv").read_text(encoding="utf-8").splitlines()
    (root / "metadata.csv").write_text("\n".join(lines[1::2]) + "\n", encoding="utf-8")  # no umlaut is left
    build(root, cache, *settings)
    assert load_tokenizer(tokenizer_path(cache)).symbols == before
    (root / "metadata.csv").write_text(
        "\n".join([*lines[1::2], "tone-0000|Ein Café in Győr."]) + "\n", encoding="utf-8"
    )
    build(root, cache, *settings)
    assert load_tokenizer(tokenizer_path(cache)).symbols == (*before, "y", "é", "ő")


def manifest(root, languages):
    lines = [
        {"audio_filepath": f"wavs/tone-{i:04d}.wav", "text": text, "language": code}
        for i, (code, text) in enumerate(languages)
    ]
    path = root / "manifest.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return path


def test_every_clip_is_read_in_its_own_language(corpus, tmp_path):
    root, cache = corpus("x"), tmp_path / "features"
    clips = [("en-US", "Plain words, café."), ("fa_IR", PERSIAN), ("de", GERMAN)] * 4
    path = manifest(root, clips)
    build(path, cache, "text.max_unknown_share=0.1")
    spec, tokenizer, stored = load_spec(cache), load_tokenizer(tokenizer_path(cache)), records(cache)
    assert spec.languages == list(tokenizer.languages) == ["en", "fa", "de"]
    assert [stored[f"tone-{i:04d}"][0].language for i in range(3)] == [0, 1, 2]
    first, _, _ = stored["tone-0000"]
    assert tokenizer.decode(first.tokens[: first.token_length].tolist()) == "plain words, cafe."
    third, _, _ = stored["tone-0002"]
    assert tokenizer.decode(third.tokens[: third.token_length].tolist()) == GERMAN.lower()
    assert [rows_of(cache)[f"tone-{i:04d}"].clip.language for i in range(3)] == ["en", "fa", "de"]
    assert not build(path, cache, "text.max_unknown_share=0.1").changed
    manifest(root, [*clips[:2], ("en", GERMAN), *clips[3:]])
    assert build(path, cache, "text.max_unknown_share=0.2").changed
    third, _, _ = records(cache)["tone-0002"]
    assert tokenizer.decode(third.tokens[: third.token_length].tolist()).startswith("zwolf boxkampfer")


def test_a_tokenizer_that_is_left_open_is_decided_once(corpus, tmp_path, monkeypatch):
    """Espeak-ng is not loaded: tests of speech need a process without it."""
    there = [True]
    monkeypatch.setattr("xtts.precompute.pipeline.build_request.can_phonemise", lambda language: there[0])
    monkeypatch.setattr("xtts.shared.text.tokenizer.phonemise", lambda text, language: "həloʊ")
    root, cache, other = corpus("A sentence of some length."), tmp_path / "cache", tmp_path / "other"
    assert "text.tokenizer auto: phonemes (espeak-ng is installed)" in explain(root, cache)
    build(root, cache, "text.tokenizer=auto")
    assert load_tokenizer(tokenizer_path(cache)).kind == "phonemes"
    assert load_spec(cache).features["text"]["tokenizer"] == "phonemes"
    there[0] = False
    build(root, other, "text.tokenizer=auto")
    assert load_tokenizer(tokenizer_path(other)).kind == "characters"
    assert "text.tokenizer auto: phonemes (as in the cache)" in explain(root, cache)
    assert not build(root, cache, "text.tokenizer=auto").changed
    there[0] = True
    assert not build(root, other, "text.tokenizer=auto").changed


def explain(root, cache):
    set_auto = ["--set", "shapes.buckets=1", "--set", "text.tokenizer=auto", "--workers", 0]
    done = command("build", "--data", root, "--cache", cache, "--dry-run", *set_auto)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_tokenizer_that_is_learned_anew_encodes_all_texts_again(tmp_path):
    """The ids that the index knew were taken, and went into records beside other symbols."""
    files = {f"wavs/{name}.wav": sound(seed=number) for number, name in enumerate("abc")}
    files["metadata.csv"] = "a|zwei zimmer\nb|quer durch\nc|jeder hafen\n"
    corpus, settings = write_files(tmp_path / "corpus", files), ("text.language=de", "text.tokenizer=characters")
    build(corpus, tmp_path / "cache", *settings, limit=1)
    build(corpus, tmp_path / "cache", *settings)
    build(corpus, tmp_path / "fresh", *settings)
    assert shards(tmp_path / "cache") != shards(tmp_path / "fresh"), "new letters were appended"
    tokenizer_path(tmp_path / "cache").write_text("{}")
    build(corpus, tmp_path / "cache", *settings)
    assert shards(tmp_path / "cache") == shards(tmp_path / "fresh")
