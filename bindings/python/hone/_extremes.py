"""The smallest and the largest elements, and their indices. Each is one call of the library; see docs/python.md."""

from __future__ import annotations

from typing import Any

from . import _native
from ._parameters import Array, Axis, documented, quick
from ._session import Session

_MIN, _MAX, _MINMAX, _ARGMIN, _ARGMAX = map(_native.op_number, ("min", "max", "minmax", "argmin", "argmax"))


@quick(_native.reduce_shortcut, _MIN)
@documented("x", "axis", "keepdims", "ignore_nan")
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


@quick(_native.reduce_shortcut, _MAX)
@documented("x", "axis", "keepdims", "ignore_nan")
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


@quick(_native.reduce_shortcut, _MINMAX)
@documented("x", "axis", "keepdims", "ignore_nan")
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


@quick(_native.reduce_shortcut, _ARGMIN)
@documented("x", "axis", "keepdims", "ignore_nan")
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


@quick(_native.reduce_shortcut, _ARGMAX)
@documented("x", "axis", "keepdims", "ignore_nan")
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
