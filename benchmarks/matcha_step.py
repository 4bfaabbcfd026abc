"""Time of a training step of Matcha-TTS' own code, to compare with `step_cost.py --sizes normal` on the same machine.

    python -m pip install matcha-tts    # in an environment of its own: it wants other versions, and PyTorch
    PYTHONPATH=benchmarks python benchmarks/matcha_step.py [--batch-sizes 2 8] [--steps 5] [--out FILE.json]

The model that it trains on LJSpeech, its losses, gradient clipping and Adam, eager as it trains, in float32 on the
CPU. All clips have the same length, as in `step_cost.py`: every frame is useful. The median of the steps counts, after
two that do not. Nothing of Lockstep is imported.
"""

import argparse
import importlib
import os
import statistics
import time
from pathlib import Path
from typing import Any

from reporting.report import machine, section_lines, write_json

TOKENS, FRAMES, MEL_CHANNELS, SYMBOLS = 192, 872, 80, 178
UNTIMED = 2
ENCODER = {
    "encoder_type": "RoPE Encoder",
    "encoder_params": {
        "n_feats": MEL_CHANNELS, "n_channels": 192, "filter_channels": 768, "filter_channels_dp": 256, "n_heads": 2,
        "n_layers": 6, "kernel_size": 3, "p_dropout": 0.1, "spk_emb_dim": 64, "n_spks": 1, "prenet": True,
    },
    "duration_predictor_params": {"filter_channels_dp": 256, "kernel_size": 3, "p_dropout": 0.1},
}  # fmt: skip
DECODER = {
    "channels": [256, 256], "dropout": 0.05, "attention_head_dim": 64, "n_blocks": 1, "num_mid_blocks": 2,
    "num_heads": 2, "act_fn": "snakebeta",
}  # fmt: skip
FLOW = {"name": "CFM", "solver": "euler", "sigma_min": 1e-4}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--steps", type=int, default=5, help="timed ones, for each batch size")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    options = parser.parse_args()
    torch = importlib.import_module("torch")
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(0)
    model = make_model()
    figures: dict[str, object] = {"title": "a training step of Matcha-TTS", "tokens": TOKENS, "frames": FRAMES}
    figures["parameters"] = sum(weight.numel() for weight in model.parameters())
    figures["table"] = [row(torch, model, size, options.steps) for size in options.batch_sizes]
    figures |= machine(["matcha-tts", "torch"])
    print("\n".join(section_lines("matcha", figures)))
    if options.out:
        write_json(options.out, figures)


def make_model() -> Any:  # noqa: ANN401 - a class of a package that only this program uses
    """The model that Matcha-TTS trains on LJSpeech: 18.2 million parameters."""
    settings = importlib.import_module("omegaconf").OmegaConf.create
    return importlib.import_module("matcha.models.matcha_tts").MatchaTTS(
        n_vocab=SYMBOLS, n_spks=1, spk_emb_dim=64, n_feats=MEL_CHANNELS, encoder=settings(ENCODER), decoder=DECODER,
        cfm=settings(FLOW), data_statistics={"mel_mean": -5.5, "mel_std": 2.1}, out_size=None,
    )  # fmt: skip


def row(torch: Any, model: Any, batch_size: int, steps: int) -> dict[str, object]:  # noqa: ANN401
    """Median seconds of a step, and useful frames per second."""
    tokens, mel = torch.randint(1, SYMBOLS, (batch_size, TOKENS)), torch.randn(batch_size, MEL_CHANNELS, FRAMES)
    lengths = torch.full((batch_size,), TOKENS), torch.full((batch_size,), FRAMES)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    model.train()
    seconds = []
    for _ in range(UNTIMED + steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        duration, prior, flow, *_ = model(tokens, lengths[0], mel, lengths[1], out_size=None)
        (duration + prior + flow).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        seconds.append(time.perf_counter() - began)
    step = statistics.median(seconds[UNTIMED:])
    return {"batch size": batch_size, "step seconds": step, "useful frames per second": batch_size * FRAMES / step}


if __name__ == "__main__":
    main()
