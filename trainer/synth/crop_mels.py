"""`xtts-synth mels`: a cache of crops with the mels of a voice in time with its recordings, to train its vocoder on.

A vocoder of recordings' mels has never met the faults of a model. Here the flow starts between noise and the recorded
mel, with the text aligned to the recording, so that the mel has the model's detail at the recording's times.
"""

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import tensorflow as tf

from xtts.shared.audio.mel_profiles import EDGE_FRAMES
from xtts.shared.cache.cache_spec import (
    INDEX_FILE,
    SPEC_FILE,
    SPLITS,
    CacheSpec,
    Shard,
    load_spec,
    spec_bytes,
    with_digest,
    without_digest,
)
from xtts.shared.cache.clip_index import MOVED_PITCH, clip_of_crop, read_index, table_of
from xtts.shared.cache.records import Record, frame
from xtts.shared.cache.shard_reader import read_shard
from xtts.shared.errors import LockstepError
from xtts.shared.system.folder_lock import ReadLock
from xtts.trainer.data.batch import Batch, make_signature
from xtts.trainer.evaluation.evaluation_clips import read_clips
from xtts.trainer.model.acoustic_model import SIGMA_MIN, TimedTokens, conditioning_of
from xtts.trainer.model.layers import length_mask
from xtts.trainer.model.random_numbers import random_normal
from xtts.trainer.reporting.spoken_samples import batch_of
from xtts.trainer.synth.output_files import new_folder
from xtts.trainer.synth.tensorflow_synthesizer import load_model
from xtts.trainer.synth.voice_source import Source, open_source
from xtts.trainer.voice.synthesis_options import SynthesisOptions

START_TIME = 0.6
"""Flow time at which the recorded mel is left to the model: 0 is noise, 1 the recording."""
_BATCH = 8


def write_mels(checkpoint: Path, cache: Path, crops: Path, out: Path, options: SynthesisOptions) -> None:
    """Write a copy of `crops`, a cache of `audio.crop_frames`, whose mels are those of the voice.

    cache: of the voice, with the clips that were cut; a crop of another clip or pitch keeps its mel, and is counted.

    Raises:
        LockstepError: OUT is already there or cannot be written, the caches do not fit, or the voice is that of a
            recording.
    """
    source = open_source(checkpoint)
    if source.takes_recording:
        raise LockstepError(str(checkpoint), found="a voice from a recording", expected="one with a speaker table")
    with ReadLock(crops), ReadLock(cache), new_folder(out) as unfinished:
        spec = load_spec(crops)
        if not spec.holds_crops or spec.mel_profile != source.voice.mel_profile:
            found = f"{'crops' if spec.holds_crops else 'whole clips'} of profile {spec.mel_profile.name}"
            expected = f"crops of profile {source.voice.profile}"
            raise LockstepError(str(crops), found=found, expected=expected, fix="build with --config vocoder")
        mels = voice_mels(source, cache, options)
        starts = {row.clip.id: row.clip.start or 0.0 for row in read_index(cache / load_spec(cache).index_file)}
        writer = _CropWriter(crops, spec, mels, starts, unfinished)
        writer.write()
    click.echo(f"{out}: {writer.changed} crops with mels of {source.checkpoint}, {writer.kept} as they were")


def voice_mels(source: Source, cache: Path, options: SynthesisOptions) -> dict[str, np.ndarray]:
    """The voice's mel of every clip of its cache by id, in time with the recording: float16[T, M]."""
    model, spec, mels = load_model(source), load_spec(cache), dict[str, np.ndarray]()
    schedule = (1.0 - START_TIME) * tf.constant(options.schedule) + tf.constant([START_TIME, 0.0, 0.0])

    def redraw(number: tf.Tensor, *parts: tf.Tensor) -> tf.Tensor:
        batch = Batch(*parts)
        durations, conditioning = model.align_clips(batch, None).durations, conditioning_of(batch)
        target = model.normalise(batch.mel, length_mask(batch.mel_length, batch.mel.shape[1]))
        valid = length_mask(batch.token_length, batch.tokens.shape[1])
        timed = TimedTokens(*model.encode(batch.tokens, valid, conditioning, None), durations)
        seed = tf.stack([tf.constant(options.seed), number])
        noise = random_normal(seed, tf.range(_BATCH), *batch.mel.shape[1:]) * options.temperature
        start = (1.0 - (1.0 - SIGMA_MIN) * START_TIME) * noise + START_TIME * target
        return model.speak_tokens(timed, batch.mel_length, start, schedule=schedule, conditioning=conditioning)

    for bucket in spec.buckets:
        signature = make_signature(bucket.tokens, bucket.frames, _BATCH, mel="float32", channels=spec.mel_channels)
        number = tf.TensorSpec([], tf.int32)
        compiled = tf.function(redraw, input_signature=[number, *signature], jit_compile=True, autograph=False)
        for shard in (*bucket.train, *bucket.validation):
            clips = read_clips(cache, source.voice, lambda _: [(shard, None)])  # noqa: B023 - called at once
            for chunk in (clips[i : i + _BATCH] for i in range(0, len(clips), _BATCH)):
                padded = [*chunk, *[chunk[-1]] * (_BATCH - len(chunk))]
                drawn = compiled(tf.constant(len(mels)), *batch_of(padded, signature, spec.mel_profile.silence))
                for clip, mel in zip(chunk, drawn.numpy(), strict=False):
                    mels[clip.clip_id] = mel[: len(clip.mel)].astype(np.float16)
    return mels


class _CropWriter:
    """Writes a cache of crops again, with other mels."""

    def __init__(
        self, crops: Path, spec: CacheSpec, mels: Mapping[str, np.ndarray], starts: Mapping[str, float], out: Path
    ) -> None:
        """mels: of whole clips, [T, M], starts: seconds at which these begin in their recordings; both by id."""
        self._crops, self._spec, self._mels, self._starts, self._out = crops, spec, mels, starts, out
        self._index = read_index(crops / spec.index_file)
        self._rows = {row.clip.id: row for row in self._index if row.is_kept}
        self.changed, self.kept = 0, 0
        """Crops with another mel, and crops without one."""

    def write(self) -> None:
        """Write all files; `LockstepError` if no crop has another mel."""
        import pyarrow.parquet as pq

        buckets = [
            bucket.model_copy(update={
                split: [self._write_shard(shard) for shard in bucket.shards(split)] for split in SPLITS
            })
            for bucket in self._spec.buckets
        ]  # fmt: skip
        if not self.changed:
            fix = "build both caches from the same --data"
            raise LockstepError(str(self._crops), found="no crop of a clip of the voice's cache", fix=fix)
        shutil.copyfile(self._crops / self._spec.tokenizer_file, self._out / self._spec.tokenizer_file)
        index = self._out / INDEX_FILE
        rows = [self._rows[row.clip.id] if row.is_kept else row for row in self._index]
        pq.write_table(table_of(rows), index, compression="zstd")
        digest = hashlib.sha256(index.read_bytes()).hexdigest()
        file = with_digest(INDEX_FILE, digest)
        index.rename(self._out / file)
        spec = self._spec.model_copy(update={"buckets": buckets, "index_sha256": digest, "index_file": file})
        (self._out / SPEC_FILE).write_bytes(spec_bytes(spec))

    def _write_shard(self, shard: Shard) -> Shard:
        framed = list[bytes]()
        for stored in read_shard(self._crops / shard.file, self._spec):
            record = self._with_other_mel(stored)
            payload, values = record.to_example(), record.unpadded_mel.astype(np.float64)
            self._rows[record.clip_id] = replace(
                self._rows[record.clip_id], record_sha256=hashlib.sha256(payload).hexdigest(),
                mel_sum=float(values.sum()), mel_square_sum=float(np.square(values).sum()),
            )  # fmt: skip
            framed.append(frame(payload))
        data = b"".join(framed)
        digest = hashlib.sha256(data).hexdigest()
        file = with_digest(without_digest(shard.file), digest)
        (self._out / file).parent.mkdir(parents=True, exist_ok=True)
        (self._out / file).write_bytes(data)
        return shard.model_copy(update={"file": file, "sha256": digest})

    def _with_other_mel(self, record: Record) -> Record:
        name, first, row = clip_of_crop(record.clip_id), EDGE_FRAMES, self._rows[record.clip_id]
        if row.clip.start is not None:
            first += round((row.clip.start - self._starts.get(name, 0.0)) / self._spec.mel_profile.seconds(1))
        mel = self._mels.get(name, record.mel[:0])[first : first + record.mel_length]
        if len(mel) < record.mel_length or MOVED_PITCH in row.notes:
            self.kept += 1
            return record
        self.changed += 1
        padded = record.mel.copy()
        padded[: record.mel_length] = mel
        return replace(record, mel=padded)
