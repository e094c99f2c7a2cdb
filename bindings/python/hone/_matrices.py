"""Softmax, RMS norms and transposes. Each is one call of the library; see docs/python.md."""

from __future__ import annotations

from typing import Any

from . import _native
from ._parameters import Array, Axis, documented, numerics_number, optional_dtype, quick
from ._session import Session


@quick(_native.softmax_shortcut, False)
@documented("x", "dtype", "numerics")
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
    return _native.softmax(
        False, x, axis, scale, optional_dtype(dtype), out, stream, session, copy, numerics_number(numerics)
    )  # fmt: skip


@quick(_native.softmax_shortcut, True)
@documented("x", "dtype", "numerics")
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
    return _native.softmax(
        True, x, axis, scale, optional_dtype(dtype), out, stream, session, copy, numerics_number(numerics)
    )  # fmt: skip


@documented("x")
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


@documented("x")
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
