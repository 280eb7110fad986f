"""Element-wise operators that MIGraphX's recorded values do not cover."""

import numpy as np
from checks import case, family, refused

NUMBERS = "float half bf16 double fp8e4m3fn fp8e5m2 int8 uint8 int16 int32 int64 uint64"
REALS = "float half bf16 double fp8e4m3fnuz"
ODD = [[np.nan, np.inf, -np.inf], [-0.0, 1e30, -1e30]]


def clipped(x, low, high):
    """MIGraphX's order, lower bound first: where the bounds cross, the upper one wins."""
    return np.where(np.isnan(x), x, np.minimum(np.maximum(x, low), high))


def affine(x, alpha=1.0, beta=0.0):
    return np.float32(alpha) * x + np.float32(beta)


def hard_sigmoid(x, alpha=0.2, beta=0.5):
    return np.minimum(np.maximum(np.float32(alpha) * x + np.float32(beta), 0), 1)


def scaled_tanh(x, alpha=1.0, beta=1.0):
    return np.float32(alpha) * np.tanh(np.float32(beta) * x)


def softplus(x):
    """In two pieces, so that neither exponential overflows."""
    return np.where(x > 0, x + np.log1p(np.exp(-np.abs(x))), np.log1p(np.exp(np.minimum(x, 0))))


def thresholded(x, alpha=1.0):
    return np.where(x > np.float32(alpha), x, 0)


CASES = [
    case("clip", "x[n,3]", "low[n,3]", "high[n,3]", reference=clipped, types=NUMBERS),
    case("clip", ("x[3]", [5, -5, 0.5]), ("low[3]", [1, 1, 1]), ("high[3]", [-1, -1, -1]),
         reference=clipped, grad=False),
    case("clip", ("x[2,3]", ODD), ("low[2,3]", -1.0), ("high[2,3]", 1.0), reference=clipped,
         types="float half bf16 double", grad=False),
    case("clip", "x[]", "low[]", "high[]", reference=clipped, types="float int32"),
    case("clip", "x[2,1,3,1,2,2]", "low[2,1,3,1,2,2]", "high[2,1,3,1,2,2]", reference=clipped),
    case("onnx::affine", "x[n,3]", reference=affine, types=REALS),
    case("onnx::affine", "x[n,3]", alpha=-0.3, beta=1.7, reference=affine, types=REALS),
    case("onnx::hard_sigmoid", "x[n,3]", reference=hard_sigmoid, types=REALS),
    case("onnx::hard_sigmoid", ("x[5]", [-9, -1, 0, 1, 9]), alpha=0.75, beta=0.25,
         reference=hard_sigmoid, types=REALS),
    case("onnx::hard_sigmoid", ("x[2,3]", ODD), reference=hard_sigmoid, grad=False),
    case("onnx::scaled_tanh", "x[n,3]", reference=scaled_tanh, types=REALS),
    case("onnx::scaled_tanh", "x[n,3]", alpha=1.7159, beta=-0.6667, reference=scaled_tanh,
         types=REALS),
    case("onnx::softplus", "x[n,3]", reference=softplus, types=REALS),
    case("onnx::softplus", ("x[2,3]", [[-1000, 1000, 0], [-30, 30, np.inf]]), reference=softplus,
         types="float double", grad=False),
    case("onnx::softsign", "x[n,3]", reference=lambda x: x / (1 + np.abs(x)), types=REALS),
    case("onnx::softsign", "x[]", reference=lambda x: x / (1 + np.abs(x))),
    case("onnx::thresholded_relu", "x[n,3]", reference=thresholded, types=REALS),
    case("onnx::thresholded_relu", ("x[4]", [0.5, 0.25, 0.75, -1]), alpha=0.5,
         reference=thresholded, types=REALS, grad=False),
    case("onnx::thresholded_relu", ("x[2,3]", ODD), alpha=-2.0, grad=False,
         reference=lambda x, alpha: np.array([[0, np.inf, 0], [0, 1e30, 0]])),
]  # fmt: skip

test_family = family(CASES)

test_refused = refused(
    [
        ("clip", {}, ["x[2,3]", "low[2,3]"], "Wrong number of arguments"),
        ("clip", {}, ["x[2,3]", "low[2,3]", "high[3]"], "Dimensions do not match"),
        ("clip", {}, ["x[2]", "low[2]", "high:int32[2]"], "Types do not match"),
        ("onnx::softplus", {}, ["x[2]", "y[2]"], "Wrong number of arguments"),
    ]
)
