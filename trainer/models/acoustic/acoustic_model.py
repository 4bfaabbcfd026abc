"""The acoustic model: tokens to log-mel by monotonic alignment search and conditional flow matching.

Glow-TTS (2005.11129) for the alignment, Matcha-TTS (2309.03199) for the decoder's objective. Letters: B batch,
L tokens, T frames, M mel channels, D width. All shapes are static and every method compiles with `jit_compile=True`.
"""

import itertools
import math
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.model_config import ModelConfig
from xtts.trainer.data.batch import Batch
from xtts.trainer.models.acoustic.alignment import gaussian_scores, round_durations, search_durations
from xtts.trainer.models.acoustic.networks import (
    AlignedText,
    Conditioning,
    DurationPredictor,
    FlowDecoder,
    TextEncoder,
    Vocabularies,
    postfilter,
    solve,
)
from xtts.trainer.models.acoustic.recorded_voices import RecordedVoices, timbre_in_mel
from xtts.trainer.models.layers import Block, Initialization, apply_mask, axis_size, length_mask
from xtts.trainer.models.random_numbers import fold_seed

NO_CONDITIONING = Conditioning()
"""Conditioning of a model with one voice and one language."""
SIGMA_MIN = 1e-4
"""Standard deviation of the flow's end point around a mel (Matcha-TTS, section 2.2)."""


class AlignedClips(NamedTuple):
    """Everything computed of a batch that does not depend on the flow's time and noise."""

    target: tf.Tensor
    """float32[B, T, M], the mel in normalised units."""
    frame_mask: tf.Tensor
    """bool[B, T, 1], true inside a clip."""
    text: AlignedText
    conditioning: Conditioning
    durations: tf.Tensor
    """int32[B, L], frames of each token."""
    prior: tf.Tensor
    """float32[B], loss per clip."""
    duration: tf.Tensor
    """float32[B], loss per clip."""


class TimedTokens(NamedTuple):
    """Encoded texts and their durations, from which mels are generated."""

    encodings: tf.Tensor
    """[B, L, D]."""
    mean: tf.Tensor
    """float32[B, L, M] in normalised mel units."""
    durations: tf.Tensor
    """int32[B, L], frames."""


class AcousticModel(Block):
    """Text to log-mel. The constructor creates all weights, as a function of `seed`."""

    def __init__(
        self, config: ModelConfig, vocabularies: Vocabularies, profile: MelProfile, *, mean: float, deviation: float,
        dtype_policy: str = "float32", seed: int = 0, voices: np.ndarray | None = None,
    ) -> None:
        """mean, deviation: of the corpus' mels; dtype_policy: float32 or mixed_bfloat16.

        voices: of the cache, to train a model that imitates recordings.
        """
        initial = Initialization(itertools.count(seed * 100_003), keras.DTypePolicy(dtype_policy))
        super().__init__(initial, "acoustic_model")
        self.config, self.profile = config, profile
        self.mel_channels, self.silence = profile.mel_channels, profile.silence
        self.mel_mean, self.mel_deviation = mean, deviation
        if config.voice_from == "recording":  # beside a table of all speakers a recording may carry no information
            vocabularies = vocabularies._replace(speakers=1)
        self.encoder = self.add_layer(TextEncoder(config, vocabularies, initial))
        self.mean_projection = self.add_dense(config.text_width, self.mel_channels, "mean_projection", dtype="float32")
        self.duration_predictor = self.add_layer(DurationPredictor(config, initial))
        self.decoder = self.add_layer(FlowDecoder(config, self.mel_channels, vocabularies, initial))
        self.voices = None if voices is None else RecordedVoices(voices, profile)
        self.build()

    def encode(
        self, tokens: tf.Tensor, valid: tf.Tensor, conditioning: Conditioning, seed: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Encode tokens int32[B, L]: (encodings [B, L, D], mean float32[B, L, M] in normalised mel units)."""
        encodings = self.encoder(tokens, valid, conditioning, seed)
        return encodings, self.mean_projection(encodings)

    def normalise(self, mel: tf.Tensor, frame_mask: tf.Tensor) -> tf.Tensor:
        """Normalise natural-log magnitudes: float32[B, T, M], zero outside the clip.

        mel: [B, T, M] as stored. All mels enter the model here, so that it never computes in float16.
        """
        return apply_mask((tf.cast(mel, tf.float32) - self.mel_mean) / self.mel_deviation, frame_mask)

    def align_clips(self, batch: Batch, dropout_seed: tf.Tensor | None) -> AlignedClips:
        """Compute what does not depend on the flow: alignment, and two losses of each clip.

        `prior` is half the squared error of the aligned mean, the Gaussian negative log-likelihood without its
        constant, summed over frames and channels; `duration` is the sum of `duration_deviance` over the tokens.

        dropout_seed: int32[2] | None. It also draws which speakers get another voice.
        """
        valid = length_mask(batch.token_length, batch.tokens.shape[1])
        frame_mask = length_mask(batch.mel_length, batch.mel.shape[1])
        target, conditioning = self.normalise(batch.mel, frame_mask), self.conditioning_of(batch)
        if self.voices is not None and dropout_seed is not None:
            target, voice = self.voices.draw(target, batch.speaker, fold_seed(dropout_seed, 2))
            conditioning = conditioning._replace(voice=voice)
        if conditioning.voice is not None:
            timbre = timbre_in_mel(conditioning.voice, self.profile) / self.mel_deviation
            target = apply_mask(target - timbre, frame_mask)
        encodings, mean = self.encode(batch.tokens, valid, conditioning, fold_seed(dropout_seed, 0))
        durations = search_durations(gaussian_scores(mean, target), batch.token_length, batch.mel_length)
        expected, text = self.decoder.regulate_length(encodings, mean, durations, batch.mel.shape[1])
        predicted = self.duration_predictor(tf.stop_gradient(encodings), valid, fold_seed(dropout_seed, 1))
        return AlignedClips(
            target=target, frame_mask=frame_mask, text=text, conditioning=conditioning,
            durations=durations, prior=0.5 * sum_of_squares(target - expected, frame_mask),
            duration=duration_deviance(predicted, durations, valid),
        )

    def conditioning_of(self, batch: Batch) -> Conditioning:
        """The conditioning of recorded clips."""
        voice = None if self.voices is None else self.voices.of_speakers(batch.speaker)
        return Conditioning(speaker=batch.speaker, language=batch.language, voice=voice)

    def flow_loss(self, clips: AlignedClips, noise: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
        """Sum the squared error of the vector field over each clip, at one flow time per clip: float32[B].

        noise: float32[B, T, M], standard normal, time: float32[B] in 0..1.
        """
        noise = apply_mask(noise, clips.frame_mask)
        # Optimal-transport path (Matcha-TTS, eq. 3): noise at time 0, the mel (nearly) at time 1.
        t = time[:, tf.newaxis, tf.newaxis]
        noisy = (1.0 - (1.0 - SIGMA_MIN) * t) * noise + t * clips.target
        condition = self.decoder.condition(time, clips.conditioning)
        field = self.decoder(noisy, clips.text, clips.frame_mask, condition)
        return sum_of_squares(field - (clips.target - (1.0 - SIGMA_MIN) * noise), clips.frame_mask)

    def generate(
        self, tokens: tf.Tensor, token_length: tf.Tensor, *, noise: tf.Tensor, schedule: tf.Tensor,
        temperature: tf.Tensor, speed: tf.Tensor, conditioning: Conditioning = NO_CONDITIONING,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Synthesise: (mel float32[B, T, M], natural-log magnitude, mel_length int32[B], durations int32[B, L]).

        tokens: int32[B, L], token_length: int32[B], noise: float32[B, T, M], standard normal,
        schedule: float32[N, 3], see `sampling_schedule`, temperature: float32[], scale of the noise,
        speed: float32[], 2.0 speaks twice as fast.
        The voice of `conditioning` comes from `recorded_voice`. A clip longer than T frames is cut off there;
        mel_length and durations still give its full length.
        """
        timed = self.time_tokens(
            tokens, token_length, longest=noise.shape[1], speed=speed, conditioning=conditioning
        )
        mel_length = tf.reduce_sum(timed.durations, axis=1)
        mel = self.speak_tokens(timed, mel_length, noise * temperature, schedule=schedule, conditioning=conditioning)
        return mel, mel_length, timed.durations

    def time_tokens(
        self, tokens: tf.Tensor, token_length: tf.Tensor, *, longest: int, speed: tf.Tensor,
        conditioning: Conditioning,
    ) -> TimedTokens:
        """Encode the text and predict its durations; longest: most frames of one token, the others as in `generate`."""
        valid = length_mask(token_length, axis_size(tokens, 1))
        encodings, mean = self.encode(tokens, valid, conditioning, None)
        log_frames, token_mask = self.duration_predictor(encodings, valid, None), valid[..., 0]
        # No token is longer than the bucket's frames: an untrained predictor must not overflow the exponential.
        predicted = tf.exp(tf.minimum(log_frames, math.log(longest))) / speed
        exact = apply_mask(tf.maximum(predicted, 1.0), token_mask)
        return TimedTokens(encodings, mean, round_durations(exact))

    def speak_tokens(
        self, timed: TimedTokens, mel_length: tf.Tensor, noise: tf.Tensor, *, schedule: tf.Tensor,
        conditioning: Conditioning,
    ) -> tf.Tensor:
        """Generate the mel of timed tokens: float32[B, T, M], natural-log magnitude.

        mel_length: int32[B], sums of the durations; noise: float32[B, T, M], already scaled by the temperature;
        schedule: float32[N, 3], see `sampling_schedule`.
        """
        frames = axis_size(noise, 1)
        frame_mask = None if noise.shape[1] is None else length_mask(mel_length, frames)  # open sizes have no padding
        _, text = self.decoder.regulate_length(timed.encodings, timed.mean, timed.durations, frames)

        conditions = self.decoder.condition(schedule[:, :1], conditioning)

        def field(mel: tf.Tensor, evaluation: tf.Tensor) -> tf.Tensor:
            return self.decoder(mel, text, frame_mask, tf.gather(conditions, evaluation))

        mel = solve(field, apply_mask(noise, frame_mask), schedule) * self.mel_deviation + self.mel_mean
        sharpened = tf.matmul(mel, postfilter(self.mel_channels))
        if conditioning.voice is not None:
            sharpened += timbre_in_mel(conditioning.voice, self.profile)
        sharpened = tf.maximum(sharpened, self.silence)  # no recording has less
        return sharpened if frame_mask is None else tf.where(frame_mask, sharpened, self.silence)


def duration_deviance(log_frames: tf.Tensor, durations: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Sum the gamma deviance of the durations of each clip, close to the squared error of their logs: float32[B].

    log_frames: float32[B, L], predicted, durations: int32[B, L], valid: bool[B, L, 1]. A token without a frame (in a
    clip with fewer frames than tokens) counts as one frame.
    """
    # 2 (d/p - 1 - log(d/p)) = e^2 + e^3/3 + ... with e = log(d/p). Plain e^2 is minimal at the geometric mean, and
    # spoke held-out sentences 8% too fast after 2,000 steps (10% after 1,500). The deviance is minimal at the mean, and
    # was about 1% off after 1,000.
    error = tf.math.log(tf.maximum(tf.cast(durations, tf.float32), 1.0)) - log_frames
    deviance = 2.0 * (tf.math.expm1(error) - error)
    return tf.reduce_sum(apply_mask(deviance, valid[..., 0]), axis=1)


def sum_of_squares(error: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Sum error: float32[B, N, D] squared over each clip, float32[B]; padding counts as 0, even NaN."""
    return tf.reduce_sum(tf.square(apply_mask(error, valid)), axis=[1, 2])
