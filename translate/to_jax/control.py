"""Lowerings of control flow, and its form on the host for programs that are cut inside it."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from migraphx.dims import Dim, lo
from migraphx.errors import Error
from migraphx.ops.control import sorted_parameters
from migraphx.types import dtype_of

from .interpret import Cut
from .registry import NeedsHost, NeedsValue, is_known, known, lower

# Loops of so many instructions in all are written out: what is known then stays known in them.
UNROLLED = 128
# A loop that cannot be traced as one, because its body needs its values as numbers or because
# sizes change, is still written out up to so many instructions; beyond, it runs on the host.
UNROLLED_AT_MOST = 1024

# A trip count beyond this means "until the condition fails".
LONGEST_SCAN = 1 << 24

HOST_CONTROL = {}


def on_host(*names: str):
    """Registers how control flow runs on the host: `(op, *arrays, bodies=[HostBody])`."""

    def register(function):
        for name in names:
            HOST_CONTROL[name] = function
        return function

    return register


@lower("get_tuple_elem")
def get_tuple_elem(op, xp, x):
    return x[op.index]


def number(x):
    """The one element of a known value."""
    return np.asarray(x).reshape(-1)[0]


# -- if ------------------------------------------------------------------------------------------


class _Differ(Exception):
    """The branches of a conditional give different types or sizes."""


@lower("if", bodies=True, numpy=False)
def if_(op, xp, cond, *args, bodies):
    """A known condition runs its branch alone; else `lax.cond`, if the branches are alike."""
    given = by_name(bodies, args)
    if not is_known(cond):
        try:
            return _cond(cond, [lambda b=b: b(*given[b]) for b in bodies])
        except (_Differ, Error):  # a branch that is not taken need not fit the sizes given
            cond = known(cond)
    body = bodies[0] if number(cond) else bodies[1]
    return body(*given[body])


@on_host("if")
def if_on_host(op, cond, *args, bodies):
    given = by_name(bodies, args)
    body = bodies[0] if number(cond) else bodies[1]
    return body(*given[body])


def _cond(cond, branches) -> tuple:
    seen = []

    def noted(branch):
        def run():
            results = branch()
            if not all(map(_is_array, jax.tree.leaves(results, is_leaf=_is_none))):
                raise _Differ
            found = jax.tree.map(lambda x: (x.shape, x.dtype), results)
            if seen and seen[0] != found:
                raise _Differ
            seen.append(found)
            return jax.tree.map(_strong, results)

        return run

    then, other = map(noted, branches)
    return tuple(jax.lax.cond(_flag(cond), then, other))


def _is_none(x) -> bool:
    return x is None


def _is_array(x) -> bool:
    return hasattr(x, "dtype") and x.dtype != np.dtype(object)


def _strong(x):
    return jnp.asarray(x, dtype=x.dtype)


def by_name(bodies, args) -> dict:
    """What each body gets when `args` feed the bodies' parameters in the order of their names."""
    names = sorted({p.op_.parameter for b in bodies for p in b.module.parameters()})
    values = dict(zip(names, args, strict=False))
    missing = [n for n in names if n not in values]
    if missing:
        raise Error(f"no input for the parameters {', '.join(missing)} of a module")
    return {b: [values[p.op_.parameter] for p in b.module.parameters()] for b in bodies}


# -- loop ----------------------------------------------------------------------------------------


@lower("loop", "onnx::loop", bodies=True, numpy=False)
def loop(op, xp, trip, cond, *carried, bodies):
    """Written out, as a scan, as a while loop, or on the host: the first form that is possible."""
    body = LoopBody(op, bodies[0], len(carried))
    if is_known(trip) and is_known(cond):
        count = min(int(number(trip)), op.max_iterations) if number(cond) else 0
        return _counted(body, max(count, 0), carried)
    if body.exact and body.scans:
        # The number of rows must be known in the end; the trip count may be enough for that.
        trip, cond = known(trip), known(cond)
    return _while(body, trip, cond, carried)


class LoopBody:
    """The module of a loop, seen as a step: iteration and carried values in, rows out."""

    def __init__(self, op, body, carried: int):
        self.op, self.body = op, body
        self.exact = op.op_name == "onnx::loop"
        params = body.module.parameters()
        self.iteration_type = dtype_of(params[0].shape().type())
        self.outs = body.module.get_output_shapes()
        self.scans = len(self.outs) - 1 - carried
        self.carried = carried

    def __call__(self, iteration, carried):
        """The next condition, the carried values and the rows."""
        if is_known(iteration):
            iteration = np.asarray(iteration, self.iteration_type)
        else:
            iteration = iteration.astype(self.iteration_type)
        cond, *values = self.body(iteration, np.asarray(True), *carried)
        rows = values[self.carried :]
        if not self.exact:  # MIGraphX's rank 0 is lens {1} here: rows of one element
            rows = [r.reshape((1,)) if r.ndim == 0 else r for r in rows]
        return cond, tuple(values[: self.carried]), rows

    def size(self) -> int:
        """Number of instructions of one iteration."""
        return sum(len(m.instructions) for m in _modules(self.body.module))

    def backwards(self, k: int) -> bool:
        """True if scan output `k` is written from its end."""
        directions = self.op.scan_output_directions
        return k < len(directions) and directions[k] == 1

    def finish(self, carried, stacked, xp):
        """The results from the final values and the stacked rows of all iterations run."""
        return (*carried, *(self.place(k, rows, xp) for k, rows in enumerate(stacked)))

    def place(self, k: int, rows, xp):
        """Scan output `k`: rows in their order, zeros where MIGraphX's loop did not come."""
        if self.backwards(k):
            rows = rows[::-1]
        missing = 0 if self.exact else self.op.max_iterations - rows.shape[0]
        if missing <= 0:
            return rows
        rest = xp.zeros((missing, *rows.shape[1:]), rows.dtype)
        return xp.concatenate([rest, rows] if self.backwards(k) else [rows, rest])

    def rows_of_none(self, carried) -> list:
        """Scan outputs of a loop that does not run."""
        shapes = self.outs[1 + self.carried :]
        if all(s.dims is not None and not s.dynamic() for s in shapes):
            rows = [
                (s.dims if not (s.is_rank0() and self.exact) else (), dtype_of(s.type()))
                for s in shapes
            ]
        else:
            rows = [(tuple(map(lo, s.dims or ())), dtype_of(s.type())) for s in shapes]
        return [np.zeros((0, *dims), kind) for dims, kind in rows]


def _modules(module):
    yield module
    for ins in module.instructions:
        for mod in ins.mods:
            yield from _modules(mod)


def _counted(body: LoopBody, count: int, carried):
    """A loop of a known number of iterations, unless its module ends it before."""
    if count == 0:
        return body.finish(carried, body.rows_of_none(carried), np)
    if is_known(carried):  # arithmetic on sizes, perhaps: it stays known
        done = _unrolled(body, count, carried, is_known)
        if done is not None:
            return done
    if count > LONGEST_SCAN:  # in truth: as long as the condition holds
        return _while(body, np.int64(count), np.asarray(True), carried)
    size = body.size()
    if count == 1 or count * size <= UNROLLED:
        done = _unrolled(body, count, carried, lambda values: is_known(values[0]))
        if done is not None:
            return done
    try:
        return _scan(body, count, carried)
    except _Early:
        if body.exact and body.scans:
            raise NeedsHost from None
        return _while(body, np.int64(count), np.asarray(True), carried)
    except (_Differ, NeedsValue, NeedsHost, Cut) as why:
        value = getattr(why, "value", None)
        if value is not None and _from_outside(body, value, carried):
            raise
        if count * size > UNROLLED_AT_MOST:
            raise NeedsHost from None
    done = _unrolled(body, count, carried, lambda values: is_known(values[0]))
    if done is None:
        raise NeedsHost
    return done


def _from_outside(body, value, carried) -> bool:
    return any(value is v for v in itertools.chain(body.body.env.values(), carried))


def _unrolled(body: LoopBody, count: int, carried, goes_on):
    """The iterations one after the other; None where `goes_on` refuses what one of them gives."""
    rows = [[] for _ in range(body.scans)]
    for k in range(count):
        cond, carried, found = results = body(np.int64(k), carried)
        for column, row in zip(rows, found, strict=True):
            column.append(row)
        if k == count - 1:
            break
        if not goes_on(results):
            return None
        if not number(cond):
            break
    xp = np if is_known(rows) else jnp
    return body.finish(carried, [_stack(xp, column) for column in rows], xp)


def _stack(xp, rows):
    if len({r.shape for r in rows}) > 1:
        raise Error(
            "loop: the rows of a scan output differ in size: "
            + ", ".join(str(list(r.shape)) for r in rows)
        )
    return xp.stack(rows)


class _Early(Exception):
    """The module of a loop may end it before its count is reached."""


def _same_kind(before, after) -> None:
    found = [[(x.shape, x.dtype) for x in jax.tree.leaves(v)] for v in (before, after)]
    if found[0] != found[1]:
        raise _Differ


def _check_arrays(values) -> None:
    if not all(map(_is_array, jax.tree.leaves(values, is_leaf=_is_none))):
        raise _Differ


def _scan(body: LoopBody, count: int, carried):
    """All iterations as one `lax.scan`; needs fixed sizes and a condition that stays true."""
    _check_arrays(carried)

    def step(values, iteration):
        cond, after, rows = body(iteration, values)
        if not is_known(cond) or not number(cond):
            raise _Early
        _check_arrays((after, rows))
        _same_kind(values, after)
        return jax.tree.map(_strong, after), rows

    start = jax.tree.map(_strong, tuple(carried))
    carried, stacked = jax.lax.scan(step, start, jnp.arange(count, dtype=body.iteration_type))
    return body.finish(carried, stacked, jnp)


def _while(body: LoopBody, trip, cond, carried):
    """A `lax.while_loop` over carried values of fixed sizes and, for `loop`, buffers of rows."""
    if body.exact and body.scans:
        raise NeedsHost
    try:
        return _while_loop(body, trip, cond, carried)
    except _Differ:
        raise NeedsHost from None


def _while_loop(body: LoopBody, trip, cond, carried):
    _check_arrays(carried)
    start = jax.tree.map(_strong, tuple(carried))
    limit = jnp.asarray(trip).reshape(-1)[0].astype(jnp.int64)
    limit = jnp.minimum(limit, body.op.max_iterations)
    going = _flag(cond)
    buffers = _buffers(body, start) if body.scans else ()

    def more(state):
        k, cond, *_ = state
        return (k < limit) & cond

    def step(state):
        k, _, values, buffers = state
        cond, after, rows = body(k, values)
        _check_arrays((after, rows))
        _same_kind(values, after)
        written = tuple(
            jax.lax.dynamic_update_index_in_dim(
                buffer, row, body.op.max_iterations - 1 - k if body.backwards(j) else k, 0
            )
            for j, (buffer, row) in enumerate(zip(buffers, rows, strict=True))
        )
        return k + 1, _flag(cond), jax.tree.map(_strong, after), written

    _, _, carried, rows = jax.lax.while_loop(more, step, (jnp.int64(0), going, start, buffers))
    return (*carried, *rows)


def _flag(cond):
    return jnp.asarray(cond).reshape(-1)[0].astype(bool)


def _buffers(body: LoopBody, carried) -> tuple:
    """Zeros for all rows of a `loop`."""
    shapes = body.outs[1 + body.carried :]
    if any(s.dims is None or s.dynamic() for s in shapes):
        rows = jax.eval_shape(lambda *v: body(jnp.int64(0), v)[2], *carried)
        sizes = [(r.shape, r.dtype) for r in rows]
    else:
        sizes = [(s.dims, dtype_of(s.type())) for s in shapes]
    return tuple(jnp.zeros((body.op.max_iterations, *dims), kind) for dims, kind in sizes)


@on_host("loop", "onnx::loop")
def loop_on_host(op, trip, cond, *carried, bodies):
    """The loop in Python, each iteration run stage by stage."""
    body = LoopBody(op, bodies[0], len(carried))
    count = min(int(number(trip)), op.max_iterations)
    rows = [[] for _ in range(body.scans)]
    k, going = 0, bool(number(cond))
    while going and k < count:
        cond, carried, found = body(np.int64(k), carried)
        for column, row in zip(rows, found, strict=True):
            column.append(np.asarray(row))
        going, k = bool(number(cond)), k + 1
    stacked = [_stack(np, column) for column in rows] if k else body.rows_of_none(carried)
    return body.finish(carried, stacked, np)


@lower("scan_slice")
def scan_slice(op, xp, x, index):
    """A slice by a number that may be traced, in a scan for example."""
    size = x.shape[op.axis]
    if is_known(index):
        k = int(number(index))
        if not 0 <= k < size:
            raise Error(f"scan_slice: index {k} is out of range for size {size}")
        k = size - 1 - k if op.direction == 1 else k
        place = [slice(None)] * x.ndim
        place[op.axis] = slice(k, k + 1)
        return x[tuple(place)]
    k = jnp.asarray(index).reshape(-1)[0]
    k = size - 1 - k if op.direction == 1 else k
    return jax.lax.dynamic_slice_in_dim(x, k, 1, op.axis % x.ndim)


# -- modules as operators ------------------------------------------------------------------------


@lower("select_module", bodies=True, numpy=False)
def select_module(op, xp, *args, bodies):
    """The module whose parameters, ordered by name, have the sizes of the arguments."""
    for body in bodies:
        params = sorted_parameters(body.module)
        if len(params) <= len(args) and all(map(_takes, params, args)):
            given = dict(zip(params, args, strict=False))
            return body(*(given[p] for p in body.module.parameters()))
    got = ", ".join(f"{a.dtype}{list(a.shape)}" for a in args)
    raise Error(f"select_module: no module takes {got}")


def _takes(param, array) -> bool:
    shape = param.shape()
    dims = () if shape.is_rank0() and array.ndim == 0 else shape.dims
    if array.dtype != dtype_of(shape.type()) or len(dims) != array.ndim:
        return False
    return all(
        d.min <= n <= d.max if isinstance(d, Dim) else d == n
        for d, n in zip(dims, array.shape, strict=True)
    )


def _single(results):
    return results[0] if len(results) == 1 else tuple(results)


@lower("group", "fused_reduce", "split_fused_reduce", bodies=True, numpy=False)
def group(op, xp, *args, bodies):
    return _single(bodies[0](*by_name(bodies, args)[bodies[0]]))


@lower("run_on_target", bodies=True, numpy=False)
def run_on_target(op, xp, *args, bodies):
    return bodies[0](*args)


@lower("pointwise", bodies=True, numpy=False)
def pointwise(op, xp, *args, bodies):
    """The module's scalar operators, applied to whole arrays."""
    results = bodies[0](*by_name(bodies, args)[bodies[0]])
    dims = args[0].shape
    xp = np if is_known(results) else jnp
    return _single([r if r.shape == dims else xp.broadcast_to(r, dims) for r in results])


@lower("fused_concat", bodies=True, numpy=False)
def fused_concat(op, xp, *args, bodies):
    *parts, last = bodies
    pieces, rest = [], list(args)
    for part in parts:
        count = len(part.module.parameters())
        (piece,) = part(*by_name([part], rest[:count])[part])
        pieces.append(jnp.broadcast_to(piece, rest[0].shape))
        del rest[:count]
    whole = jnp.concatenate(pieces, op.axis)
    # The parameter for the concatenation comes first in the order of names.
    return _single(last(*by_name([last], [whole, *rest])[last]))


@lower("onnx::gradient", bodies=True, numpy=False)
def gradient(op, xp, *args, bodies):
    def total(*by):
        (result,) = bodies[0](*by, *args[op.count :])
        return result.sum()

    return jax.grad(total, tuple(range(op.count)))(*map(jnp.asarray, args[: op.count]))
