"""Builders: what composite operators stand for. Importing this package registers them all."""

from . import einsum, nn, pointwise, quantize
from .common import BUILDERS

__all__ = ["BUILDERS", "einsum", "nn", "pointwise", "quantize"]
