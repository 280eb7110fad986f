"""Selection of boxes by score and overlap, of TensorFlow."""

from __future__ import annotations

import numpy as np

from migraphx.errors import Error
from migraphx.types import type_t

from .registry import tf_op
from .shared import Const, clip_between, where_common

LEAST = float(np.finfo(np.float32).min)  # the score of what is not selected


def selected(m, boxes, scores, most, overlap, score=None, exact=True):
    """Indices of the boxes kept, best first, int32; unless `exact`, 0 behind the last one."""
    batch = [m.add("unsqueeze", boxes, axes=[0]), m.add("unsqueeze", scores, axes=[0, 1])]
    limits = [m.convert(most, type_t.int64_type), m.convert(overlap, type_t.float_type)]
    if score is not None:
        limits.append(m.convert(score, type_t.float_type))
    limits = [m.shaped(v, [1]) for v in limits]
    rows = m.add("nonmaxsuppression", *batch, *limits, use_dyn_output=exact)
    column = m.add("slice", rows, axes=[1], starts=[2], ends=[3])
    return m.convert(m.add("squeeze", column, axes=[1]), type_t.int32_type)


def count_of(m, indices):
    """How many entries a vector has, int32, rank 0."""
    sizes = m.add("dimensions_of", indices, start=0, end=1)
    return m.convert(m.add("squeeze", sizes, axes=[0]), type_t.int32_type)


def filled_up(m, boxes, scores, most, overlap, score):
    """As many indices as may be selected, zeros behind the last, and how many are."""
    count = int(m.known(most, "max_output_size").reshape(()))
    valid = count_of(m, selected(m, boxes, scores, most, overlap, score))
    indices = selected(m, boxes, scores, most, overlap, score, exact=False)
    have = m.static_dims(indices)[0]
    if have > count:
        indices = m.add("slice", indices, axes=[0], starts=[0], ends=[count])
    elif have < count:
        indices = m.add("pad", indices, pads=[0, count - have])
    return indices, valid


@tf_op("NonMaxSuppression")
def nms_1(m, boxes, scores, most, *, iou_threshold=0.5):
    return selected(m, boxes, scores, most, m.lit(iou_threshold, type_t.float_type))


@tf_op("NonMaxSuppressionV2", "NonMaxSuppressionV3")
def nms_3(m, boxes, scores, most, overlap, score=None):
    return selected(m, boxes, scores, most, overlap, score)


@tf_op("NonMaxSuppressionV4", outputs=("selected_indices", "valid_outputs"))
def nms_4(m, boxes, scores, most, overlap, score, *, pad_to_max_output_size=False):
    if pad_to_max_output_size:
        return filled_up(m, boxes, scores, most, overlap, score)
    indices = selected(m, boxes, scores, most, overlap, score)
    return indices, count_of(m, indices)


@tf_op("NonMaxSuppressionV5", outputs=("selected_indices", "selected_scores", "valid_outputs"))
def nms_5(m, boxes, scores, most, overlap, score, sigma: Const, *, pad_to_max_output_size=False):
    """Without the softening of scores, that is for a sigma of 0."""
    if float(sigma.reshape(())):
        raise Error(f"soft_nms_sigma is {float(sigma.reshape(()))}; only 0 is supported")
    if not pad_to_max_output_size:
        indices = selected(m, boxes, scores, most, overlap, score)
        return indices, m.add("gather", scores, indices, axis=0), count_of(m, indices)
    indices, valid = filled_up(m, boxes, scores, most, overlap, score)
    found = m.add("gather", scores, indices, axis=0)
    places = m.lit(np.arange(m.static_dims(indices)[0], dtype=np.int32))
    inside = m.compare("less", places, valid)
    return indices, where_common(m, inside, found, m.lit(0, found)), valid


# -- all images and classes at once ----------------------------------------------------------------

COMBINED = ("nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections")


@tf_op("CombinedNonMaxSuppression", outputs=COMBINED)
def combined(
    m, boxes, scores, per_class: Const, total: Const, overlap, score, *, pad_per_class=False,
    clip_boxes=True,
):  # fmt: skip
    """Boxes are selected in each class, then the best of all classes; zeros behind the last.

    Boxes [image, box, 1 or class, 4], scores [image, box, class].
    """
    images, count, kinds, _ = m.static_dims(boxes)
    classes = m.static_dims(scores)[2]
    by_class = m.permuted(scores, [0, 2, 1])
    if kinds == 1:
        places, values = m.shaped(boxes, [images, count, 4]), by_class
    else:  # each class of an image as an image of its own
        places = m.reshape(m.permuted(boxes, [0, 2, 1, 3]), [images * classes, count, 4])
        values = m.reshape(by_class, [images * classes, 1, count])
    most = int(per_class.reshape(()))
    limits = (m.lit(np.int64([most])), m.shaped(overlap, [1]), m.shaped(score, [1]))
    rows = m.add("nonmaxsuppression", places, values, *limits, use_dyn_output=True)
    nothing = m.broadcast(m.lit(LEAST, values), m.dims(values))
    kept = m.add(
        "scatternd_none", m.add("contiguous", nothing), rows, m.add("gathernd", values, rows)
    )
    wanted = int(total.reshape(()))
    wanted = min(wanted, most * classes) if pad_per_class else wanted
    best, at = best_of(m, m.reshape(kept, [images, classes * count]), wanted)
    valid = m.compare("greater", best, m.lit(LEAST, best))
    number = m.common("div", at, m.lit(count, at))
    place = m.common("sub", at, m.common("mul", number, m.lit(count, at)))
    image = np.broadcast_to(np.arange(images)[:, None], (images, wanted))
    which = [m.lit(image.astype(np.int64)), place, number if kinds > 1 else m.zeros(at, m.dims(at))]
    index = m.add("concat", *(m.add("unsqueeze", w, axes=[2]) for w in which), axis=2)
    found = m.add("gathernd", boxes, index)
    found = clip_between(m, found, 0.0, 1.0) if clip_boxes else found
    found = where_common(m, m.add("unsqueeze", valid, axes=[2]), found, m.lit(0, found))
    sizes = m.add("reduce_sum", m.convert(valid, type_t.int32_type), axes=[1])
    return (
        found,
        where_common(m, valid, best, m.lit(0, best)),
        where_common(m, valid, m.convert(number, m.type(best)), m.lit(0, best)),
        m.add("squeeze", sizes, axes=[1]),
    )


def best_of(m, scores, wanted: int):
    """The best scores of each image and their places, filled up if there are too few."""
    have = m.static_dims(scores)[1]
    if have < wanted:
        scores = m.add("pad", scores, pads=[0, 0, 0, wanted - have], value=LEAST)
    both = m.add("topk", scores, k=wanted, axis=1, largest=True)
    best, at = (m.add("get_tuple_elem", both, index=k) for k in (0, 1))
    at = m.convert(at, type_t.int64_type)
    return best, m.common("min", at, m.lit(have - 1, at))
