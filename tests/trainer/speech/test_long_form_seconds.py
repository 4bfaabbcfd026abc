"""`--seconds`."""

import numpy as np
import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.speech.long_form import LoadedVoice, encode_text, share_frames
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import Synthesizer

OPTIONS = SynthesisOptions(nfe=2)
FRAMES_PER_SECOND, HOP = 22_050 / 256, 256


@pytest.fixture(scope="session")
def long_form(several, several_graph):
    """One whose sound is silence."""
    synthesizer = Synthesizer(several[1], OPTIONS, graph=several_graph, location="the graph")
    return LoadedVoice(synthesizer, lambda mel: np.zeros(len(mel) * HOP, np.float32), speaker=0, language="en")


def spoken(long_form, words, **options):
    """Frames of a text."""
    long_form.synthesizer.options = OPTIONS.replaced(**options)
    speech = long_form.speak_passages(encode_text(words, long_form.voice, "en", "TEXT")[0])
    assert len(speech.samples) == len(speech.mel) * HOP
    return len(speech.mel)


def sentences(count):
    random = np.random.default_rng(4)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    for _ in range(count):
        yield " ".join("".join(random.choice(letters, random.integers(2, 7))) for _ in range(random.integers(1, 6)))


def test_sentences_last_as_long_as_they_are_asked_to(long_form):
    random, lengths = np.random.default_rng(5), set()
    for words in sentences(5):
        seconds = spoken(long_form, words) / FRAMES_PER_SECOND * random.uniform(0.6, 1.6)
        frames = spoken(long_form, words, seconds=seconds)
        assert frames == round(seconds * FRAMES_PER_SECOND)
        lengths.add(frames)
    assert len(lengths) > 3


def test_a_text_of_several_pieces_lasts_the_given_seconds(long_form):
    words = ". ".join(sentences(3)) + "."
    seconds = spoken(long_form, words) / FRAMES_PER_SECOND
    for factor in (0.8, 1.5):  # slower: more pieces, and more pauses
        assert spoken(long_form, words, seconds=factor * seconds) == round(factor * seconds * FRAMES_PER_SECOND)


@pytest.mark.parametrize("seconds", [0.02, 60.0])
def test_a_time_that_cannot_be_met_names_the_possible_range(long_form, seconds):
    own = spoken(long_form, "hello there")
    with pytest.raises(
        LockstepError, match=rf"^TEXT: a length of {seconds:g} s, expected \d\.\d\d to \d+\.\d\d s"
    ) as message:
        spoken(long_form, "hello there", seconds=seconds)
    least, most = (float(word) for word in str(message.value).partition("expected ")[2].split()[0:3:2])
    for possible in (least, most):
        assert spoken(long_form, "hello there", seconds=possible) == round(possible * FRAMES_PER_SECOND)
    assert least >= max(len("hello there"), own / 4) / FRAMES_PER_SECOND
    assert f"near its own, {own / FRAMES_PER_SECOND:.2f} s" in str(message.value)


@pytest.mark.parametrize("frames", range(60, 840, 37))
def test_pieces_share_frames_and_get_at_least_their_tokens(frames):
    own, tokens = [12, 90, 105, 5], [10, 3, 20, 5]
    shares = share_frames(frames, own, tokens)
    assert sum(shares) == frames
    assert all(share >= least for share, least in zip(shares, tokens, strict=True))
    if frames > 200:
        expected = [each * frames / 212 for each in own]
        np.testing.assert_allclose(shares, expected, atol=2)
