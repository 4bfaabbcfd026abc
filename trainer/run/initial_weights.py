"""`--init-from`: the weights of another run, whose tables may hold other symbols, speakers and languages."""

from collections.abc import Mapping, Sequence

import numpy as np

from xtts.trainer.evaluation.voice_description import Voice


def _tables(voice: Voice) -> dict[str, Sequence[str]]:
    """The names of an embedding's rows, by the name of the layer."""
    return {"tokens": voice.tokenizer.symbols, "speakers": voice.speakers, "languages": voice.languages}


def take_rows(
    arrays: Mapping[str, np.ndarray], initial: Mapping[str, np.ndarray], before: Voice, now: Voice
) -> dict[str, np.ndarray]:
    """The averages of a checkpoint, with the rows of its tables moved to where `now` has their names.

    arrays: of the checkpoint, `averages/PATH`; initial: the new model's own values by PATH, which names that the
    checkpoint does not know keep.
    """
    taken = dict(arrays)
    rows_before, rows_now = _tables(before), _tables(now)
    for path, value in initial.items():
        layer, _, leaf = path.rpartition("/")
        kind = layer.rpartition("/")[2]
        if leaf != "embeddings" or kind not in rows_now:
            continue
        stored, places = arrays.get(f"averages/{path}"), {name: i for i, name in enumerate(rows_before[kind])}
        table = value.copy()
        if stored is not None and stored.shape == (len(places), value.shape[1]):
            for row, name in enumerate(rows_now[kind]):
                if name in places:
                    table[row] = stored[places[name]]
        taken[f"averages/{path}"] = table
    return taken


def shared_names(before: Voice, now: Voice) -> str:
    """What both runs have, as `38 of 51 symbols, 0 of 2 speakers`; empty where they have the same."""
    told = []
    for kind, names in _tables(now).items():
        known = set(_tables(before)[kind])
        if list(names) != list(_tables(before)[kind]):
            what = "symbols" if kind == "tokens" else kind
            told.append(f"{sum(name in known for name in names)} of {len(names)} {what}")
    return ", ".join(told)
