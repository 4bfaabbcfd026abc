"""The reference encoder: which clip is the reference, where it is cropped, no leak into a loss, use in synthesis."""

import numpy as np
import pytest
import tensorflow as tf
from four_clips import CHANNELS, EULER, MEL_LENGTH, clips, moved, small_model

from xtts.trainer.data.batch import Batch
from xtts.trainer.loop.objectives import AcousticObjective
from xtts.trainer.model.conditioning import Conditioning
from xtts.trainer.model.random_numbers import RandomInputs, fold_seed
from xtts.trainer.model.reference_encoder import choose_references, crop_reference

VOICE = {"voice_latents": 4, "voice_width": 16}


def crops(seed, most_frames=8, length=(40, 21, 0, 33, 1)):
    """(first frame, length) of each clip's crop, from mels that hold the number of the frame."""
    frames = np.tile(np.arange(40, dtype=np.float32)[:, None], [len(length), 1, 1])
    crop, start, found = crop_reference(tf.constant(frames), tf.constant(length), most_frames, seed)
    assert (crop[:, 0, 0].numpy() == np.where(found > 0, start, 0)).all()
    assert crop.shape[1] == min(most_frames, 20)
    for row, n in enumerate(found.numpy()):
        np.testing.assert_array_equal(crop[row, :n, 0], crop[row, 0, 0] + np.arange(n))
        assert not crop[row, n:].numpy().any()
    return crop[:, 0, 0].numpy(), found.numpy()


def test_a_crop_is_inside_its_clip_and_at_most_half_of_it():
    first, length = crops([1, 0], length=(40, 21, 0, 33, 1) * 300)
    assert (length.reshape(-1, 5) == [8, 8, 0, 8, 0]).all()
    lowest, highest = first.reshape(-1, 5).min(axis=0), first.reshape(-1, 5).max(axis=0)
    assert lowest.tolist() == [0, 0, 0, 0, 0]
    assert highest.tolist() == [32, 13, 0, 25, 0]
    assert crops(None, most_frames=100)[1].tolist() == [20, 10, 0, 16, 0]
    assert (crops([1, 2])[0] == crops([1, 2])[0]).all()
    assert crops(None)[0].tolist() == [16, 7, 0, 13, 0], "without a seed it is the middle"


SPEAKERS, LENGTHS = (0, 1, 0, 2, 0, 1, 0, 0), (40, 21, 30, 33, 12, 35, 0, 40)


def chosen(seed, speakers=SPEAKERS):
    """(each clip's reference clip or -1, first frame, length, leaked frames), read from mels that hold both numbers."""
    frames = np.tile(np.arange(40, dtype=np.float32), [len(LENGTHS), 1])
    mel = np.stack([frames, np.tile(np.arange(8.0)[:, None], [1, 40])], axis=2).astype(np.float32)
    crop, length, leaked = choose_references(tf.constant(mel), tf.constant(LENGTHS), tf.constant(speakers), 6, seed)
    assert leaked.shape == (8, 40, 1)
    return np.where(length > 0, crop[:, 0, 1], -1).astype(int), crop[:, 0, 0].numpy(), length.numpy(), leaked[..., 0]


@pytest.mark.parametrize(
    ("speakers", "others"),
    [
        (SPEAKERS, [{2, 4}, {5}, {0, 4, 7}, {3}, {0, 2, 7}, {1}, {0, 2, 4, 7}, {2, 4}]),
        ((0,) * 8, [set(range(8)) - {6} - same for same in ({0, 7}, {1}, {2}, {3}, {4}, {5}, set(), {0, 7})]),
    ],
    ids=["speakers", "one voice"],
)
def test_the_reference_is_another_clip_of_the_speaker(speakers, others):
    drawn = [chosen([1, i], speakers) for i in range(80)]
    rows = np.array([row for row, *_ in drawn])
    assert [set(column) for column in rows.T.tolist()] == others  # neither blank ones nor those of the same length
    for column, ones in zip(rows.T, others, strict=True):
        counts = np.array([(column == one).sum() for one in ones])
        assert (np.abs(counts - 80 / len(ones)) < 23).all()  # evenly: 5 standard deviations and more
    for row, _, length, leaked in drawn:
        assert length.tolist() == [6] * 8
        assert leaked.numpy().any(axis=1).tolist() == [ones == {i} for i, ones in enumerate(others)]
        assert (row[~leaked.numpy().any(axis=1)] != np.arange(8)[~leaked.numpy().any(axis=1)]).all()


def test_the_leaked_frames_are_exactly_the_own_crop():
    for seed in (None, [1, 2], [1, 3]):
        row, first, length, leaked = chosen(seed)
        own = row == np.arange(8)
        assert own.tolist() == ([i == 3 for i in range(8)])
        for place in range(8):
            expected = np.arange(first[place], first[place] + length[place]) if own[place] else []
            assert np.flatnonzero(leaked[place]).tolist() == list(expected)


@pytest.mark.parametrize("seed", [None, [5, 6]], ids=["validation", "training"])
def test_no_leaked_frame_is_scored(monkeypatch, seed):
    model = moved(small_model(seed=9, **VOICE, voice_frames=8, dropout=0.0))
    ids, mel, token_length, mel_length, noise, _ = clips()
    mel, encode = tf.constant(mel), model.reference.encode_crops
    _, leaked = encode(mel, mel_length, tf.range(4), None if seed is None else fold_seed(tf.constant(seed), 2))

    def weight():
        """float32[B, T]: what a change of each frame does to the losses; at time 0 the decoder sees noise alone."""
        with tf.GradientTape() as tape:
            tape.watch(mel)
            batch = Batch(ids, mel, token_length, mel_length, tf.range(4), None)
            sums = AcousticObjective(model).loss_sums(batch, RandomInputs(noise, tf.zeros([4]), seed))
            loss = tf.reduce_sum(sums["prior"]) + tf.reduce_sum(sums["flow"])
        return tf.reduce_max(tf.abs(tape.gradient(loss, mel)), axis=2).numpy()

    audible, leaked = np.arange(40) < mel_length[:, None], leaked[..., 0].numpy()
    assert leaked.sum(axis=1).tolist() == [8, 8, 0, 8]
    through_latents = weight()
    assert (through_latents[audible] > 0).all()
    without_gradient = lambda *clip: (tf.stop_gradient(encode(*clip)[0]), encode(*clip)[1])  # noqa: E731
    monkeypatch.setattr(model.reference, "encode_crops", without_gradient)
    np.testing.assert_array_equal(weight() > 0, audible & ~leaked)


def test_without_a_seed_the_reference_is_the_next_clip():
    row, _, _, leaked = chosen(None)
    length, speaker = np.array(LENGTHS), np.array(SPEAKERS)
    for place in range(8):
        fitting = [
            other % 8 for other in range(place + 1, place + 8)
            if speaker[other % 8] == speaker[place] and length[other % 8] > 1 and length[other % 8] != length[place]
        ]  # fmt: skip
        assert row[place] == (fitting[0] if fitting else place)
        assert leaked.numpy()[place].any() == (not fitting and length[place] > 1)


@pytest.mark.parametrize(("parts", "speakers"), [(2, SPEAKERS), (4, (0,) * 8), (1, (0,) * 8)])
def test_the_counts_are_the_values_that_are_scored(parts, speakers):
    model = small_model(**VOICE, voice_frames=8)
    mel, length, speaker = tf.zeros([8, 40, CHANNELS]), tf.constant(LENGTHS), tf.constant(speakers)
    seed = [7, 8]
    scored = 0
    for rows in np.split(np.arange(8), parts):
        micro = [tf.gather(part, rows) for part in (mel, length, speaker)]
        tokens, token_length = tf.ones([len(rows), 3], tf.int32), tf.fill([len(rows)], 3)
        clips = model.align_clips(Batch(tokens, micro[0], token_length, *micro[1:], None), seed)
        scored += int(tf.reduce_sum(tf.cast(clips.scored, tf.int32)))
    batch = Batch(None, mel, tf.fill([8], 3), length, speaker, None)
    prior, flow, duration = AcousticObjective(model).counts(batch, micro_batches=parts)
    assert flow == prior == scored * CHANNELS
    assert duration == 24


def test_reference_and_speaker_change_the_speech():
    model = moved(small_model(3, seed=6, voice_speaker_table=True, **VOICE))
    ids, mel, token_length, *_ = clips()
    voices = [model.encode_reference(mel[row : row + 1], tf.constant([MEL_LENGTH[row]])) for row in (0, 1)]
    assert voices[0].shape == (1, 4, 16)

    def speak(voice, speaker):
        spoken = model.generate(
            ids[:1], token_length[:1], noise=tf.zeros([1, 64, CHANNELS]), schedule=EULER, temperature=0.0, speed=1.0,
            conditioning=Conditioning(voice=voices[voice], speaker=tf.constant([speaker])),
        )  # fmt: skip
        return spoken[0].numpy()

    first = speak(0, 0)
    for voice, speaker in ((1, 0), (0, 2)):
        assert np.abs(speak(voice, speaker) - first).mean() > 1e-3
    np.testing.assert_array_equal(speak(0, 0), first)
    mel[1, MEL_LENGTH[1] :] = np.nan
    np.testing.assert_allclose(model.encode_reference(mel[1:2], tf.constant([MEL_LENGTH[1]])), voices[1], atol=1e-6)
