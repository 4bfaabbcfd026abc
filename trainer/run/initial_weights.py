"""`--init-from`: weights of another run, whose tables may have other symbols, speakers and languages."""

from collections.abc import Mapping, Sequence

import numpy as np

from xtts.trainer.evaluation.voice_description import Voice


def _tables(voice: Voice) -> dict[str, Sequence[str]]:
    """The row names of each embedding, by layer name."""
    return {"tokens": voice.tokenizer.symbols, "speakers": voice.speakers, "languages": voice.languages}


def take_rows(
    averages: Mapping[str, np.ndarray], initial: Mapping[str, np.ndarray], before: Voice, now: Voice
) -> dict[str, np.ndarray]:
    """The averages of a stored model by weight path, with the rows of its tables reordered to the names in `now`.

    initial: the new model's initial values, kept for names that the stored model does not have.
    """
    taken = dict(averages)
    rows_before, rows_now = _tables(before), _tables(now)
    for path, value in initial.items():
        layer, _, leaf = path.rpartition("/")
        kind = layer.rpartition("/")[2]
        if leaf != "embeddings" or kind not in rows_now:
            continue
        stored, places = averages.get(path), {name: i for i, name in enumerate(rows_before[kind])}
        table = value.copy()
        if stored is not None and stored.shape == (len(places), value.shape[1]):
            for row, name in enumerate(rows_now[kind]):
                if name in places:
                    table[row] = stored[places[name]]
        taken[path] = table
    return taken


def shared_names(before: Voice, now: Voice) -> str:
    """What both runs share, as in `38 of 51 symbols, 0 of 2 speakers`; empty if they share everything."""
    shared = []
    for kind, names in _tables(now).items():
        known = set(_tables(before)[kind])
        if list(names) != list(_tables(before)[kind]):
            what = "symbols" if kind == "tokens" else kind
            shared.append(f"{sum(name in known for name in names)} of {len(names)} {what}")
    return ", ".join(shared)
