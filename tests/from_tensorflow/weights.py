"""Weights of recorded networks: left out of the files, made again from a seed by name.

`strip` replaces the data of each large constant of a GraphDef by numbers that `restore` makes
again, so that a recording of a whole network is only its structure. Works on the messages of
TensorFlow and of tensorboard alike.
"""

import zlib

import numpy as np

LARGE = 48  # elements
FLOAT = 1  # DT_FLOAT


def large_constants(graph):
    """(node, shape, is it a variance?) of the constants that are not stored."""
    readers = {}
    for node in graph.node:
        for reference in node.input:
            readers.setdefault(reference.split(":")[0].lstrip("^"), []).append(node)
    for node in graph.node:
        if node.op != "Const" or node.attr["value"].tensor.dtype != FLOAT:
            continue
        shape = [d.size for d in node.attr["value"].tensor.tensor_shape.dim]
        if int(np.prod(shape)) >= LARGE:
            yield node, shape, is_variance(node, readers)


def is_variance(node, readers) -> bool:
    """True if the constant, plus a small number, goes into a reciprocal root or a batch norm."""
    todo = [node]
    while todo:
        for reader in readers.get(todo.pop().name, ()):
            if reader.op == "Identity":
                todo.append(reader)
            elif reader.op.startswith("FusedBatchNorm"):
                return reader.input[4].split(":")[0] == node.name
            elif reader.op in ("AddV2", "Add"):
                return any(r.op == "Rsqrt" for r in readers.get(reader.name, ()))
    return False


def values(name, shape, variance) -> np.ndarray:
    """Numbers for one constant: of a size that keeps the data of deep networks near 1."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    if variance:
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    if len(shape) == 1:
        return random.uniform(-0.3, 0.9, shape).astype(np.float32)
    inside = shape[0] * shape[1] if shape[-1] == 1 else np.prod(shape[:-1])
    return (random.standard_normal(shape) * np.sqrt(2 / inside)).astype(np.float32)


def restore(graph) -> None:
    """Fills the large constants."""
    for node, shape, variance in list(large_constants(graph)):
        tensor = node.attr["value"].tensor
        tensor.ClearField("float_val")
        tensor.tensor_content = values(node.name, shape, variance).tobytes()


def strip(graph) -> None:
    """Empties the large constants."""
    for node, _, _ in list(large_constants(graph)):
        node.attr["value"].tensor.ClearField("tensor_content")
        node.attr["value"].tensor.ClearField("float_val")
