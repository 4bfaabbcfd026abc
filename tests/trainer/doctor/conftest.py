"""What the doctor's checks are tried on."""

import textwrap

import pytest

from xtts.shared.cache.cache_spec import Shard
from xtts.shared.config_files import dump_config, load_config
from xtts.trainer.data.batch_sizes import batch_sizes
from xtts.trainer.doctor.advice import write_overlay
from xtts.trainer.doctor.subject import load_subject


@pytest.fixture(scope="session")
def subject(tiny_cache, micro):
    """The shared cache with the micro settings: healthy."""
    return load_subject(["tiny"], [*micro, "training.validate_every=24"], {}, tiny_cache)


@pytest.fixture(scope="session")
def configured(micro):
    """`configured("a.b=c")`: the micro configuration with changes."""
    return lambda *assignments: load_config("tiny", assignments=[*micro, *assignments])


@pytest.fixture(scope="session")
def only():
    """`only(result)`: the one finding of a check."""

    def the_one(result):
        (finding,) = result[1]
        return finding

    return the_one


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    """`module(source)` writes a user's module into the working folder and gives its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "foreign_" + "".join(c for c in request.node.name if c.isalnum())

    def write(source):
        head = "import numpy as np\nimport tensorflow as tf\n"
        (tmp_path / f"{name}.py").write_text(head + textwrap.dedent(source))
        return name

    return write


@pytest.fixture(scope="session")
def with_clips(subject):
    """`with_clips({frames: (training, validation)}, bytes=...)`: a spec of such buckets, one shard of each split."""

    def change(clips, *, bytes=1 << 20):
        def shards(split, number, records):
            file = f"{split}/bucket-{number:02d}/shard-00000-of-00001.tfrecord"
            return [Shard(file=file, records=records, bytes=bytes, sha256="0" * 64)] if records else []

        buckets = [
            subject.spec.buckets[0].model_copy(
                update={
                    "tokens": frames // 4,
                    "frames": frames,
                    "train": shards("train", number, train),
                    "validation": shards("validation", number, validation),
                }
            )
            for number, (frames, (train, validation)) in enumerate(clips.items())
        ]
        return subject.spec.model_copy(update={"buckets": buckets})

    return change


@pytest.fixture
def advised_config(tmp_path):
    """`advised_config(config, spec, findings)`: the config with the advice applied, as xtts-train accepts it."""

    def merge(config, spec, findings):
        (tmp_path / "config.yaml").write_text(dump_config(config))
        assert write_overlay(tmp_path / "advice.yaml", findings), "no setting is advised"
        merged = load_config(str(tmp_path / "config.yaml"), overlays=[str(tmp_path / "advice.yaml")])
        batch_sizes(spec, merged.training)
        return merged

    return merge
