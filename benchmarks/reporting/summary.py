"""The rows of the summary table: each a ratio of two measurements of the same run, with its target."""

from collections.abc import Iterator
from typing import Any

Row = dict[str, object]
PIPELINE_TARGETS = {"tf.numpy_function": "6x", "from_generator": "", "torch DataLoader": "3x"}
MEMCPY_TARGET = 6
"""At most: copies by the kernel, TFRecord, parsing and batching, and the checksum of each record."""


def summarise(figures: dict[str, Any]) -> list[Row]:
    """Rows of all benchmarks in `figures`, stage 1 first."""
    readers = {
        "precompute": _precompute, "rebuild": _rebuild, "training": _training, "step_cost": _step_cost,
        "speech": _speech, "voices": _voices, "overtrain": _overtrain,
    }  # fmt: skip
    return [row for name, read in readers.items() if name in figures for row in read(figures[name])]


def _row(what: str, ratio: str, target: str, figures: str) -> Row:
    return {"what": what, "ratio": ratio, "target": target, "measured": figures}


def _precompute(found: dict[str, Any]) -> Iterator[Row]:
    contestants = found["contestants"]
    ours = contestants["lockstep"]["clips_per_second"]
    others = {name: row for name, row in contestants.items() if name not in ("lockstep", "floor")}
    fastest = min(others, key=lambda name: others[name]["seconds"]) if others else None
    for name, row in others.items():
        target = "2x" if name == fastest else ""
        rates = f"{ours:,.0f} and {row['clips_per_second']:,.0f} clips/s"
        yield _row(f"features: the whole cache against {name} alone", f"{row['times_lockstep']:.2f}x", target, rates)
    share, floor = found["by_wall"]["share_of_floor"], contestants["floor"]["clips_per_second"]
    yield _row(
        "features: share of the floor (bare decode, FFT, filterbank, write)",
        f"{100 * share:.0f}%", "70%", f"{ours:,.0f} and {floor:,.0f} clips/s",
    )  # fmt: skip


def _rebuild(found: dict[str, Any]) -> Iterator[Row]:
    (fresh, first), *later = ((name, found["seconds"][name]) for name in found["told"])
    for name, seconds in later:
        what = f"features of {found['clips']:,} clips: {name}, against {fresh}"
        yield _row(what, f"{first / seconds:.0f}x", "", f"{seconds:.1f} and {first:.1f} s")


def _training(found: dict[str, Any]) -> Iterator[Row]:
    readers = {"a": _dynamic, "b": _spread, "c": _pipelines, "d": _wait, "e": _shapes, "f": _start}
    for name, read in readers.items():
        if name in found["sections"]:
            yield from read(found["sections"][name])


def _dynamic(section: dict[str, Any]) -> Iterator[Row]:
    slow, fast = section["table"][:2]
    what = f"step: locked against compiled for every new shape, {slow['batches']} batches of {slow['traces']} shapes"
    measured = f"{fast['mean_seconds']:.3f} and {slow['mean_seconds']:.1f} s a step"
    yield _row(what, f"{section['times_faster']:.0f}x", f"{section['target']}x", measured)


def _spread(section: dict[str, Any]) -> Iterator[Row]:
    within = section["std_over_mean_within_buckets"]
    measured = f"{100 * section['std_over_mean']:.1f}% over all shapes"
    yield _row("step: std/mean within a shape", f"{100 * within:.1f}%", "", measured)


def _pipelines(section: dict[str, Any]) -> Iterator[Row]:
    ours, own = section["examples_per_second"], section["table"][0]["cpu_microseconds_an_example"]
    for row in section["table"]:
        name = row["pipeline"]
        if name in PIPELINE_TARGETS:
            rates = f"{ours:,.0f} and {row['examples_per_second']:,.0f} clips/s"
            if spent := row["cpu_microseconds_an_example"]:
                rates += f"; {own:.0f} and {spent:.0f} us of processor time a clip"
            ratio = f"{row['lockstep_is_times_faster']:.1f}x"
            yield _row(f"input pipeline alone against {name}", ratio, PIPELINE_TARGETS[name], rates)
    if "times_memcpy" in section:
        copy = section["memcpy_microseconds_an_example"]
        yield _row(
            "input pipeline alone: processor time of a clip against one memcpy of its bytes",
            f"{section['times_memcpy']:.1f}x", f"at most {MEMCPY_TARGET}x", f"{own:.0f} and {copy:.1f} us",
        )  # fmt: skip


def _wait(section: dict[str, Any]) -> Iterator[Row]:
    share, target = f"{100 * section['input_wait_share']:.2f}%", f"below {section['target']:.0%}"
    yield _row("input wait, share of a training run", share, target, "")


def _shapes(section: dict[str, Any]) -> Iterator[Row]:
    one, *_, most = section["table"]
    rates = f"{most['useful_frames_per_second']:,.0f} and {one['useful_frames_per_second']:,.0f} frames/s"
    what = f"useful frames/s: {most['shapes']} shapes against one, lengths of LJSpeech"
    target = f"{section['target_at_8_shapes']}x" if most["shapes"] == 8 else ""  # what fewer shapes cannot reach
    yield _row(what, f"{most['times_one_shape']:.2f}x", target, rates)


def _start(section: dict[str, Any]) -> Iterator[Row]:
    cold, warm = (row["seconds"] for row in section["table"])
    yield _row("start to first step: warm against cold", f"{cold / warm:.1f}x", "", f"{warm:.0f} and {cold:.0f} s")


def _step_cost(found: dict[str, Any]) -> Iterator[Row]:
    for row in found["table"]:
        shares = [100 * row[f"share_of_{piece}"] for piece in ("alignment_search", "optimizer")]
        rate = f"{row['step_ms'] / 1000:.2f} s a step, {row['useful_frames_per_second']:,} frames/s"
        ratio = f"{shares[0]:.1f}% and {shares[1]:.1f}%"
        yield _row(f"step of {row['size']}: shares of alignment search and optimizer", ratio, "", rate)


def _speech(found: dict[str, Any]) -> Iterator[Row]:
    spoken = found["systems"]["synthesised"]
    measured = f"{found['sentences']} sentences, Fréchet distance {spoken['frechet_distance']:.2f}"
    yield _row("speech: relative MCD of held-out sentences", f"{spoken['relative_mcd']:.3f}", "", measured)


def _voices(found: dict[str, Any]) -> Iterator[Row]:
    whose = {"trained": "the voice of the reference", "held out": "the reference's, a voice never heard in training"}
    for kind, voice in whose.items():
        if rows := [row for row in found["table"] if row.get("kind", "trained") == kind]:
            spoken, share = found["sentences"] * len(rows), sum(row["right_voice"] for row in rows) / len(rows)
            measured = f"{share * spoken:.0f} of {spoken}; by chance {1 / len(found['table']):.0%}"
            yield _row(f"voice latents: utterances nearest to {voice}", f"{share:.0%}", "", measured)


def _overtrain(found: dict[str, Any]) -> Iterator[Row]:
    wrong = found["character_error_percent"]
    what = f"{found['clips']} real clips over-trained: characters heard wrong, beyond the vocoded recordings"
    nearest = f"{found['figures']['synthesised']['retrieval_at_1'] * found['clips']:.0f} of {found['clips']} retrieved"
    measured = f"{wrong['synthesised']:.1f}% and {wrong['vocoded recording']:.1f}%; {nearest}"
    yield _row(what, f"{found['points_beyond_vocoded']:+.1f} points", "15 points", measured)
