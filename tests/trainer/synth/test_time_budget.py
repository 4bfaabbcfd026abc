"""`--seconds`, in both engines."""

from dataclasses import replace

import numpy as np
import pytest

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.serve.cli import main
from xtts.trainer.synth.input_texts import Text
from xtts.trainer.synth.long_texts import Narrator
from xtts.trainer.synth.onnx_speaker import OnnxSpeaker
from xtts.trainer.synth.tensorflow_speaker import TensorFlowSpeaker
from xtts.trainer.synth.time_budget import TimedPiece, share_frames

OPTIONS = SynthesisOptions(steps=2)
FRAMES_PER_SECOND, HOP = 22_050 / 256, 256


@pytest.fixture(scope="session")
def speakers(several, several_graph):
    """Both engines by name, the one of TensorFlow compiled."""
    _, source = several
    both = {
        "tensorflow": TensorFlowSpeaker(source, OPTIONS),
        "onnx": OnnxSpeaker(source, OPTIONS, graph=several_graph, where="the graph"),
    }
    both["tensorflow"].prepare(source.voice.ladder[0])
    return both


@pytest.fixture(params=["tensorflow", "onnx"])
def narrator(request, speakers):
    """A narrator whose sound is silence."""
    speaker = speakers[request.param]
    return Narrator(speaker, lambda mel: np.zeros(len(mel) * HOP, np.float32), speaker_number=0, language="en")


def spoken(narrator, words, **options):
    """Frames of a text."""
    narrator.speaker.options = replace(OPTIONS, **options)
    speech = narrator.speak(Text(words=words, out=None, where="TEXT"))
    assert len(speech.samples) == len(speech.mel) * HOP
    return len(speech.mel)


def sentences(count):
    random = np.random.default_rng(4)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    for _ in range(count):
        yield " ".join("".join(random.choice(letters, random.integers(2, 7))) for _ in range(random.integers(1, 6)))


def test_sentences_last_as_long_as_they_are_asked_to(narrator):
    random, lengths = np.random.default_rng(5), set()
    for words in sentences(5):
        seconds = spoken(narrator, words) / FRAMES_PER_SECOND * random.uniform(0.6, 1.6)
        frames = spoken(narrator, words, seconds=seconds)
        assert frames == round(seconds * FRAMES_PER_SECOND)
        lengths.add(frames)
    assert len(lengths) > 3


def test_a_text_of_several_pieces_lasts_that_long_with_its_pauses(narrator):
    words = ". ".join(sentences(3)) + "."
    seconds = spoken(narrator, words) / FRAMES_PER_SECOND
    for factor in (0.8, 1.5):  # slower: more pieces, and more pauses
        assert spoken(narrator, words, seconds=factor * seconds) == round(factor * seconds * FRAMES_PER_SECOND)


@pytest.mark.parametrize("seconds", [0.02, 60.0])
def test_a_time_that_cannot_be_met_is_refused_with_those_that_can(narrator, seconds):
    own = spoken(narrator, "hello there")
    with pytest.raises(
        LockstepError, match=rf"^TEXT: {seconds:g} s asked for, expected \d\.\d\d to \d\.\d\d s"
    ) as message:
        spoken(narrator, "hello there", seconds=seconds)
    least, most = (float(word) for word in str(message.value).partition("expected ")[2].split()[0:3:2])
    for possible in (least, most):
        assert spoken(narrator, "hello there", seconds=possible) == round(possible * FRAMES_PER_SECOND)
    assert least >= max(len("hello there"), own / 4) / FRAMES_PER_SECOND
    assert f"near its own, {own / FRAMES_PER_SECOND:.2f} s" in str(message.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seconds", "3", "--speed", "2"], "--seconds: together with --speed, expected one of them"),
        (["--seconds", "0"], "is not in the range"),
    ],
)
def test_options_that_do_not_fit_are_one_line(finished_run, call, tmp_path, options, said):
    code, _, err = call(main, "--ckpt", finished_run[0], "-o", tmp_path / "a.wav", *options, "hello")
    assert code == 2
    assert said in err


@pytest.mark.parametrize("frames", range(60, 840, 37))
def test_pieces_share_the_frames_and_none_gets_less_than_its_tokens(frames):
    pieces = [TimedPiece(tokens=tokens, frames=own) for tokens, own in ((10, 12), (3, 90), (20, 105), (5, 5))]
    shares = share_frames(frames, pieces)
    assert sum(shares) == frames
    assert all(share >= piece.tokens for share, piece in zip(shares, pieces, strict=True))
    if frames > 200:
        expected = [piece.frames * frames / 212 for piece in pieces]
        np.testing.assert_allclose(shares, expected, atol=2)
