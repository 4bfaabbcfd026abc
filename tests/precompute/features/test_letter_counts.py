# ruff: noqa: RUF001
"""Letters without a token: counts, shares and errors."""

import pytest

from xtts.precompute.features.letter_counts import LetterCounts, check_encoding, check_letters
from xtts.shared.errors import LockstepError
from xtts.shared.text.tokenizer import learn_tokenizer

ENGLISH = "the quick brown fox jumps over the lazy dog "


def counted(language: str, texts: list[str]) -> LetterCounts:
    tokenizer = learn_tokenizer("characters", {language: texts}, add_blank=False)
    counts = LetterCounts(language)
    for i, text in enumerate(texts):
        counts.add(f"clip{i}", text, tokenizer.encode(text).left_out)
    return counts


def test_characters_are_listed_with_name_count_and_example():
    counts = counted("en", [ENGLISH * 9, "café 5 日", "日 é5€"])
    told = [(row.character, row.count, row.example, row.fate, row.is_letter) for row in counts.characters()]
    assert told == [
        ("5", 2, "clip1", "dropped", False), ("日", 2, "clip1", "dropped", True),
        ("€", 1, "clip2", "dropped", False), ("é", 2, "clip1", "folded", True),
    ]
    assert counts.characters()[2].name == "EURO SIGN"
    assert counts.characters()[2].shown == "€ 1x in clip clip2"
    assert counts.lost_share == pytest.approx(4 / counts.letters.total())
    rare = counted("de", ["aaa bbb ß", "aß ñ bbb"]).characters()
    assert [(row.character, row.fate) for row in rare] == [("ß", "rare"), ("ñ", "rare")]
    assert dict(counted("en", [ENGLISH, "Й й"]).left_out) == {"й": 2}, "not taken apart and folded"
    assert dict(counted("tr", ["ISI"]).letters) == {"\u0131": 2, "s": 1}, "as the tokenizer spells it"
    phonemes = LetterCounts("de")
    phonemes.add("clip", "ja [[ʙʙa]]", "ʙ")
    assert (dict(phonemes.letters), dict(phonemes.left_out)) == ({"j": 1, "a": 1}, {"ʙ": 2})


def test_a_corpus_of_ipa_is_refused_with_the_fix():
    fix = r"expected at most 0\.10% with .*; write phonemes as .* and build with --set text.tokenizer=ph"
    with pytest.raises(LockstepError, match=fix):
        check_letters(counted("en", ["h\u0259l\u02c8o\u028a w\u02c8\u025c\u02d0ld"]), 0.001)


def test_few_foreign_letters_pass_and_the_proposed_limit_works():
    counts = counted("en", [ENGLISH * 100, "日"])
    check_letters(counts, counts.lost_share)
    with pytest.raises(LockstepError) as caught:
        check_letters(counts, counts.lost_share * 0.99)
    check_letters(counts, float(caught.value.fix.partition("max_unknown_share=")[2].split()[0]))


def test_letters_that_espeak_would_spell_are_refused_but_not_accents():
    english = LetterCounts("en", reads_accents=True)
    english.add("clip", "Thénardier met Brontë at the café.", ())
    check_letters(english, 0.001, kind="phonemes")
    assert english.characters() == []
    counts = LetterCounts("de")
    counts.add("clip", "Das ist 日本, ja", "日本")
    with pytest.raises(LockstepError, match=r"spelled by espeak-ng \(Chinese characters: 日 1x in clip clip") as caught:
        check_letters(counts, 0.001, kind="phonemes")
    assert "text.tokenizer=characters" in caught.value.fix


def test_merged_counts_do_not_depend_on_the_order():
    clips = [("b", "Ünïcode a", "ï"), ("a", "ünd so x", "x"), ("c", "plain", ""), ("d", "ï", "ï")]

    def count(*some):
        counts = LetterCounts("de")
        for clip in some:
            counts.add(*clip)
        return counts

    merged = count(*clips[2:])
    merged.merge(count(*clips[:2]))
    assert merged == count(*clips) == count(*clips[::-1])
    assert merged.examples["ï"] == "b"


def wrongly_read(language, lines, written, read):
    counts = LetterCounts(language)
    for i, line in enumerate(lines):
        counts.add(f"clip{i}", line.encode(written).decode(read, "ignore"), ())
    return counts


HUNGARIAN = ["Árvíztűrő tükörfúrógép.", "Az erdő és a mező zöld.", "Tegnap egész nap esett az eső.", "Ma hideg van."]
TURKISH = [
    "Günaydın, nasılsınız?", "Şimdi İstanbul'da yaşıyorum.", "Çocuklar bahçede oynuyor, ağaçlar yeşil.", "Şu su.",
]
GERMAN = [
    "Süße Äpfel schmecken köstlich.", "Über den Bäumen hört man Vögel.", "Das Mädchen läuft über die Straße.",
    "Es regnet.",
]


@pytest.mark.parametrize(("language", "lines", "written", "read"), [
    ("hu", HUNGARIAN, "cp1250", "cp1252"), ("tr", TURKISH, "cp1254", "latin-1"), ("de", GERMAN, "utf-8", "gbk"),
    ("de", GERMAN, "utf-8", "cp1253"), ("de", GERMAN, "cp850", "cp1251"), ("hu", HUNGARIAN, "cp1250", "koi8-r"),
])
def test_a_list_in_a_wrong_encoding_has_letters_of_other_languages(language, lines, written, read):
    check_encoding(wrongly_read(language, lines, "utf-8", "utf-8"), 0.001)
    counts = wrongly_read(language, lines, written, read)
    with pytest.raises(LockstepError, match=r"% of the letters are not .*; export the list again as UTF-8") as caught:
        check_encoding(counts, 0.001)
    check_encoding(counts, float(caught.value.fix.partition("max_unknown_share=")[2].split()[0]))


def test_an_odd_line_and_names_are_no_wrong_encoding():
    odd = ["Das Café in Łódź heißt 日本, wie in Москва.", *GERMAN * 20]
    check_encoding(wrongly_read("de", odd, "utf-8", "utf-8"), 0.001)
    names = [f"{line} Señor Gómez" if n % 9 == 0 else line for n, line in enumerate(GERMAN * 30)]
    check_encoding(wrongly_read("de", names, "utf-8", "utf-8"), 0.001)
    dutch = [*["Hij woont in São Paulo."] * 3, *["Goedemorgen, allemaal."] * 6]
    check_encoding(wrongly_read("nl", dutch, "utf-8", "utf-8"), 0.001)
    with pytest.raises(LockstepError, match=r"of the letters are not Dutch \(ã 4x in clip clip0\)"):
        check_encoding(wrongly_read("nl", [dutch[0], *dutch[:-1]], "utf-8", "utf-8"), 0.001)


def test_languages_in_two_scripts_and_unknown_ones_pass():
    for language, line in (("uz", "Салом дунё"), ("kk", "Sálem álem"), ("sr", "Dobro jutro"), ("ty", "Ia ora na")):
        counts = wrongly_read(language, [line] * 5, "utf-8", "utf-8")
        check_letters(counts, 0.001)
        check_encoding(counts, 0.001)
