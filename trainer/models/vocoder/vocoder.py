"""The vocoder: log-mel to samples by a harmonic-plus-noise network at the frame rate, and its discriminators.

A spectrum of pulses at the pitch and a spectrum of noise are filtered in every frequency bin of every frame, as in the
neural homomorphic vocoder (NHV, Interspeech 2020), by ConvNeXt blocks that never leave the frame rate (Vocos,
2306.00814). The pitch is read off the mel. Letters: B batch, T frames, M mel channels, S = T * hop samples, F
frequency bins, D width, N samples of a window.
"""

import itertools
import math
from typing import cast

import keras
import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel_profiles import MelProfile
from xtts.shared.model_config import VocoderConfig
from xtts.trainer.data.batch import AnyBatch, CropBatch
from xtts.trainer.loop.metrics import Metrics
from xtts.trainer.loop.objective import Objective, validation_key
from xtts.trainer.models.layers import Block, Initialization
from xtts.trainer.models.random_numbers import fold_seed, random_normal, random_uniform
from xtts.trainer.models.vocoder.frame_spectra import FrameSpectra

_CROP_EDGE = 4
"""Frames at each end of a crop that no loss counts: the network and the windows reach beyond the crop there."""
_PULSE_HZ = 60.0, 550.0
"""Range of the pitch of the pulses."""
_TYPICAL_LOG_MEL, _LOG_MEL_SCALE = -5.7056513, 2.0640321
_TYPICAL_LOG_HZ, _LOG_HZ_SCALE = 5.0, 0.5
"""Units of the networks' inputs, the same for every corpus: a vocoder may continue training on another."""
_RESOLUTIONS = ((2048, 480, 1800), (1024, 240, 1024), (512, 100, 512), (256, 50, 256), (128, 30, 128))
"""(FFT size, hop, window) of the spectral loss."""
_DISCRIMINATED = ((1024, 256), (512, 128), (256, 64), (128, 32))
"""(window, hop) of each discriminator's spectrogram."""
_MOST_NOISE = 0.25
"""Largest deviation of the noise that training adds to mels, so that a model's mels resemble some of them."""
_BAND_WINDOW, _BAND_HOP = 1024, 256
"""Window and hop of the spectrogram that shows where a recording ends."""
_LEAST_SOUND = 1e-7
"""A bin with at least this share of a recording's power holds sound: speech above 8 kHz has 1e-6 to 1e-3 (measured)."""
_WHOLE_BAND, _BAND_SLOPE_HZ = 0.9, 300.0
"""A recording that reaches this share of half the sample rate has the whole band; width of the slope where it ends."""
_PITCH_WIDTH = 96
_LOG_GAINS = (-8.0, 4.0)
_ENVELOPE_POINTS, _LOG_ENVELOPE = 8, (-6.0, 3.0)
"""Points of the noise's envelope in a hop, since a burst is shorter than the window; range of their logarithms."""
_NOISE_TABLES = (4093, 4099)
_ROUNDS = 3
"""Rounds of Griffin-Lim that bring the spectrum to the mel: more make speech rougher."""


class VocoderBlock(Block):
    """ConvNeXt block (2201.03545): depthwise convolution, norm and a two-layer perceptron, scaled and residual."""

    def __init__(self, width: int, expansion: int, kernel: int, initial: Initialization, name: str) -> None:
        super().__init__(initial, name)
        self.width = width
        depthwise = keras.layers.DepthwiseConv1D(
            kernel, padding="same", depthwise_initializer=initial.glorot(), name="depthwise"
        )
        self.depthwise = self.add_layer(depthwise, (None, None, width))
        self.norm = self.add_norm(width, "norm")
        self.expand = self.add_dense(width, expansion * width, "expand")
        self.reduce = self.add_dense(expansion * width, width, "reduce")

    def build(self) -> None:
        """Create the weights."""
        super().build()
        self.scale = self.add_weight(shape=(self.width,), initializer=keras.initializers.Constant(0.3), name="scale")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """x: [B, T, D] -> the same."""
        hidden = tf.nn.gelu(self.expand(self.norm(self.depthwise(x))), approximate=True)
        return x + self.scale * self.reduce(hidden)


class Discriminator(Block):
    """Judges the frames of a log spectrogram, whose bins are the channels of convolutions along time."""

    def __init__(self, window: int, hop: int, width: int, initial: Initialization) -> None:
        super().__init__(initial, f"discriminator_{window}")
        self.window, self.hop, self.convolutions = window, hop, []
        for i, (inputs, outputs) in enumerate(itertools.pairwise((window // 2 + 1, width, width, width, 1))):
            self.convolutions.append(self.add_convolution(inputs, outputs, 5, f"convolution_{i}"))

    def call(self, samples: tf.Tensor, *, frozen: bool) -> list[tf.Tensor]:
        """Outputs of every convolution, the judgement [B, N, 1] last; samples: float32[B, S].

        frozen: no gradient reaches the weights.
        """
        spectrum = tf.signal.stft(samples, self.window, self.hop)
        x = tf.math.log(_square(spectrum) + 1e-5) / 4.0
        outputs = []
        for number, layer in enumerate(self.convolutions):
            kernel, bias = (tf.convert_to_tensor(weight) for weight in (layer.kernel, layer.bias))
            if frozen:
                kernel, bias = tf.stop_gradient(kernel), tf.stop_gradient(bias)
            x = tf.nn.conv1d(x, kernel, stride=2 if number == 1 else 1, padding="SAME") + bias
            x = x if number == len(self.convolutions) - 1 else tf.nn.leaky_relu(x, 0.1)
            outputs.append(x)
        return outputs


class Vocoder(Block):
    """Log-mel to samples. The constructor creates all weights, as a function of `seed`."""

    def __init__(self, config: VocoderConfig, profile: MelProfile, *, seed: int = 0) -> None:
        initial = Initialization(itertools.count(seed * 100_003), keras.DTypePolicy("float32"))
        super().__init__(initial, "vocoder")
        self.profile, self.bins = profile, profile.fft_size // 2 + 1
        self.padding = (profile.fft_size - profile.hop_samples) // 2
        width, channels = config.width, profile.mel_channels

        def gains(outputs: int, bias: float, name: str) -> keras.layers.Dense:
            normal = keras.initializers.RandomNormal(0.0, 0.01, seed=next(initial.seeds))
            constant = keras.initializers.Constant(bias)
            return self.add_dense(width, outputs, name, kernel_initializer=normal, bias_initializer=constant)

        pitch_in = self.add_convolution(channels, _PITCH_WIDTH, 9, "pitch_in")
        self.pitch_layers = [pitch_in, self.add_convolution(_PITCH_WIDTH, _PITCH_WIDTH, 5, "pitch_hidden")]
        self.pitch_output = self.add_dense(_PITCH_WIDTH, 2, "pitch_output")
        self.input_convolution = self.add_convolution(channels + 2, width, config.kernel, "input_convolution")
        self.blocks = self.add_layers(
            VocoderBlock(width, config.expansion, config.kernel, initial, f"block_{i}") for i in range(config.blocks)
        )
        self.norm = self.add_norm(width, "norm")
        self.harmonic_output = gains(2 * self.bins, 0.0, "harmonic_output")
        self.noise_output = gains(self.bins, -1.0, "noise_output")
        self.noise_envelope = gains(_ENVELOPE_POINTS, 0.0, "noise_envelope")
        self.discriminators = self.add_layers(
            Discriminator(window, hop, config.discriminator_width, initial) for window, hop in _DISCRIMINATED
        )
        self.spectra = FrameSpectra(profile)
        self.build()

    def pitch(self, mel: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """(log Hz, logit of voicing), float32[B, T] each, of a mel [B, T, M]."""
        x = (mel - _TYPICAL_LOG_MEL) / _LOG_MEL_SCALE
        for layer in self.pitch_layers:
            x = tf.nn.gelu(layer(x), approximate=True)
        log_hertz, voicing = tf.unstack(self.pitch_output(x), axis=-1)
        return log_hertz * _LOG_HZ_SCALE + _TYPICAL_LOG_HZ, voicing

    def gains(self, mel: tf.Tensor, log_hertz: tf.Tensor, voiced: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """(gain of the pulses, its phase in radians, gain of the noise) of each bin, and the noise's of each sample."""
        pitch = tf.stack([(log_hertz - _TYPICAL_LOG_HZ) / _LOG_HZ_SCALE, voiced], axis=-1)
        x = self.input_convolution(tf.concat([(mel - _TYPICAL_LOG_MEL) / _LOG_MEL_SCALE, pitch], axis=-1))
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        spectra, harmonic = self.spectra, self.harmonic_output
        pulses = spectra.project(x, harmonic.kernel[:, : self.bins], harmonic.bias[: self.bins])
        phase = spectra.project(x, harmonic.kernel[:, self.bins :], harmonic.bias[self.bins :], odd=True)
        noise = spectra.project(x, self.noise_output.kernel, self.noise_output.bias)
        pulses, noise = (tf.exp(tf.clip_by_value(gain, *_LOG_GAINS)) for gain in (pulses, noise))
        points = tf.reshape(tf.clip_by_value(self.noise_envelope(x), *_LOG_ENVELOPE), [x.shape[0], -1])
        envelope = tf.exp(_interpolated(points, self.profile.hop_samples // _ENVELOPE_POINTS))
        return pulses, phase, noise, tf.reshape(envelope, [x.shape[0], -1])

    @property
    def generator_weights(self) -> list[tf.Variable]:
        """The generator's weights, without those of the discriminators."""
        return [weight for weight in self.trainable_variables if "/discriminator_" not in weight.path]

    def losses(
        self, crops: CropBatch, numbers: tf.Tensor, seed: tf.Tensor, *, with_noise: bool = True
    ) -> dict[str, tf.Tensor]:
        """Losses of each crop, float32[B], by name: those of `VocoderObjective.metrics`.

        numbers: int32[B], of the crops in the step, seed: int32[2], of the noise on the mels, the noise and the first
        pulse, with_noise: add noise to half of the mels.
        """
        samples, mel = tf.cast(crops.waveform, tf.float32) / 32_768.0, tf.cast(crops.mel, tf.float32)
        log_hertz, voiced = crops.log_hertz, tf.cast(crops.voiced, tf.float32)
        noisy = self._with_noise(mel, numbers, seed) if with_noise else mel
        pulses = pulse_train(log_hertz, self.profile, random_uniform(fold_seed(seed, 3), numbers))
        noise = random_normal(fold_seed(seed, 4), numbers, samples.shape[1], 1)[..., 0]
        spoken = self._matched(self._filtered(noisy, log_hertz, voiced, pulses, noise), mel)
        read_log_hertz, voicing = self.pitch(noisy)
        pitch_error = tf.reduce_sum(tf.abs(read_log_hertz - log_hertz) * voiced, axis=1)
        pitch_error /= tf.reduce_sum(voiced, axis=1) + 1.0
        voicing_loss = tf.nn.sigmoid_cross_entropy_with_logits(voiced, voicing)
        inside = slice(_CROP_EDGE * self.profile.hop_samples, -_CROP_EDGE * self.profile.hop_samples)
        cropped = band_limited(spoken, samples, self.profile)[:, inside], samples[:, inside]
        return {
            "spectrum": _spectral_loss(*cropped),
            "mel": tf.reduce_mean(
                tf.abs(self.log_mel(spoken) - self.log_mel(samples))[:, _CROP_EDGE:-_CROP_EDGE], axis=[1, 2]
            ),
            "pitch": pitch_error + tf.reduce_mean(voicing_loss, axis=1),
            **self._adversarial_losses(*cropped),
        }

    def _with_noise(self, mel: tf.Tensor, numbers: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        level = random_uniform(fold_seed(seed, 0), numbers) * _MOST_NOISE
        level = tf.where(random_uniform(fold_seed(seed, 1), numbers) < 0.5, level, 0.0)[:, tf.newaxis, tf.newaxis]
        noise = random_normal(fold_seed(seed, 2), numbers, *mel.shape[1:])
        return tf.maximum(mel + level * noise, self.profile.silence)

    def _adversarial_losses(self, spoken: tf.Tensor, recorded: tf.Tensor) -> dict[str, tf.Tensor]:
        """Least-squares losses of generator and discriminators, and feature matching (HiFi-GAN, 2010.05646)."""
        batch, losses = spoken.shape[0], []
        both = tf.concat([recorded, spoken], axis=0)
        for discriminator in self.discriminators:
            *features, judged = discriminator(both, frozen=True)
            pairs = [tf.split(feature, 2) for feature in features]
            matched = [
                tf.reduce_mean(tf.abs(tf.stop_gradient(real) - made), axis=[1, 2])
                / (tf.reduce_mean(tf.abs(tf.stop_gradient(real)), axis=[1, 2]) + 1e-3)
                for real, made in pairs
            ]
            generator_loss = tf.reduce_mean(tf.square(1.0 - judged[batch:]), axis=[1, 2])
            real, made = tf.split(discriminator(tf.stop_gradient(both), frozen=False)[-1], 2)
            discriminator_loss = tf.reduce_mean(tf.square(1.0 - real) + tf.square(made), axis=[1, 2])
            losses.append([generator_loss, tf.add_n(matched) / len(matched), discriminator_loss])
        sums = [tf.add_n(parts) / len(self.discriminators) for parts in zip(*losses, strict=True)]
        return dict(zip(("adversary", "features", "discriminators"), sums, strict=True))

    def vocode(self, mel: tf.Tensor) -> tf.Tensor:
        """Samples float32[1, S] of a log-mel float32[1, T, M], T open, by operators that every ONNX runtime has."""
        log_hertz, voicing = self.pitch(mel)
        log_hertz = tf.clip_by_value(log_hertz, *np.log(_PULSE_HZ))
        voiced = tf.cast(voicing > 0.0, tf.float32)
        noise = constant_noise(tf.shape(mel)[1] * self.profile.hop_samples)
        return self._matched(self._filtered(mel, log_hertz, voiced, pulse_train(log_hertz, self.profile), noise), mel)

    def _filtered(
        self, mel: tf.Tensor, log_hertz: tf.Tensor, voiced: tf.Tensor, pulses: tf.Tensor, noise: tf.Tensor
    ) -> tf.Tensor:
        """Filter pulses and noise, samples float32[B, S] each, for a mel and its pitch; return their spectrum."""
        spectra = self.spectra
        pulse_gain, phase, noise_gain, envelope = self.gains(mel, log_hertz, voiced)
        filtered = spectra.filter(self._spectrum(pulses), pulse_gain, phase)
        filtered += self._spectrum(noise * envelope) * noise_gain
        return filtered * spectra.envelope(_magnitudes(mel) / float(np.linalg.norm(spectra.window)))

    def _matched(self, spectrum: tf.Tensor, mel: tf.Tensor) -> tf.Tensor:
        """Samples float32[B, S] of a spectrum, brought to a mel by some rounds of Griffin-Lim."""
        hops, magnitudes = self.spectra.synthesise(spectrum), _magnitudes(mel)
        for _ in range(_ROUNDS):
            hops = self.spectra.synthesise(self.spectra.matched(self.spectra.analyse(hops), magnitudes))
        return self.spectra.samples(hops)[:, self.padding : -self.padding]

    def log_mel(self, samples: tf.Tensor) -> tf.Tensor:
        """float32[B, S] -> float32[B, T, M], natural-log magnitude, as a loss sees it: in float32."""
        mel = self.spectra.mel(self._spectrum(samples), self.profile.magnitude_floor)
        return tf.transpose(tf.math.log(tf.maximum(mel, self.profile.log_floor)), [1, 2, 0])

    def _spectrum(self, samples: tf.Tensor) -> tf.Tensor:
        """Spectrum of float32[B, S], zeros around it."""
        return self.spectra.analyse(self.spectra.hops(tf.pad(samples, [[0, 0], [self.padding, self.padding]])))


def recorded_band(recorded: tf.Tensor, profile: MelProfile) -> tf.Tensor:
    """Highest frequency of recordings in Hz, float32[B]; infinite where they have the whole band, as most do.

    A recording from a lower rate or a lossy file, one cleaned of noise, or one played slower ends below half the sample
    rate. Never below the mel's own highest frequency, up to which the mel decides. recorded: float32[B, S].
    """
    power = tf.reduce_mean(_square(tf.signal.stft(recorded, _BAND_WINDOW, _BAND_HOP)), axis=1)
    half = profile.sample_rate / 2
    hertz = np.linspace(0.0, half, _BAND_WINDOW // 2 + 1, dtype=np.float32)
    end = tf.reduce_max(
        tf.where(power > _LEAST_SOUND * tf.reduce_sum(power, axis=1, keepdims=True), hertz, 0.0), axis=1
    )
    end = tf.maximum(end, profile.high_hz)
    return tf.where(end < _WHOLE_BAND * half, end, np.inf)


def band_limited(spoken: tf.Tensor, recorded: tf.Tensor, profile: MelProfile) -> tf.Tensor:
    """Remove from speech what lies above the band of its recordings, float32[B, S] each.

    The losses then ignore it, so that dull recordings teach no dullness (as in MSR-NV, 2109.13714).
    """
    length = spoken.shape[1]
    hertz = np.linspace(0.0, profile.sample_rate / 2, length // 2 + 1, dtype=np.float32)
    gain = tf.clip_by_value((recorded_band(recorded, profile)[:, tf.newaxis] - hertz) / _BAND_SLOPE_HZ, 0.0, 1.0)
    limited = tf.signal.rfft(spoken) * tf.cast(gain, tf.complex64)
    return tf.ensure_shape(tf.signal.irfft(limited, [length]), spoken.shape)


def pulse_train(log_hertz: tf.Tensor, profile: MelProfile, first: tf.Tensor | float = 0.0) -> tf.Tensor:
    """Band-limited pulses of mean power 1, float32[B, S], at the pitch log_hertz, float32[B, T].

    first: phase of the first sample, float32[B], in periods.
    The sum of all cosines at multiples of the pitch below half the sample rate, in closed form (Dirichlet's kernel).
    """
    hop = profile.hop_samples
    each = _interpolated(tf.exp(log_hertz), hop)
    # Periods passed: summed within a frame, then over whole frames without their whole parts, in float32.
    within = tf.cumsum(each / profile.sample_rate, axis=2)
    starts = tf.cumsum(tf.math.floormod(within[..., -1], 1.0), axis=1, exclusive=True)
    phase = tf.math.floormod(starts[..., tf.newaxis] + within + tf.reshape(first, [-1, 1, 1]), 1.0)
    count = tf.floor(0.5 * profile.sample_rate / each)
    half = math.pi * phase
    sine = tf.sin(half)
    safe = tf.abs(sine) > 1e-4
    kernel = tf.where(safe, tf.sin((2.0 * count + 1.0) * half) / tf.where(safe, sine, 1.0), 2.0 * count + 1.0)
    return tf.reshape((kernel - 1.0) / tf.sqrt(2.0 * count), [log_hertz.shape[0], -1])


def _interpolated(values: tf.Tensor, count: int) -> tf.Tensor:
    """Interpolate linearly between the middles of N spans of `count` samples: float32[B, N] -> float32[B, N, count]."""
    before = tf.concat([values[:, :1], values[:, :-1]], axis=1)
    after = tf.concat([values[:, 1:], values[:, -1:]], axis=1)
    offset = (tf.range(count, dtype=tf.float32) + 0.5) / count - 0.5
    slope = tf.where(offset < 0.0, (values - before)[..., tf.newaxis], (after - values)[..., tf.newaxis])
    return values[..., tf.newaxis] + slope * offset


def constant_noise(count: tf.Tensor) -> tf.Tensor:
    """The same `count` standard normal numbers in every runtime, float32[1, count]: sums of two short tables in turn.

    Their lengths are primes, so that it begins again after 12 minutes at 22,050 Hz.
    """
    random, total = np.random.default_rng(0), tf.zeros([])
    for length in _NOISE_TABLES:
        table = (random.standard_normal(length) / math.sqrt(len(_NOISE_TABLES))).astype(np.float32)
        total += tf.tile(table, [count // length + 1])[:count]
    return total[tf.newaxis]


def _magnitudes(mel: tf.Tensor) -> tf.Tensor:
    """Magnitudes float32[M, B, T] of a log-mel float32[B, T, M]."""
    return tf.exp(tf.transpose(mel, [2, 0, 1]))


def _square(spectrum: tf.Tensor) -> tf.Tensor:
    return tf.square(tf.math.real(spectrum)) + tf.square(tf.math.imag(spectrum))


def _spectral_loss(spoken: tf.Tensor, recorded: tf.Tensor) -> tf.Tensor:
    """Log magnitude and spectral convergence over `_RESOLUTIONS` (Parallel WaveGAN, 1910.11480): float32[B]."""
    loss = tf.zeros([])
    for size, hop, window in _RESOLUTIONS:
        made, real = (
            tf.sqrt(_square(tf.signal.stft(samples, window, hop, size)) + 1e-7) for samples in (spoken, recorded)
        )
        loss += tf.reduce_mean(tf.abs(tf.math.log(made) - tf.math.log(real)), axis=[1, 2])
        loss += tf.norm(made - real, axis=[1, 2]) / (tf.norm(real, axis=[1, 2]) + 1e-3)
    return loss / len(_RESOLUTIONS)


VOCODER = Metrics(
    weights={"spectrum": 3.0, "mel": 3.0, "pitch": 1.0, "adversary": 1.0, "features": 2.0, "discriminators": 1.0},
    held_out=("spectrum", "mel", "pitch"), compared=("spectrum", "mel", "pitch"),
    clipped_apart={"discriminator_gradient_norm": "/discriminator_"},
)


class VocoderObjective(Objective):
    """The losses of the vocoder and its discriminators; crops are weighted by their useful frames.

    Of the random numbers of a step it takes the crops' positions and the seed.
    """

    metrics = VOCODER

    def loss_sums(
        self, batch: AnyBatch, random: tuple[tf.Tensor, ...], *, with_noise: bool = True
    ) -> dict[str, tf.Tensor]:
        """See `Objective`; with_noise: add noise to half of the mels."""
        losses = self.model.losses(cast(CropBatch, batch), *random, with_noise=with_noise)
        frames = tf.cast(batch.mel_length, tf.float32)
        return {name: loss * frames for name, loss in losses.items()}

    def counts_of(self, frames: tf.Tensor | float, tokens: tf.Tensor | float) -> list[tf.Tensor | float]:
        """See `Objective`."""
        return [frames] * len(self.metrics.losses)

    def held_out_sums(self, batch: AnyBatch, clips: tf.Tensor, seed: tf.Tensor, bucket: int) -> dict[str, tf.Tensor]:
        """See `Objective`."""
        return self.loss_sums(batch, (clips, validation_key(seed, bucket)), with_noise=False)
