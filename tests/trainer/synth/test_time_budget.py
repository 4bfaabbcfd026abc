"""`--seconds` and `--duration-noise`: both engines and the exports, on a run of a model that draws durations."""

import shutil
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf

from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.synthesis_options import SynthesisOptions
from xtts.trainer.model.duration_flow import Timing
from xtts.trainer.model.sampling import Sampling
from xtts.trainer.run.checkpoint import load_arrays
from xtts.trainer.serve.cli import main
from xtts.trainer.synth.engines import make_speaker
from xtts.trainer.synth.export.export_command import ExportRequest, export
from xtts.trainer.synth.export.kept_graph import kept_graph
from xtts.trainer.synth.input_texts import Text
from xtts.trainer.synth.long_texts import Narrator
from xtts.trainer.synth.tensorflow_speaker import load_model
from xtts.trainer.synth.time_budget import TimedPiece, share_frames
from xtts.trainer.synth.voice_source import open_source

FLOW = ("model.duration_model=flow", "shapes.buckets=1", "training.steps=8")
OPTIONS = SynthesisOptions(steps=2)
FRAMES_PER_SECOND, HOP = 22_050 / 256, 256


@pytest.fixture(scope="module")
def run(run_train, one_shape_cache, tmp_path_factory):
    """A run of eight steps: it has learnt hardly anything."""
    folder = tmp_path_factory.mktemp("flow") / "run"
    code, _, err = run_train(folder, *FLOW, cache=one_shape_cache)
    assert code == 0, err
    return folder


@pytest.fixture(scope="module")
def source(run, tmp_path_factory):
    """The run, with a cache of graphs of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("graphs")))
        yield open_source(run)


@pytest.fixture(scope="module", params=["tensorflow", "onnx"])
def narrator(request, source):
    """A narrator whose sound is silence."""
    speaker = make_speaker(source, OPTIONS, request.param, print)
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
        yield " ".join("".join(random.choice(letters, random.integers(2, 7))) for _ in range(random.integers(1, 9)))


def test_twenty_sentences_last_as_long_as_they_are_asked_to(narrator):
    random, lengths = np.random.default_rng(5), set()
    for number, words in enumerate(sentences(20)):
        noise = {"duration_noise": (0.0, 0.8)[number % 2]}
        seconds = spoken(narrator, words, **noise) / FRAMES_PER_SECOND * random.uniform(0.6, 1.6)
        frames = spoken(narrator, words, seconds=seconds, **noise)
        assert frames == round(seconds * FRAMES_PER_SECOND)
        assert abs(frames / FRAMES_PER_SECOND - seconds) <= max(0.02 * seconds, 0.5 / FRAMES_PER_SECOND)
        lengths.add(frames)
    assert len(lengths) > 10


def test_a_text_of_several_pieces_lasts_that_long_with_its_pauses(narrator):
    words = ". ".join(sentences(6)) + "."
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


def test_noise_spreads_the_lengths_and_its_seed_decides_them(narrator):
    words = "some words to say"
    assert spoken(narrator, words, seed=1) == spoken(narrator, words, seed=2)
    noisy = [spoken(narrator, words, seed=seed, duration_noise=1.0) for seed in (1, 2, 3, 1)]
    assert len(set(noisy)) > 1
    assert noisy[0] == noisy[3]


def test_the_graph_times_tokens_as_tensorflow_does(source):
    model, longest = load_model(source), source.voice.ladder[-1].frames
    session = onnxruntime.InferenceSession(kept_graph(source, print), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(3)
    for frames, drawn in ((0, False), (0, True), (61, False), (61, True)):
        ids = random.integers(2, 20, [1, 9]).astype(np.int32)
        noise = random.standard_normal((1, longest, 80)).astype(np.float32)
        start = random.standard_normal((1, 9)).astype(np.float32)
        mel, length, _ = model.generate(
            tf.constant(ids), tf.constant([9]), noise=tf.constant(noise),
            sampling=Sampling(tf.constant(OPTIONS.schedule)), temperature=0.5, speed=1.0,
            timing=Timing(frames=tf.constant([frames]), start=tf.constant(start), drawn=tf.constant(drawn)),
        )  # fmt: skip
        given = {
            "x": ids.astype(np.int64), "x_length": np.array([9]), "noise_scale": np.array([0.5], np.float32),
            "length_scale": np.ones([1], np.float32), "schedule": OPTIONS.schedule, "noise": noise,
            "wanted_frames": np.array([frames]), "duration_start": start[:, : 9 * drawn],
        }  # fmt: skip
        found = session.run(None, given)[0][0].T
        assert len(found) == length[0]
        assert length[0] == frames or not frames
        np.testing.assert_allclose(found, mel[0, : len(found)], atol=1e-3)


def test_a_saved_model_takes_frames_and_noise(source, run, tmp_path):
    export(ExportRequest(checkpoint=run, out=tmp_path / "exported", synthesis=OPTIONS))
    speak = tf.saved_model.load(str(tmp_path / "exported/model")).signatures["serving_default"]
    tokens = np.zeros(speak.structured_input_signature[1]["tokens"].shape, np.int32)
    tokens[0, :5] = (3, 4, 5, 6, 7)
    scalars = {"temperature": tf.constant(0.5), "speed": tf.constant(1.0), "seed": tf.constant([0, 1])}

    def frames(wanted, noise):
        timing = {"wanted_frames": tf.constant([wanted]), "duration_noise": tf.constant(noise)}
        spoken = speak(tokens=tf.constant(tokens), token_length=tf.constant([5]), **scalars, **timing)
        return int(spoken["mel_length"][0])

    assert [frames(31, 0.0), frames(31, 1.0)] == [31, 31]
    assert frames(0, 0.0) != frames(0, 2.0)


def test_a_resumed_run_equals_the_uninterrupted_one_to_the_bit(run, run_train, one_shape_cache, read_steps, tmp_path):
    part = shutil.copytree(run, tmp_path / "part")
    code, _, err = run_train(part, *FLOW, cache=one_shape_cache, more=["--resume", part / "checkpoints" / "step-4"])
    assert code == 0, err
    assert read_steps(part) == read_steps(run)
    assert all(row["duration_flow"] > 0 for row in read_steps(run))
    assert read_steps(run, "validation")[-1]["duration_flow"] > 0
    ours, theirs = (load_arrays(folder / "checkpoints" / "step-8") for folder in (part, run))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    assert any("duration_flow" in name for name in theirs)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seconds", "3", "--speed", "2"], "--seconds: together with --speed, expected one of them"),
        (["--seconds", "0"], "is not in the range"),
    ],
)
def test_options_that_do_not_fit_are_one_line(run, call, tmp_path, options, said):
    code, _, err = call(main, "--ckpt", run, "--steps", 2, "-o", tmp_path / "a.wav", *options, "hello")
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_a_model_of_mean_durations_draws_none(source):
    mean = replace(source, model=source.model.model_copy(update={"duration_model": "mean"}))
    source.check_timing(replace(OPTIONS, duration_noise=1.0))
    mean.check_timing(OPTIONS)
    with pytest.raises(
        LockstepError, match=r"has mean durations alone, expected a model trained with --set model\.dur"
    ):
        mean.check_timing(replace(OPTIONS, duration_noise=1.0))


@pytest.mark.parametrize("frames", range(60, 840, 37))
def test_pieces_share_the_frames_and_none_gets_less_than_its_tokens(frames):
    pieces = [TimedPiece(tokens=tokens, frames=own) for tokens, own in ((10, 12), (3, 90), (20, 105), (5, 5))]
    shares = share_frames(frames, pieces)
    assert sum(shares) == frames
    assert all(share >= piece.tokens for share, piece in zip(shares, pieces, strict=True))
    if frames > 200:
        expected = [piece.frames * frames / 212 for piece in pieces]
        np.testing.assert_allclose(shares, expected, atol=2)
