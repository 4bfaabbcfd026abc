"""What a listener hears of a voice by temperature and number of evaluations, beside its recordings.

    python benchmarks/temperatures.py VOICE [VOICE ...] --asr base [--cache DIR] [--data DIR]
        [--temperatures 0.3 0.5 0.667 0.8] [--nfe 10] [--limit 24] [--quick] [--out FILE.json]

VOICE is a run or an exported folder; several, such as two seeds, speak the same cache, and the table has their mean
and, after ±, their standard deviation. --data is the corpus, for the row of its recordings. The figures are those of
`xtts-synth evaluate --judge`.
"""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from reporting.report import machine, report, section_lines
from setup.amounts import parse, program_parser

from xtts.shared.cache.object_store import local_cache
from xtts.shared.config_flags import DEFAULT_CACHE
from xtts.shared.errors import report_errors
from xtts.trainer.evaluation.evaluate import OTHER_RECORDINGS, RECORDED, VOCODED
from xtts.trainer.evaluation.judge import Judge
from xtts.trainer.evaluation.systems import ROWS, System, TestSet
from xtts.trainer.export.exported_voice import exported_voice
from xtts.trainer.speech.synthesis_options import SynthesisOptions
from xtts.trainer.speech.synthesizer import load_synthesizer
from xtts.trainer.speech.vocoder import make_vocoder
from xtts.trainer.stored.stored_model import open_model

FULL = {"temperatures": [0.3, 0.5, 0.667, 0.8], "nfe": [10], "limit": 24}
QUICK = {"temperatures": [0.667], "nfe": [4], "limit": 2}


def main() -> None:
    parser = program_parser(__doc__, QUICK)
    parser.add_argument("voices", nargs="+", type=Path, metavar="VOICE")
    parser.add_argument("--asr", default="base", help="Whisper: a size to download, or a folder")
    parser.add_argument("--cache", type=Path, help="default: that of the run, else features")
    parser.add_argument("--data", type=Path, help="the corpus")
    parser.add_argument("--temperatures", type=float, nargs="+")
    parser.add_argument("--nfe", type=int, nargs="+")
    parser.add_argument("--limit", type=int, help="most sentences")
    options = parse(parser, full=FULL, quick=QUICK)
    with report_errors():
        rows = {name: mean_row(systems) for name, systems in listen(options).items()}
    keys = [key for key in ROWS if any(key in row for row in rows.values())]
    table = [{"audio": name} | {ROWS[key][0].strip(): row.get(key) for key in keys} for name, row in rows.items()]
    section = {"title": "held-out sentences", "voices": [str(voice) for voice in options.voices]}
    section |= {"sentences": options.limit, **machine(["tensorflow"]), "table": table}
    report(section_lines("temperatures", section), section, options.out)


def listen(options: argparse.Namespace) -> dict[str, list[System]]:
    """The systems by row of the table, one for each voice; of the recordings a single one."""
    judge, heard = Judge(options.asr), dict[str, list[System]]()
    for voice in options.voices:
        source = exported_voice(voice, print)
        cache = local_cache(options.cache or open_model(voice).cache or DEFAULT_CACHE)
        vocoder = make_vocoder(None, source.voice.mel_profile, print, voice=source.folder)
        test_set = TestSet(cache, source, "validation", options.limit, vocoder=vocoder, judge=judge, data=options.data)
        if not heard:
            recorded, others = test_set.recorded(), test_set.other_recordings()
            heard |= {RECORDED: [recorded]} if recorded else {}
            heard |= {VOCODED: [test_set.vocoded()]} | ({OTHER_RECORDINGS: [others]} if others else {})
        for nfe in options.nfe:
            for temperature in options.temperatures:
                synthesis = SynthesisOptions(nfe=nfe, temperature=temperature)
                synthesizer = load_synthesizer(source, synthesis)
                row = heard.setdefault(f"temperature {temperature:g}, {nfe} evaluations", [])
                row.append(test_set.synthesised(synthesizer))
                print(voice, synthesis, row[-1].means, flush=True)
    return heard


def mean_row(systems: Sequence[System]) -> dict[str, str]:
    """The mean of each figure over several voices, with its standard deviation."""
    row, means = dict[str, str](), [system.means for system in systems]
    for key, (_, shown) in ROWS.items():
        values = [known[key] for known in means if key in known]
        if values:
            row[key] = shown.format(statistics.fmean(values))
            row[key] += f" ±{shown.format(statistics.stdev(values))}" if len(values) > 1 else ""
    return row


if __name__ == "__main__":
    main()
