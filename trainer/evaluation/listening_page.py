"""A page to hear a voice: held-out sentences, recorded and spoken, in one HTML file that opens without a server."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from xtts.shared.audio.mel_profiles import EDGE_FRAMES
from xtts.shared.audio.page_media import picture_uri, sound_uri
from xtts.shared.cache.cache_spec import Split, load_spec, load_voices
from xtts.shared.cache.clip_index import IndexRow, find_rows
from xtts.shared.cache.object_store import local_cache
from xtts.shared.config_flags import DEFAULT_CACHE
from xtts.shared.errors import LockstepError
from xtts.shared.languages import find_language
from xtts.trainer.evaluation.evaluation_clips import read_clips, some_clips
from xtts.trainer.evaluation.figures import spread
from xtts.trainer.evaluation.systems import figure_rows, recording_of, speak_clips
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.speech.vocoder import make_vocoder
from xtts.trainer.speech.voice_source import open_source
from xtts.trainer.stored.stored_model import StoredModel

LISTEN_FILE = "listen.html"
_SENTENCES = 6
_WINDOW, _HOP = 512, 256
_DARKEST_DB, _BRIGHTEST_DB = -100.0, -20.0
"""Levels of a spectrogram's colours, relative to a sine of full scale."""


@dataclass(frozen=True, kw_only=True)
class Sound:
    """A sound and its spectrogram up to half its rate, as data URIs."""

    name: str
    seconds: float
    uri: str
    picture: str


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A text, the direction of its script (ltr or rtl), and its sounds side by side."""

    text: str
    direction: str
    sounds: Sequence[Sound]
    speaker: str = ""

    @property
    def seconds(self) -> float:
        """Length of its longest sound."""
        return max(sound.seconds for sound in self.sounds)


@dataclass(frozen=True, kw_only=True)
class Section:
    """Sentences below a heading and a remark; no heading for a page's only sentences."""

    sentences: Sequence[Sentence]
    title: str = ""
    remark: str = ""


def write_listening_page(
    stored: StoredModel, folder: Path, *, evaluation: Mapping[str, Any], data: Path | None
) -> None:
    """Speak six held-out sentences of a run's cache with its exported voice and write `LISTEN_FILE` into its folder.

    If the cache holds no sentences out, training sentences are spoken, and the page says so.

    evaluation: `RUN/evaluation.json`, empty if there are no figures; data: folder of the corpus. The cache's mel
    through the vocoder replaces a recording that is missing from it.
    """
    assert stored.run is not None
    source = open_source(folder)
    cache = local_cache(stored.cache or DEFAULT_CACHE)
    spec = load_spec(cache)
    held_out = bool(spec.shards("validation"))
    split: Split = "validation" if held_out else "train"
    clips = read_clips(cache, source.voice, lambda spec: some_clips(spec, split, _SENTENCES))
    as_built = {key: spec.features["audio"][key] for key in ("channel", "trim_silence_db", "loudness_lufs")}
    rows = find_rows(cache / spec.index_file, [clip.clip_id for clip in clips])
    voices = load_voices(cache, spec) if source.takes_recording else None
    own = spread(len(clips), _SENTENCES)
    vocoder = make_vocoder(None, source.voice.mel_profile, lambda _: None, voice=folder)
    spoken = speak_clips(load_synthesizer(source, SynthesisOptions()), source, clips, own, voices)
    rate, edge = source.voice.mel_profile.sample_rate, EDGE_FRAMES * source.voice.mel_profile.hop_samples

    def sentence(row: IndexRow, recorded: np.ndarray, mel: np.ndarray) -> Sentence:
        try:
            sounds = {"recorded": recording_of(data, row.clip, rate, **as_built)} if data else {}
        except LockstepError:
            sounds = {}
        sounds = sounds or {"recorded, through the vocoder": vocoder(recorded)[edge:-edge]}
        sounds["spoken"] = vocoder(mel)[edge:-edge]
        return Sentence(
            text=row.clip.text, speaker=row.clip.speaker if len(source.voice.speakers) > 1 else "",
            direction=find_language(row.clip.language or spec.text_language).direction,
            sounds=[sound_of(name, samples, rate) for name, samples in sounds.items()],
        )

    pairs, systems = zip((clips[i] for i in own), spoken, strict=True), evaluation.get("systems", {})
    chosen = "Sentences that the voice was not trained on" if held_out else (
        "Training sentences, since the cache holds none out"
    )
    page = render_page(
        f"{data.resolve().name if data else source.name}: recorded and spoken",
        f"{chosen}, recorded and spoken. Spectrograms up to {rate / 2000:.0f} kHz.",
        [Section(sentences=[sentence(rows[clip.clip_id], clip.mel, mel) for clip, (mel, _, _) in pairs])],
        ckpt=shlex.quote(str(stored.run.path)), systems=list(systems), figures=figure_rows(systems.values()),
        judged=evaluation.get("spoken"),
    )
    (folder / LISTEN_FILE).write_text(page, encoding="utf-8")


def render_page(
    title: str, remark: str, sections: Sequence[Section], *, ckpt: str, systems: Sequence[str] = (),
    figures: Sequence[tuple[str, Sequence[str]]] = (), judged: int | None = None,
) -> str:
    """Return an HTML page with sounds and their spectrograms.

    ckpt: what `xtts-synth --ckpt` takes, quoted; figures: rows of `figure_rows`, with a column for each of `systems`;
    judged: number of sentences that they were measured on.
    """
    import jinja2

    template = files("xtts.trainer.evaluation").joinpath("listen.html").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.from_string(template).render(
        title=title, remark=remark, sections=sections, ckpt=ckpt, systems=systems, figures=figures, judged=judged
    )


def sound_of(name: str, samples: np.ndarray, rate: int) -> Sound:
    """Embed samples float32[S] at `rate` Hz, with their spectrogram."""
    padded = np.pad(samples, (0, max(0, _WINDOW - len(samples))))
    frames = sliding_window_view(padded, _WINDOW)[::_HOP] * np.hanning(_WINDOW)
    levels = 20 * np.log10(np.abs(np.fft.rfft(frames)) * 4 / _WINDOW + 1e-7)
    return Sound(
        name=name, seconds=len(samples) / rate, uri=sound_uri(samples, rate),
        picture=picture_uri(levels, _DARKEST_DB, _BRIGHTEST_DB),
    )
