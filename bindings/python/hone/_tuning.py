"""Tuning ahead of the calls, and what a tuning found out."""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable
from typing import Any

from . import _native
from ._parameters import Array, Axis, numerics_number, optional_dtype, optional_dtypes
from ._composed import Fused, Reduction
from ._errors import NotTunedError
from ._session import Session, _budget_ms

Progress = Callable[[str, int, int, float], object]
Operation = str | Fused | Reduction
_CALLS = {"prod": "product", "mean_var": "mean_variance", "var": "mean_variance", "norm": "l2_norm"}
_PHASES = ("compiling", "measuring", "verifying")


class Tuning:
    """The result of a tuning: every candidate, predicted and measured, with its verdict and the reason.

    Attributes
    ----------
    problem : str
        The call that was tuned.
    objective : str
        What the winner was chosen by: ``'time'`` or ``'energy'``.
    trials : list of dict
        Best first, as ``pandas.DataFrame`` takes them: ``policy``, ``predicted_us``, ``median_us``, ``energy_uj`` (of a
        call; 0 where it was not measured), ``verdict``, ``reason``, …
    winner : dict or None
        The trial that later calls are dispatched to.
    is_tuned : bool
        False if the budget allowed for one candidate only.
    search_end : str
        Why no further candidates were measured.
    roofline_us : float
        What memory bandwidth and launch cost allow; 0 if that is not known.
    rank_correlation : float
        Spearman's, of predicted with measured times.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.problem: str = found["problem"]
        self.objective: str = found["objective"]
        self.trials: list[dict[str, Any]] = found["trials"]
        self.winner = None if found["winner"] is None else self.trials[found["winner"]]
        self.is_tuned: bool = found["is_tuned"]
        self.search_end: str = found["search_end"]
        self.roofline_us: float = found["roofline_us"]
        self.rank_correlation: float = found["rank_correlation"]

    def explain(self) -> Explanation:
        """Why the winner won and the others lost: text, and a table in notebooks."""
        return Explanation(self)

    def __repr__(self) -> str:
        time = "no winner" if self.winner is None else f"{self.winner['median_us']:.3g} µs"
        return f"<hone.Tuning of {self.problem}: {time}>"

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()


class Explanation:
    """A tuning for people: ``str()`` has a line for each candidate, notebooks show a table."""

    _COLUMNS = ("verdict", "median µs", "predicted µs", "blocks", "registers", "policy", "reason")

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                "winner" if trial is self.tuning.winner else trial["verdict"],
                f"{trial['median_us']:.3g}" if trial["samples"] else "",
                f"{trial['predicted_us']:.3g}",
                str(trial["max_blocks"]),
                str(trial["registers"]),
                trial["policy"] if trial["policies"] == 1 else f"{trial['policies']} policies",
                trial["reason"],
            )
            for trial in self.tuning.trials
        ]

    def _summary(self) -> str:
        roofline = self.tuning.roofline_us
        return (
            f"{self.tuning.problem}: {self.tuning.search_end}"
            + (f"; memory allows {roofline:.3g} µs" if roofline else "")
            + f"; rank correlation of the model {self.tuning.rank_correlation:.2f}"
        )

    def __str__(self) -> str:
        table = [self._COLUMNS, *self._rows()]
        widths = [max(len(row[i]) for row in table) for i in range(len(self._COLUMNS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
        return "\n".join([self._summary(), *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(cells: tuple[str, ...], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self._rows())
        return (
            f"<table><caption>{html.escape(self._summary())}</caption>"
            f"<thead>{row(self._COLUMNS, 'th')}</thead><tbody>{body}</tbody></table>"
        )


def print_progress(phase: str, done: int, total: int, best_us: float) -> None:
    """Show the progress of a tuning in one line: ``tune(…, progress=hone.print_progress)``."""
    best = f", best {best_us:.3g} µs" if best_us else ""
    ends = "\n" if phase == "verifying" and done == total else ""
    print(f"\r{phase} {done}/{total}{best}".ljust(60), end=ends, file=sys.stderr, flush=True)


def _reported(progress: Progress | None) -> Callable[[int, int, int, float], object] | None:
    """The library's callback for a caller's function."""
    if progress is None:
        return None
    return lambda phase, done, total, best_us: progress(_PHASES[phase], done, total, best_us)


def problem(
    op: Operation, x: Array, offsets: Array | None = None, /, *, axis: Axis | Any = ..., dtype: Any = None,
    accumulator: Any = None, ignore_nan: bool = False, numerics: str = "fast", weight: bool = False,
    residual: bool = False, graph: bool = False,
) -> _native.Problem:  # fmt: skip
    """Describe a call: what `tune` tunes and `prepare` prepares.

    Parameters
    ----------
    op : str, Fused or Reduction
        ``'softmax'``, ``'log_softmax'``, ``'transpose'``, ``'rms_norm'``, the name of a call such as ``'prod'``, an
        operation of docs/reductions.md, or what `fuse` and `Reduction` made, which take no axis.
    x : array
        An array as the calls will have: its device, dtype, shape, strides and alignment count, its elements do not.
    offsets : array, optional
        For `segment_reduce`.
    weight, residual : bool
        Whether calls of `rms_norm` will have them.
    axis, dtype, accumulator, ignore_nan, numerics
        As the calls will have them.
    graph : bool
        For calls that will be captured into a CUDA graph.

    Examples
    --------
    >>> print(hone.problem("sum", numpy.zeros((8, 16), "float32"), axis=1))
    reduce_rows sum f32 n=8×16
    """
    if not isinstance(op, (str, Fused, Reduction)):
        raise TypeError(
            "op: the name of an operation, or what hone.fuse or hone.Reduction made is wanted, not a "
            f"{type(op).__name__}"
        )
    if not isinstance(op, str):
        if axis is not ... or dtype is not None or accumulator is not None or offsets is not None:
            raise TypeError(f"{op!r} reduces all elements and has its own dtypes: give none, and no axis or offsets")
        if numerics != "fast":
            raise ValueError(f"{op!r} has no reproducible numerics")
        made = op.problem(x) if isinstance(op, Reduction) else _native.fused_problem(op._numbers, ignore_nan, x)
    elif op in ("softmax", "log_softmax"):
        made = _native.softmax_problem(
            op == "log_softmax", x, -1 if axis is ... else axis, optional_dtype(dtype), numerics_number(numerics)
        )
    elif op == "transpose":
        made = _native.transpose_problem(x)
    elif op == "rms_norm":
        made = _native.rms_norm_problem(x, weight, residual)
    else:
        number = _native.op_number(_CALLS.get(op, op))
        if offsets is None:
            made = _native.reduce_problem(
                number, x, None if axis is ... else axis, *optional_dtypes(dtype, accumulator), ignore_nan,
                numerics_number(numerics),
            )  # fmt: skip
        else:
            made = _native.segments_problem(
                number, x, offsets, *optional_dtypes(dtype, accumulator), ignore_nan, numerics_number(numerics)
            )
    made.set_graph(graph)
    return made


def tune(
    op: Operation, x: Array, offsets: Array | None = None, /, *, axis: Axis | Any = ..., dtype: Any = None,
    accumulator: Any = None, ignore_nan: bool = False, numerics: str = "fast", weight: bool = False,
    residual: bool = False, graph: bool = False, budget: float = 2.0, progress: Progress | None = None,
    session: Session | None = None,
) -> Tuning:  # fmt: skip
    """Find the fastest kernel for a call, store it, and dispatch later calls to it.

    Parameters
    ----------
    op, x, offsets, axis, dtype, accumulator, ignore_nan, numerics, graph
        Describe the call, as in `problem`. The elements of `x` are not read.
    budget : float
        Seconds to spend.
    progress : callable, optional
        Called with the phase (``'compiling'``, ``'measuring'`` or ``'verifying'``), how many steps of it are done, how
        many it has, and the best time so far in µs. What it raises ends the tuning. It must not call the session that
        tunes. See `print_progress`.
    session : Session, optional
        By default that of the device of `x`.

    Returns
    -------
    Tuning

    Examples
    --------
    >>> tuning = hone.tune("sum", numpy.zeros(4096, "float32"), budget=0.1)
    >>> tuning.winner["verdict"]
    'ok'
    """
    described = problem(
        op, x, offsets, axis=axis, dtype=dtype, accumulator=accumulator, ignore_nan=ignore_nan, numerics=numerics,
        weight=weight, residual=residual, graph=graph,
    )  # fmt: skip
    found = _native.session_of(session, x).tune_problem(described, _budget_ms(budget), _reported(progress))
    return Tuning(json.loads(found))


def prepare(
    op: Operation, x: Array, offsets: Array | None = None, /, *, axis: Axis | Any = ..., dtype: Any = None,
    accumulator: Any = None, ignore_nan: bool = False, numerics: str = "fast", weight: bool = False,
    residual: bool = False, graph: bool = False, session: Session | None = None,
) -> bool:  # fmt: skip
    """Make sure that a call will neither read the cache nor compile. The parameters are those of `tune`.

    Returns
    -------
    bool
        True if the kernel was measured for this class of calls.
    """
    described = problem(
        op, x, offsets, axis=axis, dtype=dtype, accumulator=accumulator, ignore_nan=ignore_nan, numerics=numerics,
        weight=weight, residual=residual, graph=graph,
    )  # fmt: skip
    return _native.session_of(session, x).prepare_problem(described)


def explain(
    op: Operation, x: Array, offsets: Array | None = None, /, *, axis: Axis | Any = ..., dtype: Any = None,
    accumulator: Any = None, ignore_nan: bool = False, numerics: str = "fast", weight: bool = False,
    residual: bool = False, graph: bool = False, session: Session | None = None,
) -> Explanation:  # fmt: skip
    """Tell why the winner that is stored for a call won, and why others lost. The parameters are those of `tune`.

    Raises
    ------
    NotTunedError
        If the cache has no tuning for the call.
    """
    described = problem(
        op, x, offsets, axis=axis, dtype=dtype, accumulator=accumulator, ignore_nan=ignore_nan, numerics=numerics,
        weight=weight, residual=residual, graph=graph,
    )  # fmt: skip
    found = json.loads(_native.session_of(session, x).stored_tuning(described))
    if found is None:
        raise NotTunedError(f"no tuning is stored for {described}: tune it with hone.tune() first")
    return Explanation(Tuning(found))
