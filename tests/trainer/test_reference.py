"""The voice of a recording: where it is cropped, what a crop cannot tell, and that speech listens to it."""

import numpy as np
import pytest
import tensorflow as tf
from four_clips import CHANNELS, MEL_LENGTH, clips, small_model

from xtts.shared.config_files import load_config
from xtts.shared.errors import LockstepError
from xtts.trainer.reference import crop_reference

VOICE = {"voice_latents": 4, "voice_width": 16}


def crops(seed, most_frames=8, length=(40, 21, 0, 33, 1)):
    """(first frame, length) of each clip's crop, from mels that hold the number of the frame."""
    frames = np.tile(np.arange(40, dtype=np.float32)[:, None], [len(length), 1, 1])
    crop, found = crop_reference(tf.constant(frames), tf.constant(length), most_frames, seed)
    assert crop.shape[1] == min(most_frames, 20)
    for row, n in enumerate(found.numpy()):
        np.testing.assert_array_equal(crop[row, :n, 0], crop[row, 0, 0] + np.arange(n))
        assert not crop[row, n:].numpy().any()
    return crop[:, 0, 0].numpy(), found.numpy()


def test_a_crop_lies_inside_its_clip_and_is_at_most_half_of_it():
    firsts = []
    for i in range(200):
        first, length = crops([i, 0])
        assert length.tolist() == [8, 8, 0, 8, 0]
        firsts.append(first)
    lowest, highest = np.min(firsts, axis=0), np.max(firsts, axis=0)
    assert lowest.tolist() == [0, 0, 0, 0, 0]
    assert highest.tolist() == [32, 13, 0, 25, 0]
    assert crops(None, most_frames=100)[1].tolist() == [20, 10, 0, 16, 0]


def test_the_place_is_a_function_of_the_seed_and_the_middle_without_one():
    assert (crops([1, 2])[0] == crops([1, 2])[0]).all()
    assert (crops([1, 2])[0] != crops([1, 3])[0]).any()
    assert crops(None)[0].tolist() == [16, 7, 0, 13, 0]


def test_without_latents_there_is_no_encoder():
    plain, voiced = small_model(), small_model(**VOICE)
    assert plain.reference is None
    paths = {variable.path for variable in plain.trainable_variables}
    more = {variable.path for variable in voiced.trainable_variables} - paths
    assert {path.split("/")[1] for path in more} == {"reference", "text_encoder", "decoder"}


def test_the_reference_alone_tells_speakers_apart():
    paths = [variable.path for variable in small_model(3, **VOICE).trainable_variables]
    assert not any("speakers" in path for path in paths)
    assert any("speakers" in variable.path for variable in small_model(3).trainable_variables)


def test_another_reference_gives_another_voice_and_garbage_after_its_end_does_not():
    model = small_model(seed=5, **VOICE)
    for i, variable in enumerate(model.trainable_variables):
        variable.assign_add(0.05 * tf.random.stateless_normal(variable.shape, [3, i]))
    ids, mel, token_length, *_ = clips()

    def speak(voice):
        spoken = model.generate(
            ids[:1], token_length[:1], frames=64, noise=tf.zeros([1, 64, CHANNELS]), steps=2,
            temperature=0.0, speed=1.0, voice=voice,
        )  # fmt: skip
        return spoken[0].numpy()

    listen = tf.function(model.listen)
    voices = [listen(mel[row : row + 1], tf.constant([MEL_LENGTH[row]])) for row in (0, 1)]
    assert voices[0].shape == (1, 4, 16)
    assert np.abs(speak(voices[0]) - speak(voices[1])).mean() > 1e-3
    mel[1, MEL_LENGTH[1] :] = np.nan
    np.testing.assert_allclose(listen(mel[1:2], tf.constant([MEL_LENGTH[1]])), voices[1], atol=1e-6)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("model.voice_latents=-1", r"model.voice_latents = -1: input should be greater than or equal to 0"),
        ("model.voice_heads=3", r"voice_width 64 is not divisible by voice_heads \(3\)"),
        ("model.voice_kernel=4", "voice_kernel 4 is even"),
    ],
)
def test_sizes_that_do_not_fit(assignment, message):
    with pytest.raises(LockstepError, match=message):
        load_config("tiny", assignments=[assignment])
