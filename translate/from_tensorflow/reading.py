"""GraphDef files: binary and text told apart by their content, what else they may be."""

from __future__ import annotations

import re
from pathlib import Path

from migraphx.errors import Error

INSTALL = 'reading TensorFlow graphs needs one more package: pip install "migraphx-jax[tf]"'
FREEZE = (
    "freeze it first, with TensorFlow: f = convert_variables_to_constants_v2(tf.saved_model.load("
    "folder).signatures['serving_default']), which stands in "
    "tensorflow.python.framework.convert_to_constants; then "
    "tf.io.write_graph(f.graph.as_graph_def(), '.', 'frozen.pb', as_text=False)"
)
# A text file begins with one of GraphDef's fields; in a binary one a length follows.
TEXT = re.compile(rb"\A\s*(?:#[^\n]*\n\s*)*(?:node|library|versions?)\s*[:{<]")
SAVED_MODEL = b"\x08"  # its first field is a number, which a GraphDef does not have


def messages():
    """The module of the GraphDef messages."""
    try:
        from tensorboard.compat.proto import graph_pb2
    except ImportError as error:
        raise Error(f"parse_tf: {INSTALL}") from error
    return graph_pb2


def read_graph(filename):
    """The GraphDef in a file.

    Raises
    ------
    Error
        if the file cannot be read, or is something else: a SavedModel, or cut off.
    """
    path = Path(filename)
    if path.is_dir():
        if (path / "saved_model.pb").exists() or (path / "saved_model.pbtxt").exists():
            raise Error(f"parse_tf: {path} is a SavedModel folder, not a frozen graph; {FREEZE}")
        raise Error(f"parse_tf: Failed reading tf file: {path} is a folder")
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise Error(f"parse_tf: Failed reading tf file: {path}: {reason}") from None
    if data.startswith(SAVED_MODEL) or (
        b"saved_model_schema_version" in data[:64] and b"node" not in data[:32]
    ):
        raise Error(f"parse_tf: {path} is a SavedModel, not a frozen graph; {FREEZE}")
    graph = from_text(data, path) if TEXT.match(data) else from_binary(data, path)
    if not graph.node:
        raise Error(f"parse_tf: Failed reading tf file: {path} holds no nodes")
    return graph


def from_binary(data: bytes, path):
    """The GraphDef in the bytes of a ``.pb`` file."""
    graph = messages().GraphDef()
    try:
        graph.ParseFromString(data)
    except Exception as error:  # the error type differs between protobuf's implementations
        raise Error(
            f"parse_tf: Failed reading tf file: {path} is not a GraphDef, or is cut off"
        ) from error
    if any(not node.name for node in graph.node):
        raise Error(f"parse_tf: Failed reading tf file: {path} is not a GraphDef")
    return graph


def from_text(data: bytes, path):
    """The GraphDef in the text of a ``.pbtxt`` file."""
    graph = messages().GraphDef()
    from google.protobuf import text_format

    try:
        text_format.Parse(data.decode("utf-8"), graph)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise Error(f"parse_tf: Failed reading tf file: {path}: {error}") from None
    return graph


def node_message(text):
    """The NodeDef in bytes; protobuf's text attributes hand them on as `str`."""
    messages()
    from tensorboard.compat.proto import node_def_pb2

    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return node_def_pb2.NodeDef.FromString(data)
