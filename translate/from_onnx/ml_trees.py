"""ONNX-ML: ensembles of decision trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from migraphx.errors import Error
from migraphx.ops.ml import MODES
from migraphx.types import from_dtype, type_t

from .ml import ML, TRANSFORMS, class_labels, picked, post_transform
from .registry import onnx_op

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
LEAF = "LEAF"


@dataclass
class Trees:
    """All nodes of all trees in one list: what each tests and where it leads."""

    roots: np.ndarray
    feature: np.ndarray
    split: np.ndarray
    mode: np.ndarray  # position in MODES
    then: np.ndarray
    other: np.ndarray
    missing: np.ndarray  # NaN counts as true
    leaf: np.ndarray  # number of the leaf, -1 for inner nodes
    members: np.ndarray | None = None

    def depth(self) -> int:
        """The longest way from a root to a leaf; refuses nodes that lead back."""
        level, steps = np.flatnonzero(self.leaf < 0), 0
        while len(level):
            steps += 1
            if steps > len(self.leaf):
                raise Error("its nodes lead back to themselves")
            level = np.unique(np.concatenate([self.then[level], self.other[level]]))
            level = level[self.leaf[level] < 0]
        return steps

    def leaves(self, m, x):
        """The number of the leaf that each sample reaches in each tree."""
        size = len(self.leaf)
        for places in (self.then, self.other):
            if size and not 0 <= places.min() <= places.max() < size:
                raise Error("a node leads to one that does not exist")
        inner = self.leaf < 0
        columns = m.dims(x)[-1] if m.rank(x) else 1
        if isinstance(columns, int) and inner.any() and self.feature[inner].max() >= columns:
            raise Error(f"feature {self.feature[inner].max()} is tested; the input has {columns}")
        inputs = [
            self.roots.astype(np.int32), self.feature.astype(np.int32), self.split,
            self.mode.astype(np.int32), self.then.astype(np.int32), self.other.astype(np.int32),
            self.missing.astype(bool), self.leaf.astype(np.int32),
        ]  # fmt: skip
        if self.members is not None:
            inputs.append(self.members)
        used = sorted({int(k) for k in self.mode[inner]}) or [0]
        return m.add("onnx::forest", x, *inputs, depth=self.depth(), modes=used)


def threshold_type(x, *tensors):
    """The type that features and thresholds are compared in, and scores are summed in."""
    doubles = any(t is not None and np.asarray(t).dtype == np.float64 for t in tensors)
    return np.float64 if doubles or x.shape().type() == type_t.double_type else np.float32


def classic(nodes: dict, kind) -> tuple:
    """Trees of opset 1 and 3, whose nodes are named by tree and number; and those names."""
    modes = nodes["modes"]
    count = len(modes)
    for key, values in nodes.items():
        if values is not None and len(values) not in (0, count):
            raise Error(f"nodes_{key} has {len(values)} entries for {count} nodes")
    names = list(zip(nodes["treeids"], nodes["nodeids"], strict=True))
    place = {name: k for k, name in enumerate(names)}
    if len(place) != count:
        raise Error("two nodes have one name")
    unknown = set(modes) - {*MODES[:6], LEAF}
    if unknown:
        raise Error(f"nodes_modes {', '.join(sorted(unknown))} is not known")
    is_leaf = np.array([mode == LEAF for mode in modes], bool)

    def targets(key):
        found = np.arange(count)
        for k in np.flatnonzero(~is_leaf):
            name = (names[k][0], nodes[key][k])
            if name not in place:
                raise Error(f"node {names[k]} leads to {name}, which does not exist")
            found[k] = place[name]
        return found

    leaf = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)
    seen = {}
    for k, (tree, _) in enumerate(names):
        seen.setdefault(tree, k)
    then, other = targets("truenodeids"), targets("falsenodeids")
    led = set(then[~is_leaf].tolist()) | set(other[~is_leaf].tolist())
    roots = []
    for tree, first in seen.items():  # the node that no other leads to
        free = [k for k, name in enumerate(names) if name[0] == tree and k not in led]
        roots.append(free[0] if free else first)
    missing = nodes["missing_value_tracks_true"]
    if missing is None or not len(missing):
        missing = np.zeros(count, bool)
    trees = Trees(
        np.array(roots, np.int64),
        np.where(is_leaf, 0, np.asarray(nodes["featureids"], np.int64)),
        np.asarray(nodes["values"], kind),
        np.array([0 if mode == LEAF else MODES.index(mode) for mode in modes]),
        then,
        other,
        np.asarray(missing, bool)
        if missing is not None and len(missing)
        else np.zeros(count, bool),
        leaf,
    )
    return trees, {name: int(leaf[k]) for name, k in place.items()}


def weight_table(trees, leaf_of, treeids, nodeids, ids, weights, columns: int, kind) -> tuple:
    """Weights [leaves, columns] and which of them are given."""
    if not len(treeids) == len(nodeids) == len(ids) == len(weights):
        raise Error("the lists of leaf weights differ in length")
    table = np.zeros((int(trees.leaf.max(initial=-1)) + 1, columns), kind)
    given = np.zeros(table.shape, bool)
    for tree, node, column, weight in zip(treeids, nodeids, ids, weights, strict=True):
        row = leaf_of.get((tree, node), -1)
        if row < 0:
            raise Error(f"a weight is given for node {(tree, node)}, which is not a leaf")
        if not 0 <= column < columns:
            raise Error(f"a weight is given for class or target {column} of {columns}")
        table[row, column] += weight
        given[row, column] = True
    return table, given


def score(m, trees, x, table, given, aggregate: str, base):
    """Scores [samples, columns] of the trees, the base values added."""
    if aggregate not in AGGREGATES:
        raise Error(f"aggregate_function {aggregate!r} is none of {', '.join(AGGREGATES)}")
    leaves = trees.leaves(m, x)
    extra = [given] if aggregate in ("MIN", "MAX") else []
    result = m.add("onnx::forest_score", leaves, table, *extra, aggregate=aggregate)
    if base is not None and len(base):
        if len(base) not in (1, table.shape[1]):
            raise Error(f"{len(base)} base values for {table.shape[1]} scores")
        result = m.common("add", result, m.lit(np.asarray(base, table.dtype)))
    return result


def either(values, tensor):
    """An attribute that is a list, or a tensor in another one."""
    return values if tensor is None else np.asarray(tensor).reshape(-1)


def _nodes(given: dict) -> dict:
    keys = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
            "missing_value_tracks_true")  # fmt: skip
    nodes = {key: given[f"nodes_{key}"] for key in keys}
    nodes["values"] = either(nodes["values"], given["nodes_values_as_tensor"])
    return nodes


@onnx_op("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(
    m, x, *, n_targets=1, aggregate_function="SUM", post_transform="NONE",
    base_values=None, base_values_as_tensor=None,
    nodes_treeids=(), nodes_nodeids=(), nodes_featureids=(), nodes_modes=(), nodes_values=(),
    nodes_values_as_tensor=None, nodes_truenodeids=(), nodes_falsenodeids=(),
    nodes_missing_value_tracks_true=None, nodes_hitrates=None, nodes_hitrates_as_tensor=None,
    target_treeids=(), target_nodeids=(), target_ids=(), target_weights=(),
    target_weights_as_tensor=None,
):  # fmt: skip
    kind = threshold_type(x, nodes_values_as_tensor, target_weights_as_tensor)
    trees, leaf_of = classic(_nodes(locals()), kind)
    weights = either(target_weights, target_weights_as_tensor)
    table = weight_table(
        trees, leaf_of, target_treeids, target_nodeids, target_ids, weights, n_targets, kind
    )
    base = either(base_values, base_values_as_tensor)
    scores = score(m, trees, x, *table, aggregate_function, base)
    return _transform(m, m.convert(scores, type_t.float_type), post_transform)


_transform = post_transform


@onnx_op("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(
    m, x, *, classlabels_int64s=None, classlabels_strings=None, post_transform="NONE",
    base_values=None, base_values_as_tensor=None,
    nodes_treeids=(), nodes_nodeids=(), nodes_featureids=(), nodes_modes=(), nodes_values=(),
    nodes_values_as_tensor=None, nodes_truenodeids=(), nodes_falsenodeids=(),
    nodes_missing_value_tracks_true=None, nodes_hitrates=None, nodes_hitrates_as_tensor=None,
    class_treeids=(), class_nodeids=(), class_ids=(), class_weights=(),
    class_weights_as_tensor=None,
):  # fmt: skip
    """The class with the highest score, and all scores."""
    kind = threshold_type(x, nodes_values_as_tensor, class_weights_as_tensor)
    trees, leaf_of = classic(_nodes(locals()), kind)
    labels = class_labels(classlabels_int64s, classlabels_strings)
    weights = either(class_weights, class_weights_as_tensor)
    base = either(base_values, base_values_as_tensor)
    columns = len(labels)
    table = weight_table(
        trees, leaf_of, class_treeids, class_nodeids, class_ids, weights, columns, kind
    )
    alone = columns == 2 and len(set(class_ids)) == 1
    if alone and set(class_ids) == {0}:  # the score of the second class, by custom
        table = tuple(part[:, :1] for part in table)
        base = base[-1:] if base is not None and len(base) == 2 else base
    scores = m.convert(score(m, trees, x, *table, "SUM", base), type_t.float_type)
    if alone:
        return single_class(m, scores, labels, np.asarray(weights), post_transform)
    best = picked(m, labels, m.add("argmax", scores, axis=1))
    return best, _transform(m, scores, post_transform)


def single_class(m, scores, labels, weights, kind: str) -> tuple:
    """Label and both scores where only one class is scored.

    It is a probability if no weight is negative. If it is the first class of the list, ONNX
    Runtime, which models are made for, takes its score as that of the second.
    """
    chances = bool((weights >= 0).all())
    both = m.dims(scores)[1] == 2
    positive = m.add("slice", scores, axes=[1], starts=[1], ends=[2]) if both else scores
    chosen = m.common("greater", positive, m.lit(0.5 if chances else 0.0, positive))
    label = picked(m, labels, m.convert(chosen, type_t.int64_type))
    if both:
        return label, _transform(m, scores, kind)
    return label, two_scores(m, positive, kind, chances)


def two_scores(m, positive, kind: str, chances: bool):
    """Scores of both classes from the second one's: 1 - p and p, or -s and s."""
    if kind == "PROBIT":
        positive = _transform(m, positive, kind)
    if chances and kind != "LOGISTIC":
        other = m.common("sub", m.lit(1, positive), positive)
    else:
        other = m.add("neg", positive)
    result = m.add("concat", other, positive, axis=1)
    return _transform(m, result, kind) if kind == "LOGISTIC" else result


# -- opset 5 -------------------------------------------------------------------------------------


@onnx_op("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(
    m, x, *, n_targets, tree_roots, nodes_featureids, nodes_splits, nodes_modes,
    nodes_truenodeids, nodes_falsenodeids, nodes_trueleafs, nodes_falseleafs, leaf_targetids,
    leaf_weights, membership_values=None, nodes_missing_value_tracks_true=None,
    nodes_hitrates=None, aggregate_function=1, post_transform=0,
):  # fmt: skip
    """Leaves are listed by themselves, behind the inner nodes here."""
    splits = np.asarray(nodes_splits).reshape(-1)
    modes = np.asarray(nodes_modes).reshape(-1).astype(np.int64)
    inner, leaves = len(modes), len(leaf_targetids)
    if modes.size and not 0 <= modes.min() <= modes.max() < len(MODES):
        raise Error(f"nodes_modes has numbers outside 0 to {len(MODES) - 1}")
    if not 0 <= aggregate_function < 4 or not 0 <= post_transform < 5:
        raise Error(f"aggregate_function {aggregate_function} or post_transform {post_transform}")

    def led(ids, flags):
        """Where the nodes lead; opset 5's trees may be a leaf alone, marked by both flags."""
        ids, flags = np.asarray(ids, np.int64), np.asarray(flags, bool)
        return np.concatenate([np.where(flags, ids + inner, ids), inner + np.arange(leaves)])

    rest = np.zeros(leaves, np.int64)
    missing = nodes_missing_value_tracks_true
    missing = np.asarray(missing, bool) if missing is not None and len(missing) else np.zeros(inner)
    trees = Trees(
        np.asarray(tree_roots, np.int64),
        np.concatenate([np.asarray(nodes_featureids, np.int64), rest]),
        np.concatenate([splits, rest.astype(splits.dtype)]),
        np.concatenate([modes, rest]),
        led(nodes_truenodeids, nodes_trueleafs),
        led(nodes_falsenodeids, nodes_falseleafs),
        np.concatenate([missing, rest]),
        np.concatenate([np.full(inner, -1), np.arange(leaves)]),
        members(modes, membership_values, leaves, splits.dtype),
    )
    weights = np.asarray(leaf_weights).reshape(-1)
    ids = np.asarray(leaf_targetids, np.int64)
    if leaves and not 0 <= ids.min() <= ids.max() < n_targets:
        raise Error(f"leaf_targetids are outside the {n_targets} targets")
    table = np.zeros((leaves, n_targets), weights.dtype)
    table[np.arange(leaves), ids] = weights
    given = np.zeros(table.shape, bool)
    given[np.arange(leaves), ids] = True
    scores = score(m, trees, x, table, given, AGGREGATES[aggregate_function], None)
    return m.convert(_transform(m, scores, TRANSFORMS[post_transform]), from_dtype(splits.dtype))


def members(modes, values, leaves: int, dtype):
    """The sets of the nodes that test membership, filled up with NaN, which equals nothing."""
    wanted = np.flatnonzero(modes == MODES.index("BRANCH_MEMBER"))
    if not len(wanted):
        return None
    sets, current = [], []
    for value in np.asarray([] if values is None else values).reshape(-1).tolist():
        if value != value:
            sets.append(current)
            current = []
        else:
            current.append(value)
    if current:
        sets.append(current)
    if len(sets) != len(wanted):
        raise Error(f"{len(sets)} sets in membership_values for {len(wanted)} nodes")
    out = np.full((len(modes) + leaves, max(map(len, sets), default=0)), np.nan, dtype)
    for node, found in zip(wanted, sets, strict=True):
        out[node, : len(found)] = found
    return out
