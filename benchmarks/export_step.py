"""The locked training step of every model size as serialized HLO, for timing by any XLA runtime, without TensorFlow.

    python benchmarks/export_step.py [--sizes tiny small normal big] [--config OVERLAY ...] [--out DIR] [--kernels]

For each size: SIZE.hlo, the step as an unoptimised `HloModuleProto`; SIZE.npz, a batch of real shapes and lengths as
arg0 to arg3 (tokens, mel, token_length, mel_length; the other arguments are the weights and the optimizer's state, the
step's variables); and SIZE.json, which describes the files. A runtime that takes s seconds per step trains
`useful_frames / s` frames per second. With `--kernels` the step is also compiled for this machine, and the table shows
the iterations of its loops and the kernels that a step launches.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from xtts.shared.config_files import load_config
from xtts.trainer.system.tensorflow_import import tensorflow_import

with tensorflow_import(compile_cache=False):
    from training_parts.kernels import count_kernels
    from training_parts.locked_step import LONGEST, build_step

SIZES = ("tiny", "small", "normal", "big")


def main() -> None:
    options = parse_arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    print("| size | parameters | clips | tokens | frames | useful frames a step | HLO, MB |", end="")
    print(" loops, turns x kernels | kernels a step |" if options.kernels else "")
    print("|---|---:|---:|---:|---:|---:|---:|" + "---:|---:|" * options.kernels)
    for size in options.sizes:
        row = export(size, options)
        print(
            "| " + " | ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in row.values()) + " |"
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="SIZE", help="files of configs/")
    parser.add_argument("--config", nargs="+", default=(), metavar="OVERLAY", help="applied to each, as gpu/h200")
    parser.add_argument("--batch-size", type=int, help="B  [default: the configuration's]")
    parser.add_argument("--tokens", type=int, default=LONGEST[0], help="L")
    parser.add_argument("--frames", type=int, default=LONGEST[1], help="T")
    parser.add_argument("--out", type=Path, default=Path("build/hlo"))
    parser.add_argument("--kernels", action="store_true", help="compile, and count loops and kernels")
    return parser.parse_args()


def export(size: str, options: argparse.Namespace) -> dict[str, object]:
    """Write the files of one size; returns its row of the table."""
    config = load_config(size, overlays=options.config)
    clips = options.batch_size or config.training.batch_size
    made = build_step(config, clips=clips, shape=(options.tokens, options.frames))
    step = made.whole()
    hlo = step.experimental_get_compiler_ir(*made.batch)(stage="hlo_serialized")
    (options.out / f"{size}.hlo").write_bytes(hlo)
    np.savez_compressed(options.out / f"{size}.npz", **{f"arg{i}": part for i, part in enumerate(made.batch)})
    row: dict[str, object] = {
        "size": size, "parameters": made.steps.model.parameter_count, "clips": clips, "tokens": options.tokens,
        "frames": options.frames, "useful_frames": made.useful_frames, "hlo_mb": f"{len(hlo) / 1e6:.1f}",
    }  # fmt: skip
    if options.kernels:
        counted = count_kernels(step.experimental_get_compiler_ir(*made.batch)(stage="optimized_hlo"))
        row["loops"] = ", ".join(f"{loop.turns} x {loop.kernels}" for loop in counted.loops)
        row["kernels"] = counted.launched
    described = row | {"mixed_precision": config.training.mixed_precision, "training": config.training.model_dump()}
    (options.out / f"{size}.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    return row


if __name__ == "__main__":
    main()
