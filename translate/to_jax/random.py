"""Lowerings of random numbers, drawing, and the selection of boxes."""

from __future__ import annotations

import secrets

import jax
import jax.numpy as jnp
import numpy as np

from migraphx.types import dtype_of

from .numeric import FLOAT32, is_int
from .registry import NeedsHost, is_known, lower


@lower("random_seed", host=True, each_run=True)
def random_seed(op, xp):
    dtype = dtype_of(op.dtype)
    if not is_int(dtype):
        return np.asarray(secrets.randbits(32)).astype(dtype)
    return np.asarray(secrets.randbits(64), np.uint64).astype(dtype)


# -- numbers of the Mersenne Twister -------------------------------------------------------------


@lower("random_uniform", host=True)
def random_uniform(op, xp, seed, like):
    """What C++'s std::mt19937 and distributions of libstdc++ give, in row-major order."""
    words = Words(int(np.asarray(seed).reshape(-1)[0]))
    if like.dtype == bool:
        numbers = words.integers(like.size, 1) != 0
    elif is_int(like.dtype):
        bits = 8 * like.dtype.itemsize - (like.dtype.kind == "i")
        numbers = words.integers(like.size, bits).astype(like.dtype)
    else:
        numbers = words.fractions(like.size).astype(like.dtype)
    return numbers.reshape(like.shape)


class Words:
    """The 32-bit numbers of std::mt19937 with a seed, and what is made of them."""

    def __init__(self, seed: int):
        self.twister = np.random.MT19937()
        self.twister._legacy_seeding(seed & 0xFFFFFFFF)

    def take(self, count: int) -> np.ndarray:
        return self.twister.random_raw(count).astype(np.uint64)

    def fractions(self, count: int) -> np.ndarray:
        """Doubles in [0, 1): the first of two words is the lower half."""
        low, high = self.take(2 * count).reshape(-1, 2).T.astype(np.float64)
        return np.minimum((low + high * 2.0**32) / 2.0**64, np.nextafter(1, 0))

    def integers(self, count: int, bits: int) -> np.ndarray:
        """Whole numbers of so many bits: the highest ones of a word, of two beyond 32."""
        if bits <= 32:
            return self.take(count) >> np.uint64(32 - bits)
        high, low = self.take(2 * count).reshape(-1, 2).T
        return ((high >> np.uint64(64 - bits)) << np.uint64(32)) | low


@lower("onnx::random")
def onnx_random(op, xp, seed, like):
    """NumPy's numbers for a known seed; else JAX's, which are made on the device."""
    dims, dtype = like.shape, like.dtype
    if is_known(seed):
        state = np.random.RandomState(int(np.asarray(seed).reshape(-1)[0]))
        numbers = state.randn(*dims) if op.distribution == "normal" else state.rand(*dims)
        numbers = np.asarray(numbers).astype(dtype)
    else:
        numbers = jax_numbers(op.distribution, seed, dims, dtype)
    first, second = np.array(op.first, dtype), np.array(op.second, dtype)
    if op.distribution == "normal":
        return numbers * second + first
    return numbers * (second - first) + first


def jax_numbers(distribution: str, seed, dims, dtype):
    """Standard normal or uniform numbers by the 64 bits of a seed that is traced."""
    bits = seed.reshape(()).astype(np.uint64)
    data = jnp.stack([bits >> 32, bits & 0xFFFFFFFF]).astype(np.uint32)
    key = jax.random.wrap_key_data(data, impl="threefry2x32")
    wide = dtype if dtype == np.float64 else FLOAT32
    draw = jax.random.normal if distribution == "normal" else jax.random.uniform
    return draw(key, dims, wide).astype(dtype)


# -- drawing -------------------------------------------------------------------------------------


@lower("multinomial")
def multinomial(op, xp, sums, numbers):
    """The first class whose running sum exceeds the number times the last sum."""
    wide = sums.dtype if sums.dtype == np.float64 else FLOAT32
    sums = sums.astype(wide)
    wanted = numbers.astype(wide) * sums[:, -1:]
    if xp is np:
        rows = [np.searchsorted(s, w, "right") for s, w in zip(sums, wanted, strict=True)]
        found = np.array(rows).reshape(wanted.shape)
    else:
        found = jax.vmap(lambda s, w: jnp.searchsorted(s, w, side="right"))(sums, wanted)
    return found.astype(dtype_of(op.dtype))


# -- boxes ---------------------------------------------------------------------------------------


@lower("nonmaxsuppression")
def non_max_suppression(op, xp, boxes, scores, most=None, iou=None, score=None):
    """On the host if exactly the selected rows are wanted, else a loop over the best boxes."""
    limits = [None if v is None or v.size == 0 else v.reshape(-1)[0] for v in (most, iou, score)]
    if op.use_dyn_output:
        if not is_known((boxes, scores, *(v for v in limits if v is not None))):
            raise NeedsHost
        return select_on_host(op, boxes, scores, *limits)
    if xp is np:
        found = select_on_host(op, boxes, scores, *limits)
        rows = scores.shape[0] * scores.shape[1] * scores.shape[2]
        return np.concatenate([found, np.zeros((rows - len(found), 3), np.int64)])
    return select_padded(op, boxes, scores, *limits)


def corners(xp, op, boxes):
    """Lower and upper corner and area of each box."""
    if boxes.dtype != np.float64:
        boxes = boxes.astype(FLOAT32)
    first, second = boxes[..., :2], boxes[..., 2:]
    if op.center_point_box:
        half = second / 2
        low, high = first - half, first + half
    else:
        low, high = xp.minimum(first, second), xp.maximum(first, second)
    return low, high, xp.prod(high - low, -1)


def overlap(xp, one, others):
    """Intersection over union of a box with others; 0 where an area is not positive."""
    (low, high, area), (lows, highs, areas) = one, others
    sides = xp.maximum(xp.minimum(high, highs) - xp.maximum(low, lows), 0)
    shared = sides[..., 0] * sides[..., 1]
    union = area + areas - shared
    sound = (area > 0) & (areas > 0) & (union > 0)
    return xp.where(sound, shared / xp.where(sound, union, 1), 0)


def select_on_host(op, boxes, scores, most, iou, score) -> np.ndarray:
    """Exactly the selected rows."""
    rows = [np.zeros((0, 3), np.int64)]
    most = 0 if most is None else int(most)
    iou = 0.0 if iou is None else iou
    for batch in range(len(boxes) if most > 0 else 0):
        low, high, area = corners(np, op, boxes[batch])
        for label, values in enumerate(scores[batch]):
            order = np.argsort(-values, kind="stable")
            if score is not None:
                order = order[values[order] > score]
            chosen = []
            while len(order) and len(chosen) < most:
                best, order = order[0], order[1:]
                chosen.append(best)
                one = (low[best], high[best], area[best])
                order = order[~(overlap(np, one, (low[order], high[order], area[order])) > iou)]
            rows.append(np.array([[batch, label, k] for k in chosen], np.int64).reshape(-1, 3))
    return np.concatenate(rows)


def select_padded(op, boxes, scores, most, iou, score):
    """The selected rows, then zeros up to the number of all boxes in all classes."""
    batches, classes, count = scores.shape
    if not (batches and classes and count) or most is None:
        return jnp.zeros((batches * classes * count, 3), np.int64)
    most = jnp.clip(jnp.asarray(most).astype(np.int64), 0, count)
    iou = 0 if iou is None else iou
    low, high, area = corners(jnp, op, boxes)
    lowest = jnp.array(-np.inf, scores.dtype)
    alive = scores == scores if score is None else scores > score

    def best_of(scores, alive, low, high, area):
        best = jnp.argmax(jnp.where(alive, scores, lowest))
        # A score of minus infinity is as low as the mark of what is gone.
        best = jnp.where(alive[best], best, jnp.argmax(alive))
        one = (low[best], high[best], area[best])
        left = alive & ~(overlap(jnp, one, (low, high, area)) > iou)
        return jnp.where(alive[best], best, -1), left.at[best].set(False)

    by_class = jax.vmap(best_of, (0, 0, None, None, None))
    by_batch = jax.vmap(by_class)

    def more(state):
        k, alive, _ = state
        return (k < most) & alive.any()

    def pick(state):
        k, alive, chosen = state
        best, alive = by_batch(scores, alive, low, high, area)
        return k + 1, alive, chosen.at[:, :, k].set(best)

    start = (jnp.int64(0), alive, jnp.full(scores.shape, -1, np.int64))
    _, _, chosen = jax.lax.while_loop(more, pick, start)
    return packed_rows(chosen)


def packed_rows(chosen):
    """[batch, class, box] of the chosen boxes (-1: none) in front, zeros behind."""
    batch, label, _ = jnp.indices(chosen.shape)
    taken = chosen.reshape(-1) >= 0
    rows = jnp.stack([batch.reshape(-1), label.reshape(-1), chosen.reshape(-1)], 1)
    places = jnp.where(taken, jnp.cumsum(taken) - 1, len(taken))
    return jnp.zeros(rows.shape, np.int64).at[places].set(rows.astype(np.int64), mode="drop")
