"""Reductions that a program puts together: several in one pass, and by expressions of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _native
from ._parameters import Array, documented, optional_dtype
from ._session import Session


class Fused:
    """Several reductions over one array in one pass; made by `fuse`."""

    def __init__(self, ops: Sequence[str]) -> None:
        if not ops:
            raise ValueError("no operation to fuse")
        self.ops = tuple(ops)
        self._numbers = [_native.op_number(op) for op in self.ops]

    def __repr__(self) -> str:
        return f"hone.fuse({', '.join(map(repr, self.ops))})"

    @documented("x", "ignore_nan")
    def __call__(
        self, x: Array, /, *, ignore_nan: bool = False, out: Sequence[Array] | None = None, stream: Any = None,
        session: Session | None = None, copy: bool = False,
    ) -> tuple[Array, ...]:  # fmt: skip
        """Reduce all elements. The results are in the order of the operations; `out` has an array for each."""
        return _native.fused(self._numbers, ignore_nan, x, out, stream, session, copy)


def fuse(*ops: str) -> Fused:
    """Make a function that computes one to eight reductions of one array in one pass.

    Parameters
    ----------
    *ops : str
        Operations of docs/reductions.md, but for ``'dot'``.

    Returns
    -------
    Fused
        Call it with an array; it returns a tuple of arrays.

    Examples
    --------
    >>> total, largest = hone.fuse("sum", "max")(numpy.array([3, 1, 2], "float32"))
    >>> float(total), float(largest)
    (6.0, 3.0)
    """
    return Fused(ops)


class Reduction(_native.Reduction):
    """A reduction by CUDA C++ expressions: finish(combine of all map(x, i), n).

    Expressions may use ``Acc``, the accumulator's type, and what `declarations` defines; they include no headers. They
    are compiled and verified at the first call, and tuned and cached as the other reductions are.

    Parameters
    ----------
    name : str
        Letters, digits and underscores; names the reduction in messages and in the cache.
    combine : str
        Combines ``a`` and ``b``, both ``Acc``. It must be associative and commutative, which a tuning checks.
    identity : str
        The identity of `combine`.
    map : str
        Maps the element ``x`` at index ``i`` to an ``Acc``. Small floats come as float, bool as bool.
    finish : str
        Computes the result from ``acc`` and the number of elements ``n``.
    declarations : str
        Functions and types.
    accumulator : dtype
        float32, float64, or an integer of 32 or 64 bits.
    dtype : dtype, optional
        Of the result; by default the accumulator's.
    relative_tolerance : float
        How far a result may be from that of the reference. 0 allows the rounding error of a sum of positive numbers.

    Examples
    --------
    >>> at_least_one = hone.Reduction("at_least_one", "a * b", "1.0f", map="1.0f - x", finish="1.0f - acc")
    >>> at_least_one(numpy.array([0.5, 0.5], "float32"))
    array(0.75, dtype=float32)
    """

    def __init__(
        self, name: str, combine: str, identity: str, *, map: str = "x", finish: str = "acc", declarations: str = "",
        accumulator: Any = "float32", dtype: Any = None, relative_tolerance: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(
            name, map, combine, identity, finish, declarations, optional_dtype(accumulator, "accumulator"),
            optional_dtype(dtype),
            relative_tolerance,
        )  # fmt: skip
        self.name = name

    def __repr__(self) -> str:
        return f"<hone.Reduction {self.name}>"

    @documented("x")
    def __call__(
        self, x: Array, /, *, out: Array | None = None, stream: Any = None, session: Session | None = None,
        copy: bool = False,
    ) -> Array:  # fmt: skip
        """Reduce all elements.

        Parameters
        ----------
        {parameters}

        Returns
        -------
        array of shape ()
            Of the kind of `x`.
        """
        return self.reduce(x, out, stream, session, copy)
