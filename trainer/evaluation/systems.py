"""The test set of a voice: sentences of a split, and figures of their speech by several systems."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import numpy as np

from xtts.shared.audio.decode import AudioProblem, Segment, read_recording, source_rate
from xtts.shared.audio.mel_profiles import EDGE_FRAMES
from xtts.shared.audio.trim_and_loudness import condition
from xtts.shared.cache.cache_spec import CacheSpec, Split, load_spec, load_voices
from xtts.shared.cache.clip_index import Clip, find_rows
from xtts.shared.errors import LockstepError, counted_noun
from xtts.trainer.evaluation.beside_recordings import Brightness, brightness
from xtts.trainer.evaluation.evaluation_clips import EvaluationClip, ShardClips, read_clips, some_clips
from xtts.trainer.evaluation.figures import Figures, Recordings, SentenceFigures, spread
from xtts.trainer.evaluation.judge import Judge, Opinion, Utterance, Verdict
from xtts.trainer.speech.synthesizer import Synthesizer
from xtts.trainer.speech.vocoder import MelToSamples
from xtts.trainer.speech.voice_source import Source

_RECORDINGS = 64
"""Recordings, at least, with which a sentence is compared to find the nearest."""
ROWS = {
    "character_error_rate": ("character errors", "{:.1%}"),
    "distillmos": ("DistillMOS", "{:.2f}"),
    "distillmos_error": ("  its standard error", "{:.2f}"),
    "dnsmos": ("DNSMOS, overall", "{:.2f}"),
    "level_4_to_8_khz": ("4 to 8 kHz beside recordings", "{:.1f} dB"),
    "level_8_to_11_khz": ("8 to 11 kHz beside recordings", "{:.1f} dB"),
    "similarity": ("similarity of the speaker", "{:.3f}"),
    "other_similarity": ("  of the nearest other speaker", "{:.3f}"),
    "nearest_speaker": ("nearest to their own speaker", "{:.0%}"),
    "real_time_factor": ("real-time factor", "{:.2f}"),
    "relative_mcd": ("relative MCD", "{:.3f}"),
    "frechet_distance": ("Fréchet distance of mel patches", "{:.2f}"),
    "log_f0_error": ("log-F0 error", "{:.3f}"),
    "voicing_error": ("voicing error", "{:.1%}"),
    "shimmer": ("shimmer", "{:.1%}"),
    "duration_error": ("duration error", "{:.1%}"),
    "mcd_db": ("MCD-DTW", "{:.2f} dB"),
    "semitones_of_statements": ("pitch at the end of statements", "{:+.1f} semitones"),
    "semitones_of_questions": ("  of questions", "{:+.1f} semitones"),
}
"""Figures of a `System` in the order of the table: name and format of each."""


def figure_rows(systems: Iterable[Mapping[str, float]]) -> list[tuple[str, list[str]]]:
    """Return (name of a figure, its text for each system, empty where it is not known); systems: `System.means`."""
    columns = list(systems)
    return [
        (name, [template.format(means[key]) if key in means else "" for means in columns])
        for key, (name, template) in ROWS.items() if any(key in means for means in columns)
    ]


@dataclass(kw_only=True)
class System:
    """Speech of one kind and its figures."""

    figures: Figures | None = None
    opinion: Opinion | None = None
    brightness: Brightness | None = None
    real_time_factor: float | None = None
    """Seconds of synthesis, vocoder included, for a second of speech."""
    frechet_distance: float | None = None
    """The only figure of recordings of other sentences."""
    sentences: Sequence[SentenceFigures] = ()
    verdicts: Sequence[Verdict] = ()

    @property
    def means(self) -> dict[str, float]:
        """The known figures by their key in `ROWS`."""
        groups = [group for group in (self.opinion, self.brightness, self.figures) if group is not None]
        means = {field.name: getattr(group, field.name) for group in groups for field in fields(group)}
        means = {"frechet_distance": self.frechet_distance, "real_time_factor": self.real_time_factor} | means
        return {key: means[key] for key in ROWS if means.get(key) is not None}


class TestSet:
    """The sentences of a split that are spoken, and the recordings that their speech is compared with."""

    def __init__(
        self, cache: Path, source: Source, split: Split, limit: int, *, vocoder: MelToSamples,
        judge: Judge | None = None, data: Path | None = None,
    ) -> None:
        """Read the clips of a local cache; vocoder: for the sounds that are judged, the others as in `evaluate`.

        Raises:
            LockstepError: There are fewer than two sentences, the voice does not fit the cache, or a recording of
                `data` cannot be read.
        """
        self.cache, self.source, self.split, self.limit = cache, source, split, limit
        self.clips = self._read(lambda spec: compared_clips(spec, split, limit))
        """The R clips of the split that every sentence is compared with."""
        if len({tuple(clip.ids) for clip in self.clips}) < 2:
            fix = "build the cache with a larger split.validation_fraction"
            raise LockstepError(
                str(cache), found=counted_noun(len(self.clips), f"{split} clip"),
                expected="at least 2 sentences to compare",
                fix=fix if split == "validation" else "give the cache of a larger corpus",
            )
        self.own = spread(len(self.clips), limit)
        """Positions of the N clips whose sentences are spoken."""
        self._voices = load_voices(cache, load_spec(cache)) if source.takes_recording else None
        self._profile, self._judge = source.voice.mel_profile, judge
        self._vocoder = vocoder
        self._recorded: list[np.ndarray] | None = None
        self._recordings = Recordings(self.clips, self.own, self._profile)
        if judge is not None:
            spec, rate = load_spec(cache), self._profile.sample_rate
            indexed = find_rows(cache / spec.index_file, [clip.clip_id for clip in self._spoken])
            spoken = [indexed[clip.clip_id] for clip in self._spoken]
            self._texts = [row.clip.text for row in spoken]
            self._file_rates = [source_rate(row.notes, rate) for row in spoken]
            as_built = {key: spec.features["audio"][key] for key in ("channel", "trim_silence_db", "loudness_lufs")}
            self._recorded = [recording_of(data, row.clip, rate, **as_built) for row in spoken] if data else None
            self._speakers = [judge.embed(samples, rate) for samples in self._recorded or self._vocoded]

    def _read(self, select: Callable[[CacheSpec], Iterable[ShardClips]]) -> list[EvaluationClip]:
        return read_clips(self.cache, self.source.voice, select, any_speaker=self.source.takes_recording)

    @cached_property
    def _vocoded(self) -> list[np.ndarray]:
        """The recordings of the N sentences after the vocoder."""
        return [self._without_edges(self._vocoder(clip.mel)) for clip in self._spoken]

    def _without_edges(self, samples: np.ndarray) -> np.ndarray:
        """Cut off the silent edges of a sound, which the recordings do not have."""
        edge = EDGE_FRAMES * self._profile.hop_samples
        return samples[edge:-edge]

    @property
    def _spoken(self) -> list[EvaluationClip]:
        return [self.clips[i] for i in self.own]

    def synthesised(self, synthesizer: Synthesizer) -> System:
        """Speak the sentences with the voice."""
        spoken = speak_clips(synthesizer, self.source, self.clips, self.own, self._voices)
        mels, frames, times = zip(*spoken, strict=True)
        system = _system(self._recordings.compare(mels, frames))
        if self._judge is not None:
            began = time.perf_counter()
            sounds = [self._vocoder(mel) for mel in mels]
            seconds = time.perf_counter() - began + sum(times)
            system.real_time_factor = seconds * self._profile.sample_rate / sum(map(len, sounds))
            self._judge_sounds(system, [self._without_edges(samples) for samples in sounds])
        return system

    def vocoded(self) -> System:
        """Compare the recordings with themselves after the vocoder: its loss."""
        system = _system(self._recordings.vocoded())
        if self._judge is not None:
            self._judge_sounds(system, self._vocoded)
        return system

    def recorded(self) -> System | None:
        """Judge the recordings themselves; None without a judge or their audio."""
        if self._recorded is None:
            return None
        system = System()
        self._judge_sounds(system, self._recorded)
        return system

    def other_recordings(self) -> System | None:
        """Compare as many recordings of the other split, of other sentences; None if it has none."""
        others = self._read(lambda spec: other_clips(spec, self.split, self.limit))
        return System(frechet_distance=self._recordings.frechet_distance(others)) if others else None

    def _judge_sounds(self, system: System, sounds: Sequence[np.ndarray]) -> None:
        """Have the sounds of the N sentences judged, and their spectra compared with those of the recordings."""
        assert self._judge is not None
        languages, rate = self.source.voice.languages, self._profile.sample_rate
        utterances = [
            Utterance(samples=samples, text=text, language=languages[clip.language], speaker=clip.speaker)
            for samples, text, clip in zip(sounds, self._texts, self._spoken, strict=True)
        ]
        system.verdicts = self._judge.judge(utterances, rate, self._speakers)
        system.opinion = self._judge.summarise(utterances, system.verdicts)
        if self._recorded is not None and sounds is not self._recorded:
            system.brightness = brightness(sounds, self._recorded, rate, self._file_rates)


def compared_clips(spec: CacheSpec, split: Split, limit: int) -> list[ShardClips]:
    """Select the clips that a `TestSet` of at most `limit` sentences reads, however large the split is."""
    return some_clips(spec, split, max(limit, _RECORDINGS))


def other_clips(spec: CacheSpec, split: Split, limit: int) -> list[ShardClips]:
    """Select as many clips of the other split as a `TestSet` speaks of this split."""
    spoken = min(limit, sum(shard.records for shard in spec.shards(split)))
    return some_clips(spec, "train" if split == "validation" else "validation", spoken)


def _system(comparison: tuple[Figures, Sequence[SentenceFigures]]) -> System:
    return System(figures=comparison[0], sentences=comparison[1])


def speak_clips(
    synthesizer: Synthesizer, source: Source, clips: Sequence[EvaluationClip], own: Sequence[int],
    voices: np.ndarray | None,
) -> list[tuple[np.ndarray, int, float]]:
    """Speak the sentences of the clips at positions `own`, each from its own noise.

    voices: of the clips' cache, from training recordings of the same speakers, for a model that imitates recordings.
    -> (mel float32[T, M], natural-log magnitude, cut off at the end of the largest shape; sum of the durations; seconds
    of synthesis) of each.
    """
    spoken = []
    for noise_key, position in enumerate(own):
        clip = clips[position]
        if voices is not None:
            synthesizer.set_voice(voices[clip.speaker, 0].astype(np.float32).mean(axis=0))
        began = time.perf_counter()
        mel, durations = synthesizer.speak(clip.ids, speaker=clip.speaker, language=clip.language, noise_key=noise_key)
        spoken.append((mel, int(durations.sum()), time.perf_counter() - began))
        if not np.isfinite(mel).all():
            raise LockstepError(str(source.folder), found=f"the speech of {clip.clip_id} has non-finite numbers")
    return spoken


def recording_of(
    data: Path, clip: Clip, rate: int, channel: int | None = None, trim_silence_db: float | None = None,
    loudness_lufs: float | None = None,
) -> np.ndarray:
    """Read the recording of a clip, float32[S]; data: folder of the corpus, rate: Hz, the others as in `AudioConfig`.

    Raises:
        LockstepError: It cannot be read: `data` is the wrong folder, or an archive holds it.
    """
    path = data / clip.source
    segment = None if clip.start is None or clip.duration is None else Segment(clip.start, clip.duration)
    try:
        samples = read_recording(path, segment, channel).at(rate)
        return condition(samples, rate=rate, trim_silence_db=trim_silence_db, loudness_lufs=loudness_lufs)
    except (AudioProblem, OSError) as error:
        raise LockstepError(
            "--data", found=f"{path} cannot be read ({error})", expected=f"the recording of clip {clip.id}, as a file",
            fix="give the folder of the cache's corpus, unpacked",
        ) from None
