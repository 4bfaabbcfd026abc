"""Monotonic alignment search inside the graph: the frames of each token of a clip (Glow-TTS, 2005.11129).

Letters: B batch, L tokens, T frames, M mel channels, K frames and N number of blocks. All shapes are static, and
everything compiles into the XLA step; nothing calls the host.
"""

import tensorflow as tf

_UNREACHABLE = -1e30
"""Score of a token that no monotonic path reaches yet; finite, so that sums with it are never NaN."""

BLOCK_FRAMES = 16
"""K: the search goes from block to block in sequence, and through all frames of a block at once."""


def gaussian_scores(mean: tf.Tensor, mel: tf.Tensor) -> tf.Tensor:
    """Log-likelihood of every frame under every token's unit-variance Gaussian, up to a constant per frame.

    mean: float32[B, L, M], mel: float32[B, T, M], both in normalised mel units -> float32[B, L, T].
    """
    # -|x - m|^2 / 2 = x.m - |m|^2 / 2 - |x|^2 / 2. The last term is the same for every token of a frame, so it changes
    # no path; without it the scores take one matmul and no [B, L, T, M] tensor.
    return tf.matmul(mean, mel, transpose_b=True) - 0.5 * tf.reduce_sum(tf.square(mean), axis=-1, keepdims=True)


def search_durations(scores: tf.Tensor, token_length: tf.Tensor, mel_length: tf.Tensor) -> tf.Tensor:
    """Find the frames per token on the monotonic path with the largest summed score (Glow-TTS, algorithm 1).

    scores: float32[B, L, T], token_length: int32[B], mel_length: int32[B] -> int32[B, L]

    Every token of a clip gets at least one frame, the sum is mel_length, tokens beyond token_length get 0. Values
    outside the lengths are never read. A clip with fewer frames than tokens has no such path: its first mel_length
    tokens get one frame each and the others 0. A padding row (both lengths 0) gets zeros. No gradient flows.
    """
    tokens = scores.shape[1]
    entered = _search_forward(tf.stop_gradient(scores))
    last_token = tf.maximum(tf.minimum(token_length, mel_length) - 1, 0)
    token = _trace_back(entered, last_token, mel_length)
    inside = tf.range(token.shape[0])[:, tf.newaxis] < mel_length
    token = tf.where(inside, token, -1)[..., tf.newaxis]
    return tf.reduce_sum(tf.cast(token == tf.range(tokens), tf.int32), axis=0)


def _search_forward(scores: tf.Tensor) -> tf.Tensor:
    """Find the frames in which the best path to each token enters that token.

    scores: float32[B, L, T] -> int32[N, B, L]. Block n holds the K frames from 1 + n K on (frame 0 is token 0's). Bit k
    is set if the best path that is at the token in frame k of the block entered it in that frame.
    """
    batch, tokens, frames = scores.shape
    blocks = max(-(-(frames - 1) // BLOCK_FRAMES), 1)
    # Frames after the last are never read; zero scores before the first token keep the padding below unreachable.
    padding = [[0, 1 + blocks * BLOCK_FRAMES - frames], [0, 0], [BLOCK_FRAMES - 1, 0]]
    later = tf.pad(tf.transpose(scores, [2, 0, 1])[1:], padding)
    later = tf.reshape(later, [blocks, BLOCK_FRAMES, batch, BLOCK_FRAMES - 1 + tokens])
    left_padding = [[0, 0], [BLOCK_FRAMES, 0]]
    best = tf.where(tf.range(tokens) == 0, scores[:, :, 0], _UNREACHABLE)
    best = tf.pad(best, left_padding, constant_values=_UNREACHABLE)
    history = tf.TensorArray(tf.int32, size=blocks, element_shape=[batch, tokens])

    def advance(
        block: tf.Tensor, best: tf.Tensor, history: tf.TensorArray
    ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray]:
        best, entered = _advance_block(best, later[block])
        return block + 1, tf.pad(best, left_padding, constant_values=_UNREACHABLE), history.write(block, entered)

    # No maximum_iterations: with a second counter XLA cannot infer the trip count.
    *_, history = tf.while_loop(lambda block, *_: block < blocks, advance, (0, best, history))
    return tf.ensure_shape(history.stack(), [blocks, batch, tokens])


def _advance_block(best: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Extend the best paths by the K frames of a block.

    best: float32[B, K + L], summed scores in the frame before the block, after K unreachable entries;
    scores: float32[K, B, K - 1 + L]
    -> (summed scores in the block's last frame float32[B, L], int32[B, L], bit k set if frame k enters the token)
    """
    # Frame by frame, each token would wait for its neighbour: one kernel per frame. Instead each token computes what it
    # needs of its K neighbours: K (K + 1) / 2 sums instead of K, but independent of other tokens, in one kernel. The
    # sums are bit-identical.
    count, _, width = scores.shape
    tokens = width - (count - 1)
    reached = [best[:, count - left : count - left + tokens] for left in range(count + 1)]
    entered = tf.zeros_like(reached[0], tf.int32)
    for frame in range(count):
        entered += tf.where(reached[1] > reached[0], tf.constant(2**frame), 0)
        reached = [
            tf.maximum(reached[left + 1], reached[left])
            + scores[frame, :, count - 1 - left : count - 1 - left + tokens]
            for left in range(count - frame)
        ]
    return reached[0], entered


def _trace_back(entered: tf.Tensor, last_token: tf.Tensor, mel_length: tf.Tensor) -> tf.Tensor:
    """Token of each frame on the path that ends at last_token in frame mel_length - 1, and stays there afterwards.

    entered: int32[N, B, L] of `_search_forward`, last_token, mel_length: int32[B] -> int32[1 + N K, B]
    """
    blocks, batch, tokens = entered.shape
    frames = tf.clip_by_value(mel_length - 1 - BLOCK_FRAMES * tf.range(blocks)[:, tf.newaxis], 0, BLOCK_FRAMES)
    paths = _block_paths(entered & (tf.bitwise.left_shift(1, frames) - 1)[..., tf.newaxis])
    # Tokens entered in one block, in two, in four by the path that ends in each token (pointer doubling).
    levels = [tf.cast(tf.raw_ops.PopulationCount(x=paths), tf.int32)]
    while levels[-1].shape[0] > 1:
        levels[-1] = tf.pad(levels[-1], [[0, levels[-1].shape[0] % 2], [0, 0], [0, 0]])
        later = levels[-1][1::2]
        levels.append(later + _gather_tokens(levels[-1][::2], tf.range(tokens) - later))
    # Back down: the token of the path at the end of each half.
    end = last_token[tf.newaxis, :, tf.newaxis]
    for entered_count in reversed(levels[:-1]):
        end = end[: entered_count.shape[0] // 2]
        middle = end - _gather_tokens(entered_count[1::2], end)
        end = tf.reshape(tf.stack([middle, end], axis=1), [-1, batch, 1])
    path = _gather_tokens(paths, end[:blocks])[:, tf.newaxis, :, 0]
    enters = tf.bitwise.right_shift(path, tf.range(BLOCK_FRAMES)[:, tf.newaxis]) & 1
    return tf.cumsum(tf.pad(tf.reshape(enters, [-1, batch]), [[1, 0], [0, 0]]))


def _block_paths(entered: tf.Tensor) -> tf.Tensor:
    """The path through a block that ends in each token: bit k is set if it enters any token in frame k of the block.

    entered: int32[N, B, L] of `_search_forward` -> int32[N, B, L]
    """
    tokens = entered.shape[-1]
    padded = tf.pad(entered, [[0, 0], [0, 0], [BLOCK_FRAMES, 0]])
    own = [padded[..., BLOCK_FRAMES - left : BLOCK_FRAMES - left + tokens] for left in range(BLOCK_FRAMES)]
    path = [tf.zeros_like(entered)] * (BLOCK_FRAMES + 1)
    for frame in range(BLOCK_FRAMES):
        path = [
            tf.where(own[left] & 2**frame > 0, path[left + 1] | 2**frame, path[left])
            for left in range(BLOCK_FRAMES - frame)
        ]
    return path[0]


def _gather_tokens(table: tf.Tensor, token: tf.Tensor) -> tf.Tensor:
    """Gather the values of a table at tokens: [N, B, L], int32[N, B, n] -> [N, B, n]."""
    blocks, batch, tokens = table.shape
    rows = tf.reshape(tf.range(blocks * batch) * tokens, [blocks, batch, 1])
    return tf.gather(tf.reshape(table, [-1]), rows + token)  # one index, so that it fuses


def duration_path(durations: tf.Tensor, frames: int | tf.Tensor) -> tf.Tensor:
    """One-hot token of each frame, zero for frames after the last token.

    durations: int32[B, L] -> float32[B, T, L], T = frames. `tf.matmul(path, values)` repeats each token's value over
    its frames.
    """
    # Measured inside XLA on 2 cores, the matmul with its gradient, [8, 312 | 80, 208]: 1.5 ms, a gather 0.5 ms; at
    # [16, 872 | 150, 208] 7.9 and 0.9 ms. We keep the matmul: it is about 1% of a step, and its gradient is a matmul.
    # A gather's gradient is a scatter-add, whose order of summation changes from run to run on a GPU.
    ends = tf.cumsum(durations, axis=1)[:, tf.newaxis, :]
    starts = ends - durations[:, tf.newaxis, :]
    frame = tf.range(frames)[:, tf.newaxis]
    return tf.cast((frame >= starts) & (frame < ends), tf.float32)


def token_spans(durations: tf.Tensor, frames: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """First frame and duration of the token of each frame; both 0 for a frame without a token.

    durations: int32[B, L] -> int32[B, T], int32[B, T], T = frames
    """
    # Not by the matmul of the path: a GPU multiplies float32 as TF32, which rounds indices above 2,048. Measured
    # inside XLA on 2 cores, [16, 872 | 150]: 1.2 ms, a masked sum for each of the two 2.2 ms.
    ends = tf.cumsum(durations, axis=1)
    tokens_before = tf.reduce_sum(tf.cast(ends[:, tf.newaxis] <= tf.range(frames)[:, tf.newaxis], tf.int32), axis=2)
    spans = tf.pad(tf.stack([ends - durations, durations], axis=-1), [[0, 0], [0, 1], [0, 0]])
    first, length = tf.unstack(tf.gather(spans, tokens_before, batch_dims=1), axis=-1)
    return first, length


def round_durations(exact: tf.Tensor) -> tf.Tensor:
    """Round durations to whole frames, keeping their running sum within half a frame of the exact one.

    exact: float32[B, L], frames, each 0 or at least 1 -> int32[B, L], at least 1 where `exact` is.
    """
    # Rounding every token up, as Glow-TTS and Matcha-TTS do, adds half a frame per token: 10% at 5 frames a token.
    # The running sum rounded at each token's end has no such drift; steps of at least 1 stay at least 1.
    ends = tf.cast(tf.floor(tf.cumsum(exact, axis=1) + 0.5), tf.int32)
    return ends - tf.pad(ends[:, :-1], [[0, 0], [1, 0]])
