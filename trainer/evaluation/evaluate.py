"""`xtts-synth evaluate`: speaks the sentences of a split, compares them with its recordings, and has them judged."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from xtts.shared.cache.cache_spec import Split
from xtts.shared.cache.object_store import local_cache
from xtts.shared.config_flags import DEFAULT_CACHE
from xtts.trainer.evaluation.judge import Judge
from xtts.trainer.evaluation.systems import System, TestSet, figure_rows
from xtts.trainer.speech.output_files import write_bytes
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.speech.vocoder import make_vocoder
from xtts.trainer.speech.voice_source import Source
from xtts.trainer.stored.stored_model import StoredModel

SYNTHESISED, VOCODED, RECORDED = "synthesised", "vocoded recording", "recording"
OTHER_RECORDINGS = "other recordings"
_KINDS: dict[Split, str] = {"validation": "held-out sentences", "train": "training sentences"}


def evaluate(
    stored: StoredModel, source: Source, options: SynthesisOptions, *, cache: str | Path | None, split: Split,
    limit: int, judge: bool = False, asr: str = "base", data: Path | None = None, vocoder: str | None = None,
    json_file: Path | None = None, console: Console | None = None,
) -> dict[str, System]:
    """Speak, compare, judge, and show the figures of each system as a table and, if requested, as JSON.

    source: the exported voice of the stored model, cache: None for that of its run,
    limit: largest number of sentences, judge: have them judged by `Judge`, asr: see `Judge`, data: folder of the
    corpus, whose recordings are judged too, vocoder: for the sounds that are judged, as in `make_vocoder`.
    """
    console = console or Console(width=None if os.isatty(1) else 120)
    loaded_judge, began = Judge(asr) if judge else None, time.perf_counter()
    cache = cache or stored.cache or DEFAULT_CACHE
    candidates = dict[str, System | None]()
    loaded_vocoder = make_vocoder(vocoder, source.voice.mel_profile, console.print, voice=source.folder)
    folder = local_cache(cache)
    test_set = TestSet(folder, source, split, limit, vocoder=loaded_vocoder, judge=loaded_judge, data=data)
    own, clips = test_set.own, test_set.clips
    console.print(f"{stored.checkpoint}: speaking {len(own)} of {len(clips)} {_KINDS[split]}", highlight=False)
    synthesizer = load_synthesizer(source, options)
    candidates[SYNTHESISED] = test_set.synthesised(synthesizer)
    console.print(f"comparing them with {len(clips)} recordings", highlight=False)
    candidates[VOCODED] = test_set.vocoded()
    candidates[RECORDED] = test_set.recorded()
    candidates[OTHER_RECORDINGS] = test_set.other_recordings()
    systems = {name: system for name, system in candidates.items() if system is not None}
    console.print(_figures_table(systems, len(own), _KINDS[split]))
    if json_file is not None:
        report = {
            "checkpoint": str(stored.checkpoint), "cache": str(cache), "split": split, "options": options.model_dump(),
            "spoken": len(own), "recordings": len(clips), "systems": {
                name: system.means | {
                    "sentences": [asdict(sentence) for sentence in system.sentences],
                    "verdicts": [asdict(verdict) for verdict in system.verdicts],
                }
                for name, system in systems.items()
            },
        }
        write_bytes(json_file, (json.dumps(report, indent=1) + "\n").encode())
    console.print(f"evaluated in {time.perf_counter() - began:.0f} s", highlight=False)
    return systems


def _figures_table(systems: Mapping[str, System], spoken: int, kind: str) -> Table:
    """Make a table of the figures by system; spoken: number of sentences of that kind."""
    table = Table("of " + kind, title_justify="left")
    for name, system in systems.items():
        count = f" ({len(system.sentences)})" if len(system.sentences) not in (0, spoken) else ""
        table.add_column(name + count, justify="right")
    for name, cells in figure_rows(system.means for system in systems.values()):
        table.add_row(name, *cells)
    return table
