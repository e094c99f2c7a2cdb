"""The calls: reductions, softmax, transposes. Each is one call of the library; see docs/python.md."""

from __future__ import annotations

import contextlib
import functools
import math
import numbers
from collections.abc import Callable
from typing import Any, TypeVar

from . import _native
from ._arrays import dtype_number
from ._session import Session

Array = Any  #: whatever holds an array: NumPy, PyTorch, CuPy, DLPack, ``__cuda_array_interface__``
Axis = int | tuple[int, ...] | None

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PARAMETERS = {
    "x": """x : array
    Of floats, integers or bool, in host memory or on a CUDA device. It is not copied.""",
    "axis": """axis : int or tuple of int, optional
    The axes to reduce; by default all of them.""",
    "keepdims": """keepdims : bool
    Leave the reduced axes in the result, with a size of 1.""",
    "dtype": """dtype : dtype, optional
    Of the result, where the operation has a choice; by default that of `out`, or else as in docs/reductions.md.
    ``'float32'``, ``numpy.float32``, ``torch.float32`` and ``'f32'`` mean the same.""",
    "accumulator": """accumulator : dtype, optional
    In which the operation accumulates.""",
    "ignore_nan": """ignore_nan : bool
    Count NaNs as absent. By default one NaN makes the result NaN.""",
    "numerics": """numerics : {'fast', 'reproducible'}
    Whether every kernel and device has to give the same bits (docs/numerics.md), or each winner its own.""",
    "out": """out : array, optional
    Where to write the result: of its shape and dtype, contiguous, on the same device. It is returned.""",
    "stream": """stream : optional
    The stream to work in: of PyTorch or CuPy, an object with ``__cuda_stream__``, or an address. By default the current
    stream of the library that the array belongs to.""",
    "session": """session : Session, optional
    By default one for each device.""",
    "copy": """copy : bool
    Copy an array whose strides no kernel takes. By default it is an error.""",
}


def _documented(*names: str) -> Callable[[_Function], _Function]:
    """Put the parameters that calls share in the place of ``{parameters}`` in a docstring."""

    def decorate(function: _Function) -> _Function:
        text = "\n".join(_PARAMETERS[name] for name in (*names, "out", "stream", "session", "copy"))
        assert function.__doc__ is not None
        function.__doc__ = function.__doc__.replace("{parameters}", "\n    ".join(text.split("\n")))
        return function

    return decorate


_SUM, _PRODUCT, _MIN, _MAX, _MINMAX, _ARGMIN, _ARGMAX, _MEAN, _MEAN_VARIANCE, _LOGSUMEXP, _ANY, _ALL, _COUNT = (
    _native.op_number(name)
    for name in (
        "sum", "product", "min", "max", "minmax", "argmin", "argmax", "mean", "mean_variance", "logsumexp", "any",
        "all", "count_nonzero",
    )
)  # fmt: skip
_NORMS = {1: _native.op_number("l1_norm"), 2: _native.op_number("l2_norm"), float("inf"): _native.op_number("max_norm")}


def _dtype(dtype: Any, name: str = "dtype") -> int:
    return -1 if dtype is None else dtype_number(dtype, name)


def _dtypes(dtype: Any, accumulator: Any) -> tuple[int, int]:
    return _dtype(dtype), _dtype(accumulator, "accumulator")


_NUMERICS = ("fast", "reproducible")


def _numerics(numerics: str) -> int:
    if numerics not in _NUMERICS:
        raise ValueError(f"numerics is {numerics!r}; known are {', '.join(_NUMERICS)}")
    return _NUMERICS.index(numerics)


def _quick(shortcut: Callable[[Any, Any], Any], what: int) -> Callable[[_Function], _Function]:
    """Run calls without the Python code of the function where they give none but the usual arguments."""

    def decorate(function: _Function) -> _Function:
        quick: _Function = shortcut(function, what)
        functools.update_wrapper(quick, function)
        return quick

    return decorate


@_quick(_native.reduce_shortcut, _SUM)
@_documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
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
        _SUM, x, axis, keepdims, *_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        _numerics(numerics),
    )  # fmt: skip


@_quick(_native.reduce_shortcut, _PRODUCT)
@_documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
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
        _PRODUCT, x, axis, keepdims, *_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        _numerics(numerics),
    )  # fmt: skip


@_quick(_native.reduce_shortcut, _MIN)
@_documented("x", "axis", "keepdims", "ignore_nan")
def min(
    x: Array, /, *, axis: Axis = None, keepdims: bool = False, ignore_nan: bool = False, out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Find the smallest element. Of no elements there is none, which is a ValueError.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array
        Of the kind and dtype of `x`.

    Examples
    --------
    >>> hone.min(numpy.array([3, 1, 2], "int32"))
    array(1, dtype=int32)
    """
    return _native.reduce(_MIN, x, axis, keepdims, -1, -1, ignore_nan, out, stream, session, copy)


@_quick(_native.reduce_shortcut, _MAX)
@_documented("x", "axis", "keepdims", "ignore_nan")
def max(
    x: Array, /, *, axis: Axis = None, keepdims: bool = False, ignore_nan: bool = False, out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Find the largest element. Of no elements there is none, which is a ValueError.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array
        Of the kind and dtype of `x`.

    Examples
    --------
    >>> hone.max(numpy.array([3, 1, 2], "int32"), keepdims=True)
    array([3], dtype=int32)
    """
    return _native.reduce(_MAX, x, axis, keepdims, -1, -1, ignore_nan, out, stream, session, copy)


@_quick(_native.reduce_shortcut, _MINMAX)
@_documented("x", "axis", "keepdims", "ignore_nan")
def minmax(
    x: Array, /, *, axis: Axis = None, keepdims: bool = False, ignore_nan: bool = False, out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Find the smallest and the largest element in one pass.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array
        Of the kind and dtype of `x`, with a last axis of two: the minimum and the maximum.

    Examples
    --------
    >>> hone.minmax(numpy.array([3, 1, 2], "int32"))
    array([1, 3], dtype=int32)
    """
    return _native.reduce(_MINMAX, x, axis, keepdims, -1, -1, ignore_nan, out, stream, session, copy)


@_quick(_native.reduce_shortcut, _ARGMIN)
@_documented("x", "axis", "keepdims", "ignore_nan")
def argmin(
    x: Array, /, *, axis: int | None = None, keepdims: bool = False, ignore_nan: bool = False, out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Find the index of the first of the smallest elements; without an axis, in the flattened array.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array of int64
        Of the kind of `x`.

    Examples
    --------
    >>> hone.argmin(numpy.array([3, 1, 2], "int32"))
    array(1)
    """
    return _native.reduce(_ARGMIN, x, axis, keepdims, -1, -1, ignore_nan, out, stream, session, copy)


@_quick(_native.reduce_shortcut, _ARGMAX)
@_documented("x", "axis", "keepdims", "ignore_nan")
def argmax(
    x: Array, /, *, axis: int | None = None, keepdims: bool = False, ignore_nan: bool = False, out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Find the index of the first of the largest elements; without an axis, in the flattened array.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array of int64
        Of the kind of `x`.

    Examples
    --------
    >>> hone.argmax(numpy.array([[1, 5], [7, 2]], "int32"), axis=1)
    array([1, 0])
    """
    return _native.reduce(_ARGMAX, x, axis, keepdims, -1, -1, ignore_nan, out, stream, session, copy)


@_quick(_native.reduce_shortcut, _MEAN)
@_documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
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
        _MEAN, x, axis, keepdims, *_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        _numerics(numerics),
    )  # fmt: skip


@_quick(_native.reduce_shortcut, _MEAN_VARIANCE)
@_documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
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
        _MEAN_VARIANCE, x, axis, keepdims, *_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        _numerics(numerics),
    )  # fmt: skip


def _without_warnings_of(array: Array) -> contextlib.AbstractContextManager[Any]:
    """NumPy warns of NaNs that a multiplication makes; other libraries do not."""
    if not type(array).__module__.startswith("numpy"):
        return contextlib.nullcontext()
    import numpy

    return numpy.errstate(invalid="ignore")


@_documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
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


@_documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
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
        _NORMS[ord], x, axis, keepdims, *_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        _numerics(numerics),
    )  # fmt: skip


@_quick(_native.reduce_shortcut, _LOGSUMEXP)
@_documented("x", "axis", "dtype", "keepdims", "accumulator", "ignore_nan", "numerics")
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
        _LOGSUMEXP, x, axis, keepdims, *_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        _numerics(numerics),
    )  # fmt: skip


@_quick(_native.reduce_shortcut, _ANY)
@_documented("x", "axis", "keepdims", "ignore_nan")
def any(
    x: Array, /, *, axis: Axis = None, keepdims: bool = False, ignore_nan: bool = False, out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Tell whether some element is not zero. NaN is not zero.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array of bool
        Of the kind of `x`.

    Examples
    --------
    >>> hone.any(numpy.array([[0, 1], [0, 0]], "int32"), axis=1)
    array([ True, False])
    """
    return _native.reduce(_ANY, x, axis, keepdims, -1, -1, ignore_nan, out, stream, session, copy)


@_quick(_native.reduce_shortcut, _ALL)
@_documented("x", "axis", "keepdims", "ignore_nan")
def all(
    x: Array, /, *, axis: Axis = None, keepdims: bool = False, ignore_nan: bool = False, out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Tell whether no element is zero.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array of bool
        Of the kind of `x`.

    Examples
    --------
    >>> hone.all(numpy.array([[1, 1], [0, 1]], "int32"), axis=1)
    array([ True, False])
    """
    return _native.reduce(_ALL, x, axis, keepdims, -1, -1, ignore_nan, out, stream, session, copy)


@_quick(_native.reduce_shortcut, _COUNT)
@_documented("x", "axis", "keepdims", "ignore_nan")
def count_nonzero(
    x: Array, /, *, axis: Axis = None, keepdims: bool = False, ignore_nan: bool = False, out: Array | None = None,
    stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Count the elements that are not zero.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array of int64
        Of the kind of `x`.

    Examples
    --------
    >>> hone.count_nonzero(numpy.array([0, 3, 0, 4], "int32"))
    array(2)
    """
    return _native.reduce(_COUNT, x, axis, keepdims, -1, -1, ignore_nan, out, stream, session, copy)


@_documented("dtype", "accumulator", "numerics")
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
    return _native.dot(a, b, *_dtypes(dtype, accumulator), out, stream, session, copy, _numerics(numerics))


@_quick(_native.softmax_shortcut, False)
@_documented("x", "dtype", "numerics")
def softmax(
    x: Array, /, *, axis: Axis = -1, scale: float = 1.0, dtype: Any = None, numerics: str = "fast",
    out: Array | None = None, stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Compute exp(scale·x) ÷ Σ exp(scale·x) along an axis, of floats.

    Parameters
    ----------
    axis : int, tuple of int or None
        Along which results add up to 1; the last by default, None for the whole array.
    scale : float
        Multiplies each element first; of a magnitude below 2^126, or 2^1022 for float64.
    {parameters}

    Returns
    -------
    array
        Of the kind, shape and dtype of `x`. `out` may be `x`.

    Examples
    --------
    >>> hone.softmax(numpy.array([[0, 0], [3, 3]], "float32"))
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """
    return _native.softmax(False, x, axis, scale, _dtype(dtype), out, stream, session, copy, _numerics(numerics))


@_quick(_native.softmax_shortcut, True)
@_documented("x", "dtype", "numerics")
def log_softmax(
    x: Array, /, *, axis: Axis = -1, scale: float = 1.0, dtype: Any = None, numerics: str = "fast",
    out: Array | None = None, stream: Any = None, session: Session | None = None, copy: bool = False,
) -> Array:  # fmt: skip
    """Compute the logarithm of `softmax`, accurate far below 0.

    Parameters
    ----------
    axis : int, tuple of int or None
        The last by default, None for the whole array.
    scale : float
        Multiplies each element first; of a magnitude below 2^126, or 2^1022 for float64.
    {parameters}

    Returns
    -------
    array
        Of the kind, shape and dtype of `x`. `out` may be `x`.

    Examples
    --------
    >>> hone.log_softmax(numpy.array([0, 1000], "float32"))
    array([-1000.,     0.], dtype=float32)
    """
    return _native.softmax(True, x, axis, scale, _dtype(dtype), out, stream, session, copy, _numerics(numerics))


@_documented("x")
def rms_norm(
    x: Array, /, weight: Array | None = None, residual: Array | None = None, *, eps: float = 1e-6,
    out: Array | None = None, sum: Array | None = None, stream: Any = None, session: Session | None = None,
    copy: bool = False,
) -> Array | tuple[Array, Array]:  # fmt: skip
    """Compute x ÷ √(mean(x²) + eps) · weight along the last axis, of float16, bfloat16 or float32.

    Parameters
    ----------
    weight : array of shape (columns,), optional
        Multiplies each row.
    residual : array of the shape and strides of `x`, optional
        Is added to `x` first; what is normalised is the sum.
    eps : float
        Added to the mean of the squares.
    sum : array, optional
        Where x + residual goes, with the strides of `out`. It may be `residual`.
    {parameters}

    Returns
    -------
    array, or a tuple of two
        Of the kind, shape and dtype of `x`; with a residual, also x + residual. `out` may be `x`.

    Examples
    --------
    >>> hone.rms_norm(numpy.array([[1, 1], [3, 3]], "float32"), eps=0)
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _native.rms_norm(x, weight, residual, eps, out, sum, stream, session, copy)


@_documented("x")
def transpose(
    x: Array, /, *, out: Array | None = None, stream: Any = None, session: Session | None = None, copy: bool = False
) -> Array:
    """Swap the last two axes, and write the elements in that order.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    array of shape (…, columns, rows)
        Of the kind and dtype of `x`, which has the shape (…, rows, columns). `out` may be a square `x`.

    Examples
    --------
    >>> hone.transpose(numpy.array([[1, 2, 3], [4, 5, 6]], "int32"))
    array([[1, 4],
           [2, 5],
           [3, 6]], dtype=int32)
    """
    return _native.transpose(x, out, stream, session, copy)


@_documented("dtype", "accumulator", "ignore_nan", "numerics")
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
        _native.op_number(op), x, offsets, *_dtypes(dtype, accumulator), ignore_nan, out, stream, session, copy,
        _numerics(numerics),
    )  # fmt: skip
