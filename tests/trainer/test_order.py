import tensorflow as tf

from xtts.trainer.order import BucketOrder, Schedule

ORDER = BucketOrder(seed=3, bucket=1, shard_records=(5, 7, 3, 4), block_shards=2)
CLIPS = {(shard, place) for shard, records in enumerate(ORDER.shard_records) for place in range(records)}


def test_every_epoch_visits_every_clip_once():
    for epoch in range(3):
        places = ORDER.locate(epoch * ORDER.clips, ORDER.clips)
        assert len(places) == 19
        assert set(places) == CLIPS


def test_epochs_and_seeds_differ():
    first, second = ORDER.locate(0, 19), ORDER.locate(19, 19)
    other = BucketOrder(seed=4, bucket=1, shard_records=ORDER.shard_records, block_shards=2).locate(0, 19)
    assert first != second
    assert first != other
    assert first != sorted(first)


def test_a_position_continues_the_stream_wherever_it_is_cut():
    whole = ORDER.locate(0, 57)
    for cut in range(57):
        assert ORDER.locate(cut, 57 - cut) == whole[cut:]


def test_a_block_holds_whole_shards_so_that_resume_reads_one_block():
    block, visited = ORDER.find(19 + 11)
    shards = ORDER.block_shard_numbers(block).numpy()
    assert block // ORDER.blocks == 1
    assert len(shards) <= ORDER.block_shards
    assert visited < sum(ORDER.shard_records[i] for i in shards)


def draw_all(schedule, epochs, consumed):
    """Buckets drawn until `epochs` are over, with the epoch of each."""
    epoch, consumed, drawn = tf.constant(0, tf.int64), list(consumed), []
    while True:
        epoch, bucket = schedule.draw(epoch, tf.constant(consumed, tf.int64))
        if int(epoch) >= epochs:
            return drawn, consumed
        drawn.append((int(epoch), int(bucket)))
        consumed[int(bucket)] += schedule.batches[int(bucket)]


def test_schedule_leaves_less_than_a_batch_behind_and_picks_it_up_in_the_next_epoch():
    schedule = Schedule(seed=0, clips=(10, 7, 3), batches=(4, 4, 4))
    for epochs in (1, 2, 5):
        _, consumed = draw_all(schedule, epochs, [0, 0, 0])
        for done, clips in zip(consumed, schedule.clips, strict=True):
            assert 0 <= epochs * clips - done < 4


def test_schedule_mixes_buckets():
    drawn, _ = draw_all(Schedule(seed=0, clips=(400, 400), batches=(4, 4)), 1, [0, 0])
    buckets = [bucket for _, bucket in drawn]
    assert buckets.count(0) == buckets.count(1) == 100
    assert 35 < sum(buckets[:100]) < 65


def test_schedule_depends_on_the_position_alone():
    schedule = Schedule(seed=0, clips=(40, 24), batches=(4, 4))
    whole, _ = draw_all(schedule, 2, [0, 0])
    consumed = [0, 0]
    for _, bucket in whole[:7]:
        consumed[bucket] += 4
    rest, _ = draw_all(schedule, 2, consumed)
    assert rest == whole[7:]


def test_another_batch_size_continues_at_the_same_clips():
    small = Schedule(seed=0, clips=(40, 24), batches=(2, 2))
    _, consumed = draw_all(small, 1, [16, 8])
    assert consumed == [40, 24]
