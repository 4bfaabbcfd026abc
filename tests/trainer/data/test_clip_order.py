import numpy as np
import pytest
import tensorflow as tf

from xtts.trainer.data.clip_order import BucketOrder, Schedule


def order_of(*records, open_shards=3, block_records=4, seed=3):
    return BucketOrder(seed=seed, bucket=1, shard_records=records, open_shards=open_shards, block_records=block_records)


ORDERS = {
    "several groups": order_of(5, 7, 3, 4),
    "one shard longer than the others": order_of(2, 19, 1),
    "one shard": order_of(9),
    "fewer records than a block": order_of(3, 2, block_records=100),
    "a block of one record": order_of(3, 2, 4, block_records=1),
    "one shard at a time": order_of(5, 7, 3, 4, open_shards=1),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_an_epoch_visits_each_clip_once_wherever_it_is_resumed(order):
    clips = {(shard, record) for shard, records in enumerate(order.shard_records) for record in range(records)}
    assert order.clips == len(clips)
    whole = order.records_from(0, 3 * order.clips)
    for epoch in range(3):
        visited = whole[epoch * order.clips :][: order.clips]
        assert len(visited) == order.clips
        assert set(visited) == clips
    for cut in range(order.clips // 2, 3 * order.clips // 2, 3):
        assert order.records_from(cut, 5) == whole[cut : cut + 5]


def test_a_block_draws_from_all_shards_of_its_group_evenly():
    order = order_of(*[100] * 8, open_shards=4, block_records=50)
    shards = [shard for shard, _ in order.records_from(0, order.clips)]
    for start in range(0, order.clips, 50):
        drawn = np.bincount(shards[start : start + 50])
        assert sorted(drawn[drawn > 0]) == [12, 12, 13, 13]


def test_epochs_seeds_and_blocks_are_shuffled_differently():
    """Were the shards always read from their start, a block would hold the same clips in every epoch."""
    order = order_of(*[100] * 8, open_shards=8, block_records=50)
    epochs = order.records_from(0, 800), order.records_from(800, 800)
    assert epochs[0] != order_of(*[100] * 8, open_shards=8, block_records=50, seed=4).records_from(0, 800)
    first, second = ([epoch[start : start + 50] for start in range(0, 800, 50)] for epoch in epochs)
    assert max(len({*a} & {*b}) for a in first for b in second) < 25
    assert len({tuple(record % 4 for _, record in block) for block in first}) > 4


def draw_all(schedule, epochs, consumed):
    """Buckets drawn until `epochs` are over, with the epoch of each."""
    epoch, consumed, drawn = tf.constant(0, tf.int64), list(consumed), []
    while True:
        epoch, bucket = schedule.draw(epoch, tf.constant(consumed, tf.int64))
        if int(epoch) >= epochs:
            return drawn, consumed
        drawn.append((int(epoch), int(bucket)))
        consumed[int(bucket)] += schedule.batches[int(bucket)]


def test_an_epoch_leaves_less_than_a_batch_to_the_next():
    schedule = Schedule(seed=0, clips=(10, 7, 3), batches=(4, 4, 4))
    for epochs in (1, 3):
        _, consumed = draw_all(schedule, epochs, [0, 0, 0])
        for done, clips in zip(consumed, schedule.clips, strict=True):
            assert 0 <= epochs * clips - done < 4


def test_schedule_mixes_buckets():
    drawn, _ = draw_all(Schedule(seed=0, clips=(160, 160), batches=(4, 4)), 1, [0, 0])
    buckets = [bucket for _, bucket in drawn]
    assert buckets.count(0) == buckets.count(1) == 40
    assert 12 < sum(buckets[:40]) < 28


def test_schedule_depends_on_the_position_alone():
    schedule = Schedule(seed=0, clips=(40, 24), batches=(4, 4))
    whole, _ = draw_all(schedule, 2, [0, 0])
    consumed = [0, 0]
    for _, bucket in whole[:7]:
        consumed[bucket] += 4
    rest, _ = draw_all(schedule, 2, consumed)
    assert rest == whole[7:]
