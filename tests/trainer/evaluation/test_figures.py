"""Every figure comes out bad where what it measures is broken, on real recordings."""

from dataclasses import replace

import numpy as np
import pytest
import soundfile
from scipy.ndimage import gaussian_filter1d

from xtts.shared.audio.mel import clip_mel
from xtts.shared.audio.mel_profiles import EDGE_FRAMES, mel_profile
from xtts.shared.audio.pitch import final_pitch
from xtts.trainer.evaluation.evaluation_clips import EvaluationClip
from xtts.trainer.evaluation.figures import Recordings, without_edges
from xtts.trainer.evaluation.speech_distances import frechet_distance, pitch_errors

PROFILE = mel_profile("hifigan")
NAMES = ("arctic_a0304_1592710071", "arctic_a0534_1592703145", "arctic_a0232_1592711859", "arctic_b0179_1592537232")


@pytest.fixture(scope="module")
def mels(real_clips):
    """Of the first two seconds of each."""
    paths = [real_clips / "kathleen" / f"{name}.flac" for name in NAMES]
    return [clip_mel(soundfile.read(path, dtype="float32")[0][:44_100], PROFILE) for path in paths]


def clips_of(mels, ids=NAMES):
    """Clips of different sentences."""
    return [
        EvaluationClip(clip_id=name, ids=[number], mel=mel, speaker=0)
        for number, (name, mel) in enumerate(zip(ids, mels, strict=False))
    ]


@pytest.fixture(scope="module")
def recordings(mels):
    return Recordings(clips_of(mels), [0, 2], PROFILE)


def test_a_recording_is_perfect_speech_and_a_wrong_one_is_none(recordings, mels):
    own, sentences = recordings.compare([mels[0], mels[2]], [len(mels[0]), len(mels[2])])
    assert own.relative_mcd < 1e-3
    assert (own.duration_error, own.log_f0_error, own.voicing_error) == (0, 0, 0)
    assert own.frechet_distance == pytest.approx(0.0, abs=1e-3)
    assert [sentence.clip_id for sentence in sentences] == [NAMES[0], NAMES[2]]
    wrong, _ = recordings.compare([mels[1], mels[1]], [len(mels[1])] * 2)
    assert wrong.relative_mcd >= 1.0
    lengths = [len(without_edges(mel)) for mel in mels]
    assert wrong.duration_error == pytest.approx(np.mean([abs(lengths[1] / lengths[i] - 1) for i in (0, 2)]))
    assert wrong.log_f0_error > 0.1
    assert wrong.voicing_error > 0.2


def test_another_reading_of_a_sentence_is_no_wrong_recording(mels):
    """Else a corpus that was read twice would have a relative MCD near 1 for its own speaker."""
    first, second, other = clips_of([mels[0], gaussian_filter1d(mels[0], 2.0, axis=0), mels[1]])
    again = EvaluationClip(clip_id="again", ids=first.ids, mel=second.mel, speaker=0)
    spoken = ([mels[1]], [len(mels[1])])
    (alone, _), (twice, _) = (
        Recordings(clips, [0], PROFILE).compare(*spoken) for clips in ([first, other], [first, other, again])
    )
    assert alone.relative_mcd == twice.relative_mcd == pytest.approx(1.0)


def test_silent_edges_count_in_no_figure(recordings, mels):
    loud = [np.pad(without_edges(mels[i]), [(EDGE_FRAMES, EDGE_FRAMES), (0, 0)]) for i in (0, 2)]
    (own, _), (figures, _) = (
        recordings.compare(spoken, [len(mel) for mel in spoken]) for spoken in ([mels[0], mels[2]], loud)
    )
    assert figures == own


def test_speech_without_a_voice_has_the_worst_pitch(recordings, mels):
    """Once it was 0, as for perfect speech, where nothing was left to average."""
    silence = np.full_like(mels[0], PROFILE.silence)
    figures, (sentence,) = recordings.compare([silence], [len(silence)], [0])
    assert sentence.log_f0_error is None
    assert figures.log_f0_error == pytest.approx(np.log(500 / 60))
    assert figures.voicing_error > 0.2


def noisy(mel, amount):
    return mel + amount * np.random.default_rng(0).normal(size=mel.shape)


DEFECTS = {
    "blur over time": lambda mel, amount: gaussian_filter1d(mel, 2 * amount, axis=0),
    "blur over frequency": lambda mel, amount: gaussian_filter1d(mel, 2 * amount, axis=1),
    "noise": noisy,
}


@pytest.mark.parametrize("break_mel", DEFECTS.values(), ids=DEFECTS)
def test_the_frechet_distance_sees(mels, break_mel):
    hardly, little, much = (
        frechet_distance([break_mel(mel, amount) for mel in mels], mels) for amount in (0.05, 0.3, 0.8)
    )
    assert hardly < 0.5 < 1.0 < little < much / 2
    assert frechet_distance([mel + 1.0 for mel in mels], mels) == pytest.approx(0.0, abs=1e-3), "louder is not worse"


def test_the_frechet_distance_of_gaussians_is_the_formula():
    random = np.random.default_rng(3)
    one, two = (random.normal(size=[4000, 8]) * scale for scale in (0.1, 0.2))
    # 5 frames of 8 channels: means alike, each deviation 0.1 against 0.2, 0.1^2 in each of 40 dimensions.
    assert frechet_distance([two], [one]) == pytest.approx(0.4, rel=0.05)
    tilted = np.linspace(-1, 1, 8)
    assert frechet_distance([one + tilted], [one]) == pytest.approx(5 * np.square(tilted).sum(), rel=1e-6)


def test_shifted_pitch_and_swapped_voicing_are_seen():
    track = np.array([0, 100, 110, 120, 0, 0, 90, 95], np.float32)
    path = np.stack([np.arange(8)] * 2, axis=1)
    assert pitch_errors(track, track, path) == (0.0, 0.0)
    higher = pitch_errors(track * 2 ** (2 / 12), track, path)  # by two semitones
    assert higher == (pytest.approx(2 / 12 * np.log(2), rel=1e-5), 0.0)
    assert pitch_errors(np.where(np.arange(8) < 4, 0, track), track, path)[1] == 3 / 8, "whispered"
    assert pitch_errors(np.zeros(8), track, path) == (None, 5 / 8), "no pair is voiced in both"


def test_a_question_rises_and_a_statement_falls():
    falling = np.concatenate([np.zeros(9), np.linspace(240, 180, 90), np.zeros(9)])
    assert final_pitch(falling, 0.01) == pytest.approx(12 * np.log2(183 / 210), abs=0.1)
    assert final_pitch(falling[::-1], 0.01) == pytest.approx(12 * np.log2(237 / 210), abs=0.1)
    assert final_pitch(falling[:50], 0.01) is None, "too short to have a middle"


def test_questions_and_statements_are_averaged_apart(mels):
    clips = [replace(clip, question=i == 0) for i, clip in enumerate(clips_of(mels))]
    spoken = [mels[0], mels[2]]
    figures, sentences = Recordings(clips, [0, 2], PROFILE).compare(spoken, [len(mel) for mel in spoken])
    means = (figures.semitones_of_questions, figures.semitones_of_statements)
    assert means == tuple(sentence.final_semitones for sentence in sentences)
    exchanged = [replace(clip, question=not clip.question) for clip in clips]
    figures, _ = Recordings(exchanged, [0, 2], PROFILE).compare(spoken, [len(mel) for mel in spoken])
    assert means == (figures.semitones_of_statements, figures.semitones_of_questions)
