"""Reductions that accumulate, of arrays, axes and segments. Each is one call of the library; see docs/python.md."""

from __future__ import annotations

import contextlib
import math
import numbers
from typing import Any

from . import _native
from ._parameters import Array, Axis, documented, numerics_number, optional_dtypes, quick
from ._session import Session

_SUM, _PRODUCT, _MEAN, _MEAN_VARIANCE, _LOGSUMEXP = map(
    _native.op_number, ("sum", "product", "mean", "mean_variance", "logsumexp")
)
_NORMS = {1: _native.op_number("l1_norm"), 2: _native.op_number("l2_norm"), float("inf"): _native.op_number("max_norm")}


@quick(_native.reduce_shortcut, _SUM)
@documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
def sum(
    x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False, accumulator: Any = None,
    ignore_nan: bool = False, numerics: str = "fast", out: Array | None = None, stream: Any = None,
    session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Sum the elements.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array
        Of the kind of `x`: float32 for floats of 16 and 32 bits, float64, and integers of 64 bits, which wrap.

    Examples
    --------
    >>> hone.sum(numpy.arange(12, dtype="float32").reshape(3, 4), axis=0)
    array([12., 15., 18., 21.], dtype=float32)
    """
    return _native.reduce(
        _SUM, x, axis, keepdims, *optional_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        numerics_number(numerics),
    )  # fmt: skip


@quick(_native.reduce_shortcut, _PRODUCT)
@documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
def prod(
    x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False, accumulator: Any = None,
    ignore_nan: bool = False, numerics: str = "fast", out: Array | None = None, stream: Any = None,
    session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Multiply the elements.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array
        Of the kind of `x`, with the dtypes of `sum`.

    Examples
    --------
    >>> hone.prod(numpy.array([[1, 2], [3, 4]], "float32"))
    array(24., dtype=float32)
    """
    return _native.reduce(
        _PRODUCT, x, axis, keepdims, *optional_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        numerics_number(numerics),
    )  # fmt: skip


@quick(_native.reduce_shortcut, _MEAN)
@documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
def mean(
    x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False, accumulator: Any = None,
    ignore_nan: bool = False, numerics: str = "fast", out: Array | None = None, stream: Any = None,
    session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Compute the arithmetic mean. Of no elements it is NaN.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array
        Of the kind of `x`: float32 for floats of 16 and 32 bits, else float64.

    Examples
    --------
    >>> hone.mean(numpy.array([[1, 2], [3, 5]], "float32"), axis=1)
    array([1.5, 4. ], dtype=float32)
    """
    return _native.reduce(
        _MEAN, x, axis, keepdims, *optional_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        numerics_number(numerics),
    )  # fmt: skip


@quick(_native.reduce_shortcut, _MEAN_VARIANCE)
@documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
def mean_var(
    x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False, accumulator: Any = None,
    ignore_nan: bool = False, numerics: str = "fast", out: Array | None = None, stream: Any = None,
    session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Compute the mean and the variance of the population, Σ (x − mean)² ÷ n, in one pass.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array
        Of the kind of `x`, with the dtypes of `mean` and a last axis of two: the mean and the variance.

    Examples
    --------
    >>> hone.mean_var(numpy.array([1, 2, 3, 4], "float32"))
    array([2.5 , 1.25], dtype=float32)
    """
    return _native.reduce(
        _MEAN_VARIANCE, x, axis, keepdims, *optional_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        numerics_number(numerics),
    )  # fmt: skip


def _without_warnings_of(array: Array) -> contextlib.AbstractContextManager[Any]:
    """NumPy warns of NaNs that a multiplication makes; other libraries do not."""
    if not type(array).__module__.startswith("numpy"):
        return contextlib.nullcontext()
    import numpy

    return numpy.errstate(invalid="ignore")


@documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
def var(
    x: Array, /, *, axis: Axis = None, correction: float = 0.0, dtype: Any = None, keepdims: bool = False,
    accumulator: Any = None, ignore_nan: bool = False, numerics: str = "fast", out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Compute the variance, Σ (x − mean)² ÷ (n − correction).

    Without `correction` and `out`, the result is a view of what `mean_var` returns, every second element of it. Either
    of them takes another kernel, of the array's library, in its current stream; they exclude `stream`.

    Parameters
    ----------
    correction : float
        0 for the variance of a population, 1 for the unbiased one of a sample. n also counts the NaNs that
        `ignore_nan` leaves out, so the two exclude each other.
    {parameters}

    Returns
    -------
    array
        Of the kind of `x`, with the dtypes of `mean`.

    Examples
    --------
    >>> hone.var(numpy.array([1, 2, 3, 4], "float32"))
    array(1.25, dtype=float32)
    >>> hone.var(numpy.array([1, 2, 3, 4], "float64"), correction=1)
    array(1.66666667)
    """
    if not isinstance(correction, numbers.Real):
        raise TypeError(f"correction: a number is wanted, not the {type(correction).__name__} {correction!r}")
    if (correction or out is not None) and stream is not None:
        raise ValueError("correction and out work in the current stream: make that the one to work in instead")
    if getattr(out, "requires_grad", False):
        raise BufferError("out requires a gradient: pass out.detach()")
    if correction and ignore_nan:
        raise ValueError("correction and ignore_nan exclude each other: how many NaNs there are is not known")
    both = mean_var(
        x, axis=axis, dtype=dtype, keepdims=keepdims, accumulator=accumulator, ignore_nan=ignore_nan,
        numerics=numerics, stream=stream, session=session, copy=copy,
    )  # fmt: skip
    result = both[..., 1]
    if correction:
        n = math.prod(x.shape) // (math.prod(result.shape) or 1)
        with _without_warnings_of(result):
            # As NumPy: infinite, or NaN where the deviations are 0, without a degree of freedom.
            result *= n / (n - correction) if n > correction else float("nan" if n == 0 else "inf")
    if out is None:
        return result
    if tuple(getattr(out, "shape", ())) != tuple(result.shape):
        raise ValueError(f"out has the shape {tuple(out.shape)}; the result's is {tuple(result.shape)}")
    out[...] = result
    return out


@documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
def norm(
    x: Array, /, *, ord: float = 2, axis: Axis = None, dtype: Any = None, keepdims: bool = False,
    accumulator: Any = None, ignore_nan: bool = False, numerics: str = "fast", out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Compute a norm of vectors: Σ |x|, √Σ x² or max |x|.

    Parameters
    ----------
    ord : {1, 2, inf}
        Which of the three.
    {parameters}

    Returns
    -------
    array
        Of the kind of `x`; docs/reductions.md has the dtypes.

    Examples
    --------
    >>> hone.norm(numpy.array([3, -4], "float32"))
    array(5., dtype=float32)
    """
    if ord not in _NORMS:
        raise ValueError(f"ord is {ord!r}; known are 1, 2 and inf")
    return _native.reduce(
        _NORMS[ord], x, axis, keepdims, *optional_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        numerics_number(numerics),
    )  # fmt: skip


@quick(_native.reduce_shortcut, _LOGSUMEXP)
@documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
def logsumexp(
    x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False, accumulator: Any = None,
    ignore_nan: bool = False, numerics: str = "fast", out: Array | None = None, stream: Any = None,
    session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Compute log Σ exp(x) without overflow, of floats. Of no elements it is −∞.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array
        Of the kind of `x`: float32 for floats of 16 and 32 bits, else float64.

    Examples
    --------
    >>> hone.logsumexp(numpy.array([1000, -1000], "float32"))
    array(1000., dtype=float32)
    """
    return _native.reduce(
        _LOGSUMEXP, x, axis, keepdims, *optional_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        numerics_number(numerics),
    )  # fmt: skip


@documented("dtype", "accumulator", "numerics")
def dot(
    a: Array, b: Array, /, *, dtype: Any = None, accumulator: Any = None, numerics: str = "fast",
    out: Array | None = None, stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Compute Σ aᵢ·bᵢ.

    Parameters
    ----------
    a, b : array of shape (n,)
        Of one dtype, on one device.
    {parameters}

    Returns
    -------
    array of shape ()
        Of the kind of `a`, with the dtypes of `sum`.

    Examples
    --------
    >>> hone.dot(numpy.array([1, 2, 3], "float32"), numpy.array([4, 5, 6], "float32"))
    array(32., dtype=float32)
    """
    return _native.dot(
        a, b, *optional_dtypes(dtype, accumulator), out, stream, session, copy, numerics_number(numerics)
    )  # fmt: skip


@documented("dtype", "accumulator", "ignore_nan", "numerics")
def segment_reduce(
    x: Array, offsets: Array, /, op: str = "sum", *, dtype: Any = None, accumulator: Any = None,
    ignore_nan: bool = False, numerics: str = "fast", out: Array | None = None, stream: Any = None,
    session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Reduce each segment ``x[offsets[s]:offsets[s + 1]]``, as the rows of a CSR matrix.

    Parameters
    ----------
    x : array of shape (n,)
    offsets : array of int32 or int64, of shape (segments + 1,)
        Ascending, on the same device. The host does not read them; any others are undefined behaviour, which a
        `Session` with ``validate=True`` finds.
    op : str
        An operation of docs/reductions.md, but for ``'dot'``.
    {parameters}

    Returns
    -------
    array of shape (segments,)
        Of the kind of `x`; docs/reductions.md has the dtypes. Operations with two results have a last axis of two.

    Examples
    --------
    >>> hone.segment_reduce(numpy.arange(6, dtype="float32"), numpy.array([0, 2, 2, 6]))
    array([ 1.,  0., 14.], dtype=float32)
    """
    return _native.segments(
        _native.op_number(op), x, offsets, *optional_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        numerics_number(numerics),
    )  # fmt: skip
