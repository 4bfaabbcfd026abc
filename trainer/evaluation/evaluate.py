"""`xtts-synth evaluate`: speaks the sentences of a split, compares them with its recordings, and has them judged."""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from xtts.shared.cache.cache_spec import Split, load_spec
from xtts.shared.cache.object_store import local_cache
from xtts.shared.config_flags import DEFAULT_CACHE
from xtts.shared.errors import LockstepError
from xtts.trainer.evaluation.judge import Judge
from xtts.trainer.evaluation.systems import System, TestSet, figure_rows
from xtts.trainer.speech.output_files import check_file, write_bytes
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.speech.vocoder import make_vocoder
from xtts.trainer.speech.voice_source import Source
from xtts.trainer.stored.stored_model import StoredModel

SYNTHESISED, VOCODED, RECORDED = "synthesised", "vocoded recording", "recording"
OTHER_RECORDINGS = "other recordings"
_KINDS: dict[Split, str] = {"validation": "held-out sentences", "train": "training sentences"}


def evaluate(
    stored: StoredModel, open_voice: Callable[[], Source], options: SynthesisOptions, *, cache: str | Path | None,
    split: Split, limit: int, judge: bool = False, asr: str = "base", data: Path | None = None,
    vocoder: str | None = None, json_file: Path | None = None, console: Console | None = None,
) -> dict[str, System]:
    """Speak, compare, judge, and show the figures of each system as a table and, if requested, as JSON.

    open_voice: opens the exported voice, after all checks, since it may export first; cache: None for that of its run,
    limit: largest number of sentences, judge: have them judged by `Judge`, asr: see `Judge`, data: folder of the
    corpus, whose recordings are judged too, vocoder: for the sounds that are judged, as in `make_vocoder`.
    """
    if json_file is not None:
        check_file(json_file, "--json", ".json")
    if data is not None and not judge:
        raise LockstepError("--data", found="no --judge", expected="both: the recordings are judged")
    console = console or Console(width=None if os.isatty(1) else 120)
    loaded_judge, began = Judge(asr) if judge else None, time.perf_counter()
    cache = cache or stored.cache or DEFAULT_CACHE
    candidates = dict[str, System | None]()
    load_spec(folder := local_cache(cache))
    source = open_voice()
    loaded_vocoder = make_vocoder(vocoder, source.voice.mel_profile, console.print, voice=source.folder)
    test_set = TestSet(folder, source, split, limit, vocoder=loaded_vocoder, judge=loaded_judge, data=data)
    own, clips = len(test_set.own), len(test_set.clips)
    console.print(f"{stored.checkpoint}: speaking {own} of {clips} {_KINDS[split]}", highlight=False)
    candidates[SYNTHESISED] = test_set.synthesised(load_synthesizer(source, options))
    console.print(f"comparing them with {clips} recordings", highlight=False)
    candidates[VOCODED] = test_set.vocoded()
    candidates[RECORDED] = test_set.recorded()
    candidates[OTHER_RECORDINGS] = test_set.other_recordings()
    systems = {name: system for name, system in candidates.items() if system is not None}
    console.print(_figures_table(systems, own, _KINDS[split]))
    if json_file is not None:
        report = {
            "checkpoint": str(stored.checkpoint), "cache": str(cache), "split": split, "options": options.model_dump(),
            "spoken": own, "recordings": clips, "systems": {
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
