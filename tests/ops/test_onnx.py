"""This project's operators for ONNX: matrices, Fourier transforms, images, texts, late nodes."""

import base64
import io

import numpy as np
import onnx
import PIL.Image
import pytest
from checks import case, family, refused
from rows import close, run_op, shape_of, shapes_of, single

import migraphx
from migraphx.dims import Dim
from migraphx.types import from_dtype

APART = ("onnx::node",)
SMALL = "float half bf16 double"
ALL = "float half bf16 double fp8e4m3fn int8 uint8 int32 int64 bool"


# -- matrices and axes ---------------------------------------------------------------------------


def det(x):
    """Expanded along the first row."""
    if x.shape[-1] == 0:
        return np.ones(x.shape[:-2])
    if x.shape[-1] == 1:
        return x[..., 0, 0]
    total = 0
    for k in range(x.shape[-1]):
        rest = np.delete(np.delete(x, 0, -2), k, -1)
        total = total + (-1) ** k * x[..., 0, k] * det(rest)
    return total


def well_conditioned(rng, lens):
    return rng.uniform(-1, 1, lens) + 3 * np.eye(lens[-1])


def bounded(x, axes, starts, ends):
    for axis, start, end in zip(axes, starts, ends, strict=True):
        x = np.take(x, np.arange(start, end), axis)
    return x


MATRICES = [
    case("onnx::det", "x[n,3,3]", reference=det, types="float double"),
    case("onnx::det", "x[2,2,4,4]", reference=det, types="float double"),
    case("onnx::det", "x[3,3]", reference=det),
    case("onnx::det", ("x[2,2]", [[1, 2], [2, 4]]), reference=lambda x: np.array(0.0), grad=False),
    case("onnx::inverse", ("x[n,3,3]", well_conditioned), types="float double",
         reference=lambda x: np.stack([np.linalg.solve(m, np.eye(3)) for m in x])),
    case("onnx::inverse", ("x[4,4]", well_conditioned), types="float double",
         reference=lambda x: np.linalg.solve(x, np.eye(4))),
    case("onnx::move_axis", "x[n,3,4]", source=0, destination=2, types=ALL,
         reference=lambda x, **_: np.transpose(x, (1, 2, 0))),
    case("onnx::move_axis", "x[n,3,4]", source=-1, destination=-3,
         reference=lambda x, **_: np.transpose(x, (2, 0, 1))),
    case("onnx::move_axis", "x[3,4]", reference=lambda x: x),
    case("onnx::slice", "x[4,5]", axes=[0, -1], starts=[1, 0], ends=[3, 5], reference=bounded,
         types=ALL, symbolic=False),
    case("onnx::slice", "x[4,5]", axes=[1], starts=[2], ends=[2], reference=bounded,
         symbolic=False),
    case("onnx::slice", "x[4,5]", reference=lambda x: x),
]  # fmt: skip
test_matrices = family(MATRICES)


def test_slice_up_to_a_size():
    """Bounds may be symbolic: the second half of an axis, whatever its size."""
    n = Dim("n[2..8]")
    x = migraphx.shape(type="float", dyn_dims=[2 * n, Dim("3")])
    op = migraphx.op("onnx::slice", axes=[0], starts=[n], ends=[2 * n])
    assert op.compute_shape([x]).dyn_dims()[0] == n
    program, ins = single(op, [x])
    assert ins.shape().dyn_dims()[0] == n
    program.compile(migraphx.get_target("ref"))
    for size in (2, 5):
        data = np.arange(6 * size, dtype=np.float32).reshape(2 * size, 3)
        np.testing.assert_array_equal(np.asarray(program.run({"x0": data})[0]), data[size:])


# -- Fourier transforms --------------------------------------------------------------------------


def dft(x, axis=-2, length=None, inverse=False, onesided=False):
    """The sum that defines it, over the whole axis."""
    x = np.moveaxis(x.astype(np.float64), axis if axis >= 0 else axis + x.ndim, 0)
    signal = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    size = len(signal) if length is None else length
    if inverse and onesided:  # the other half are the conjugates
        size = 2 * (len(signal) - 1) if length is None else length
        half = np.zeros((size // 2 + 1, *signal.shape[1:]), complex)
        half[: len(signal)] = signal[: len(half)]
        half[0] = half[0].real
        if size % 2 == 0:
            half[-1] = half[-1].real
        signal = np.concatenate([half, half[1 : (size + 1) // 2][::-1].conj()])
    else:
        whole = np.zeros((size, *signal.shape[1:]), complex)
        whole[: len(signal)] = signal[:size]
        signal = whole
    k = np.arange(size)
    turn = np.exp((2j if inverse else -2j) * np.pi * np.outer(k, k) / size)
    found = np.tensordot(turn, signal, 1) / (size if inverse else 1)
    if onesided and not inverse:
        found = found[: size // 2 + 1]
    pieces = [found.real] if inverse and onesided else [found.real, found.imag]
    return np.moveaxis(np.stack(pieces, -1), 0, axis if axis >= 0 else axis + x.ndim)


def stft(x, window=None, frame_step=1, frame_length=1, onesided=True):
    frames = []
    for at in range(0, x.shape[1] - frame_length + 1, frame_step):
        part = x[:, at : at + frame_length]
        weights = np.ones(frame_length) if window is None else window
        frames.append(dft(part * weights[:, None], axis=1, onesided=onesided))
    return np.stack(frames, 1)


FOURIER = [
    case("onnx::dft", "x[n,8,1]", reference=dft, types=SMALL),
    case("onnx::dft", "x[n,8,2]", reference=dft, types=SMALL),
    case("onnx::dft", "x[n,7,1]", axis=1, onesided=True, reference=dft, types=SMALL),
    case("onnx::dft", "x[6,5,2]", axis=0, onesided=True, reference=dft),
    case("onnx::dft", "x[6,5,2]", axis=-3, inverse=True, reference=dft, types="float double"),
    case("onnx::dft", "x[5,2]", axis=0, length=3, reference=dft),
    case("onnx::dft", "x[5,2]", axis=0, length=9, inverse=True, reference=dft),
    case("onnx::dft", "x[5,1]", axis=0, length=8, onesided=True, reference=dft),
    case("onnx::dft", "x[n,5,2]", inverse=True, onesided=True, reference=dft,
         types="float double"),
    case("onnx::dft", "x[2,5,2]", inverse=True, onesided=True, length=7, reference=dft),
    case("onnx::dft", "x[2,5,2]", inverse=True, onesided=True, length=6, reference=dft),
    case("onnx::stft", "x[n,10,1]", frame_step=3, frame_length=4, reference=stft, types=SMALL),
    case("onnx::stft", "x[n,10,1]", "w[5]", frame_step=2, frame_length=5, reference=stft,
         types="float double"),
    case("onnx::stft", "x[2,9,2]", "w[4]", frame_step=5, frame_length=4, onesided=False,
         reference=stft, types="float double"),
]  # fmt: skip
test_fourier = family(FOURIER)


def test_stft_of_a_signal_that_is_too_short():
    op = migraphx.op("onnx::stft", frame_length=4)
    with pytest.raises(migraphx.Error, match="3 elements"):
        run_op(op, [np.zeros((1, 3, 1), np.float32)])


# -- images and texts ----------------------------------------------------------------------------


def image_file(pixels, form) -> np.ndarray:
    """The bytes of an image file without loss."""
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(file, form)
    return np.frombuffer(file.getvalue(), np.uint8)


PIXELS = np.random.default_rng(0).integers(0, 256, (4, 5, 3)).astype(np.uint8)
GRAY = PIXELS[:, :, 0].copy()


def text(kind, values, wanted):
    """Numbers of a type as texts."""
    return case("onnx::cast_text", (f"x:{kind}[{len(values)}]", values),
                reference=lambda x, **_: np.array(wanted, object))  # fmt: skip


def number(kind, texts, wanted):
    """Texts as numbers of a type."""
    return case("onnx::cast_text", (f"x:string[{len(texts)}]", texts), target_type=kind,
                reference=lambda x, **_: np.array(wanted))  # fmt: skip


HOST = [
    *(case("onnx::decode_image", image_file(PIXELS, form), skip="layouts", pixel_format=order,
           reference=lambda x, pixel_format: PIXELS if pixel_format == "RGB" else PIXELS[..., ::-1])
      for form in ("PNG", "BMP") for order in ("RGB", "BGR")),
    case("onnx::decode_image", image_file(GRAY, "PNG"), pixel_format="Grayscale", skip="layouts",
         reference=lambda x, pixel_format: GRAY[..., None]),
    case("onnx::decode_image", image_file(GRAY, "PNG"), skip="layouts",
         reference=lambda x: np.stack([GRAY] * 3, -1)),
    text("float", [1.5, -0.25, 100, np.inf, -np.inf, np.nan, 0.1],
         ["1.5", "-0.25", "100", "INF", "-INF", "NaN", "0.1"]),
    text("double", [1e-7, 1e20, 0.1], ["1e-07", "1e+20", "0.1"]),
    text("half", [0.1, -2], ["0.1", "-2"]),
    text("int64", [-3, 0, 2**62], ["-3", "0", "4611686018427387904"]),
    text("uint8", [0, 255], ["0", "255"]),
    text("bool", [True, False], ["True", "False"]),
    number("float", ["1.5", "-2", "1e3", "INF", "-INF", "NaN", " 7 "],
           [1.5, -2, 1000, np.inf, -np.inf, np.nan, 7]),
    number("double", ["0.1", "1e-300"], [0.1, 1e-300]),
    number("int32", ["12", "-7", "3.9", "1e2"], [12, -7, 3, 100]),
    number("uint64", [str(2**64 - 1)], [2**64 - 1]),
    number("bool", ["0", "1", "false", "True", ""], [False, True, False, True, False]),
    case("onnx::cast_text", ("x:string[2,2]", [["1", "2"], ["3", "4"]]), target_type="int64",
         reference=lambda x, **_: np.array([[1, 2], [3, 4]])),
    case("onnx::cast_text", ("x:int32[]", 5), reference=lambda x: np.array("5", object)),
]  # fmt: skip
test_host = family(HOST)


def test_what_is_no_number_or_no_image():
    with pytest.raises(migraphx.Error, match="'one' is not a number"):
        run_op(migraphx.op("onnx::cast_text", target_type="float"), [np.array(["one"], object)])
    with pytest.raises(migraphx.Error, match="no image that Pillow reads"):
        run_op(migraphx.op("onnx::decode_image"), [np.zeros(10, np.uint8)])


test_refused = refused(
    [
        ("onnx::det", {}, ["x[2,3]"], "not square"),
        ("onnx::det", {}, ["x[3]"], "not square"),
        ("onnx::inverse", {}, ["x[2,3]"], "not square"),
        ("onnx::move_axis", {"source": 3}, ["x[2,3,4]"], "value out of range"),
        ("onnx::move_axis", {"destination": -4}, ["x[2,3,4]"], "attribute out of range"),
        ("onnx::slice", {"axes": [2], "starts": [0], "ends": [1]}, ["x[2,3]"], "out of range"),
        ("onnx::slice", {"axes": [1], "starts": [0], "ends": [4]}, ["x[2,3]"], "outside"),
        ("onnx::slice", {"axes": [0], "starts": [2], "ends": [1]}, ["x[2,3]"], "outside"),
        ("onnx::dft", {"axis": -1}, ["x[2,3,1]"], "holds the real and imaginary part"),
        ("onnx::dft", {}, ["x[2,3,3]"], "one real or two complex parts"),
        ("onnx::dft", {"axis": 3}, ["x[2,3,1]"], "value out of range"),
        ("onnx::stft", {}, ["x[2,3]"], "the signal should be"),
        ("onnx::stft", {"frame_step": 0}, ["x[2,3,1]"], "must be positive"),
        ("onnx::decode_image", {}, [], "Wrong number of arguments"),
        ("onnx::cast_text", {"target_type": "text"}, ["x[2]"], "unknown type"),
    ]
)


# -- nodes translated while tracing --------------------------------------------------------------


def node_of(kind, count, types, outputs=1, domain="", **attributes):
    """An `onnx::node` as the reader writes it."""
    names = [f"x{k}" for k in range(count)]
    made = onnx.helper.make_node(kind, names, [f"y{k}" for k in range(outputs)], **attributes)
    return migraphx.op(
        "onnx::node",
        node=base64.b64encode(made.SerializeToString()).decode(),
        opsets="=18",
        types=[int(from_dtype(np.dtype(t))) for t in types],
        present=range(count),
    )


X = np.arange(24, dtype=np.float32).reshape(4, 6)
NODES = [
    ("Reshape", (X, np.array([3, 0 + 8])), {}, X.reshape(3, 8)),
    ("Reshape", (X, np.array([0, -1, 2])), {}, X.reshape(4, 3, 2)),
    ("Tile", (X, np.array([2, 1])), {}, np.tile(X, (2, 1))),
    ("Expand", (X[:1], np.array([3, 6])), {}, np.broadcast_to(X[:1], (3, 6))),
    ("Slice", (X, np.array([1]), np.array([3]), np.array([-1])), {}, X[:, 1:3]),
    ("OneHot", (np.array([1, 0]), np.array(3), np.array([0, 5])), {}, [[0, 5, 0], [5, 0, 0]]),
]


@pytest.mark.parametrize(("kind", "arrays", "attributes", "wanted"), NODES)
def test_node(kind, arrays, attributes, wanted):
    """Inputs that decide shapes come with the run."""
    wanted = np.asarray(wanted, arrays[0].dtype)
    op = node_of(kind, len(arrays), [wanted.dtype], **attributes)
    close(run_op(op, list(arrays), [shape_of(a) for a in arrays])[0], wanted)


def test_node_of_several_results():
    op = node_of("Split", 2, [np.float32] * 2, outputs=2, axis=1)
    got = run_op(op, [X, np.array([2, 4])])
    for one, two in zip(got, (X[:, :2], X[:, 2:]), strict=True):
        close(one, two)


def test_node_has_results_of_unknown_rank():
    row = case("onnx::node", "x[2,3]")
    op = node_of("Reshape", 2, [np.float32])
    assert op.compute_shape(shapes_of(row)).dims is None


def test_node_that_does_not_fit_its_inputs():
    op = node_of("Reshape", 2, [np.float32])
    with pytest.raises(migraphx.Error, match="Reshape"):
        run_op(op, [X, np.array([5, 5])])
