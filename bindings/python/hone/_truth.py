"""Whether elements are zero, and how many are not. Each is one call of the library; see docs/python.md."""

from __future__ import annotations

from typing import Any

from . import _native
from ._parameters import Array, Axis, documented, quick
from ._session import Session

_ANY, _ALL, _COUNT = map(_native.op_number, ("any", "all", "count_nonzero"))


@quick(_native.reduce_shortcut, _ANY)
@documented("x", "axis", "keepdims", "ignore_nan")
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


@quick(_native.reduce_shortcut, _ALL)
@documented("x", "axis", "keepdims", "ignore_nan")
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


@quick(_native.reduce_shortcut, _COUNT)
@documented("x", "axis", "keepdims", "ignore_nan")
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
