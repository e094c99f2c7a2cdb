"""Kernels of one's own: CUDA C++ that is tuned, verified against a NumPy function, and called with arrays."""

from __future__ import annotations

import inspect
import json
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from . import _native
from ._arrays import _NAMES, dtype_number
from ._parameters import Array
from ._errors import NotTunedError
from ._paths import AnyPath, path_bytes
from ._session import Session, _budget_ms
from ._tuning import Explanation, Progress, Tuning, _reported

Expression = str | int  #: of docs/own-kernel.md, such as ``'4 * (block_x + 2)'``

#: An argument: one of ``in``, ``out``, ``inout``, ``scalar`` and ``extent`` with its name, and what else it has.
Argument = TypedDict(
    "Argument",
    {
        "in": str,
        "out": str,
        "inout": str,
        "scalar": str,
        "extent": Expression,
        "type": Any,
        "elements": Expression,
        "indices_below": Expression,
        "value": float,
    },
    total=False,
)


class Fields(TypedDict, total=False):
    """The fields of docs/own-kernel.md."""

    name: str
    file: AnyPath
    source: str
    entry: str
    parameters: Mapping[str, Sequence[str | int | bool]]
    where: Expression | Sequence[Expression]
    extents: str | Sequence[str]
    arguments: Sequence[Argument]
    block: Expression | Sequence[Expression]
    elements_per_block: Expression | Sequence[Expression]
    elements_per_thread: Expression | Sequence[Expression]
    grid_stride: bool
    dynamic_smem_bytes: Expression
    cluster_blocks: Expression
    dependent_launch: Expression
    alignment: int
    tolerance: float
    inputs: str | Sequence[str]
    reference: str


_KINDS = ("in", "out", "inout", "scalar", "extent")  # in the order of the numbers of the library
_SCALAR, _EXTENT = _KINDS.index("scalar"), _KINDS.index("extent")
_OPTIONS = ("out", "stream", "session", "copy")
_FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn")


class _Described:
    """An argument that was read."""

    def __init__(self, given: Argument) -> None:
        unknown = set(given) - set(Argument.__annotations__)
        kinds = [kind for kind in _KINDS if kind in given]
        if unknown or len(kinds) != 1:
            raise TypeError(
                f"arguments: {given!r} is none: it has one of {', '.join(_KINDS)} with its name, a type, and maybe "
                "elements, indices_below and value"
            )
        self.kind = _KINDS.index(kinds[0])
        self.name = str(given[kinds[0]])  # type: ignore[literal-required]
        if "type" not in given:
            raise TypeError(f"arguments: {self.name} has no type, such as 'float32'")
        self.dtype = dtype_number(given["type"])
        self.elements = str(given["elements"]) if "elements" in given else None
        self.indices_below = str(given["indices_below"]) if "indices_below" in given else None
        self.value = float(given.get("value", 1))
        self.type_name = _NAMES[self.dtype]
        self.is_integer = self.type_name.startswith(("int", "uint"))
        # A reference gets floats in double precision, whatever the kernel works in.
        self.reference_name = "float64" if self.is_array and self.type_name in _FLOATS else self.type_name

    @property
    def is_array(self) -> bool:
        return self.kind < _SCALAR

    @property
    def is_given(self) -> bool:
        """Whether a call passes it."""
        return _KINDS[self.kind] in ("in", "inout", "scalar")

    def for_library(self) -> tuple[int, int, str, str | None, str | None, float, int]:
        return (
            self.kind, self.dtype, self.name, self.elements, self.indices_below, self.value,
            dtype_number(self.reference_name),
        )  # fmt: skip

    def number(self, value: Any) -> float:
        """A scalar of a call as the library takes it, which refuses what the kernel's type cannot be."""
        if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            value = value.item()
        if not isinstance(value, numbers.Real):
            raise TypeError(f"{self.name}: a number is wanted, not a {type(value).__name__}")
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{self.name} is larger than any type of a kernel's scalars can be") from None


def _texts(value: Any) -> list[str]:
    """The texts of an expression, or of several."""
    if isinstance(value, (str, int)):
        return [str(value)]
    return [str(one) for one in value]


def _spelled(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        raise TypeError(f"parameters: {value!r} is no value: integers, texts and booleans are")
    return str(value)


class Kernel(_native.Kernel):
    """A kernel of your own; made by `kernel`, or from the fields alone, without a function.

    Calling it launches the tuned kernel: ``axpy(2.5, x, y)``, with the arguments of the function. What the kernel
    updates in place (``inout``) is updated; what it only writes is a new array, or `out`. Returns the arrays that the
    kernel writes, in its order: one, or a tuple.

    Parameters of a call
    --------------------
    *args, **kwargs
        An array for each ``in`` and ``inout``, a number for each ``scalar``. Arrays are contiguous, of the kernel's
        dtypes, on one device. The extents follow from the first array that has an element for each of their points: its
        size, or its axes, of which the last is the first extent. Others are passed by name: ``n=1000``.
    out : array, or tuple of arrays, optional
        Where to write the ``out`` arguments.
    stream, session, copy
        As in `sum`; only what the kernel reads is ever copied.
    """

    def __init__(self, function: Callable[..., Any] | None = None, /, **fields: Unpack[Fields]) -> None:
        unknown = sorted(set(fields) - set(Fields.__annotations__))
        if unknown:
            raise TypeError(f"a kernel has no field {unknown[0]!r}; known are {', '.join(Fields.__annotations__)}")
        if function is not None and "reference" in fields:
            raise TypeError("the function is the reference: leave out reference=")
        self._function = function
        self._arguments = [_Described(argument) for argument in fields.get("arguments", ())]
        if not self._arguments:
            source = "" if fields.get("source") or fields.get("file") else ", and file= or source="
            raise TypeError(f"a kernel is described by arguments={source}: see help(hone.kernel)")
        self._extents = _texts(fields.get("extents", "n"))
        self._given = [argument for argument in self._arguments if argument.is_given]
        self._signature = self._signature_of(function)
        self._places = self._places_in(self._signature)
        self.__name__ = fields.get("name") or getattr(function, "__name__", None) or fields.get("entry") or "kernel"
        self.__doc__ = getattr(function, "__doc__", None) or type(self).__doc__
        self.__wrapped__ = function
        super().__init__(
            self._library_fields(fields),
            [(name, [_spelled(value) for value in values]) for name, values in fields.get("parameters", {}).items()],
            [argument.for_library() for argument in self._arguments],
            self._extents,
            self._places,
            self.__name__,
            None if function is None else self._write_reference,
        )

    def _library_fields(self, fields: Fields) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        for name, value in fields.items():
            if name in ("arguments", "parameters", "extents") or value is None:
                continue
            if name == "file":
                path = Path(os.fsdecode(path_bytes(value, name)))
                found.append((name, os.fsencode(_beside(self._function, path))))
            elif name == "grid_stride":
                found.append((name, b"true" if value else b"false"))
            else:
                found += [(name, text.encode()) for text in _texts([value] if name == "tolerance" else value)]
        return found

    def _signature_of(self, function: Callable[..., Any] | None) -> inspect.Signature:
        """The parameters of calls: those of the function, with the extents as options behind them."""
        names = [argument.name for argument in self._given]
        for name in names:
            if name in _OPTIONS:
                raise TypeError(f"an argument cannot be called {name}, which is an option of calls: rename it")
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        found = [inspect.Parameter(name, kind) for name in names]
        if function is not None:
            found = list(inspect.signature(function).parameters.values())
            known = [parameter.name for parameter in found]
            missing = [name for name in names if name not in known]
            strange = [name for name in known if name not in names and name not in self._extents]
            if missing or strange:
                raise TypeError(
                    f"the reference takes ({', '.join(known)}); it has to take the arguments that the kernel reads, "
                    f"{', '.join(names)}, and may take the extents, {', '.join(self._extents)}"
                )
        keyword = inspect.Parameter.KEYWORD_ONLY
        called = [parameter for parameter in found if parameter.name not in self._extents]
        extents = [inspect.Parameter(name, keyword, default=None) for name in self._extents]
        return inspect.Signature([*called, *extents])

    def _places_in(self, signature: inspect.Signature) -> list[int] | None:
        """Where calls that name no argument have each of the kernel's; None if some have to be named."""
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [name for name, parameter in signature.parameters.items() if parameter.kind in positional]
        wanted = [argument.name for argument in self._given]
        return [names.index(name) for name in wanted] if sorted(names) == sorted(wanted) else None

    def __repr__(self) -> str:
        return f"<hone.Kernel {self.__name__}{self._signature}>"

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[int | None]]:
        """The values in the kernel's order, and the extents that were given."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}{self._signature}: {error}") from None
        bound.apply_defaults()
        given = bound.arguments
        values = [
            given[argument.name] if argument.is_array else argument.number(given[argument.name])
            for argument in self._given
        ]
        extents = [given[name] for name in self._extents]
        for name, extent in zip(self._extents, extents):
            if extent is not None and not isinstance(extent, numbers.Integral):
                raise TypeError(f"{name}: an integer is wanted, not a {type(extent).__name__}")
        return values, extents

    def call_named(
        self, /, *args: Any, out: Array | Sequence[Array] | None = None, stream: Any = None,
        session: Session | None = None, copy: bool = False, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Make a call that is not by position alone, or refuse it: for the extension, which makes the others itself."""
        values, extents = self._bound(args, kwargs)
        return self.launch_values(values, extents, out, stream, session, copy)

    def reference(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function that is the reference."""
        if self._function is None:
            raise TypeError(f"{self.__name__} has no function as its reference")
        return self._function(*args, **kwargs)

    def problem(self, /, *args: Any, graph: bool = False, out: Any = None, **kwargs: Any) -> _native.Problem:
        """Describe a call: what `tune` tunes. Arrays count by their shape and alignment, not by their elements."""
        values, extents = self._bound(args, kwargs)
        described = self.problem_of_values(values, extents, out)
        described.set_graph(graph)
        return described

    def _session(self, session: Session | None, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        values, _ = self._bound(args, kwargs)
        arrays = [value for argument, value in zip(self._given, values) if argument.is_array]
        if not arrays:
            arrays = list(out) if isinstance(out, tuple) else [out]
        return _native.session_of(session, arrays[0])

    def tune(
        self, /, *args: Any, budget: float = 2.0, progress: Progress | None = None, session: Session | None = None,
        graph: bool = False, out: Any = None, **kwargs: Any,
    ) -> Tuning:  # fmt: skip
        """Find the fastest policy for a call, verify it against the reference, and store it.

        Parameters
        ----------
        *args, **kwargs
            The arguments of the call. The elements of arrays are neither read nor written.
        budget, progress, session, graph
            As in `hone.tune`.
        out : array, or tuple of arrays, optional
            Whose alignment counts; by default that of new arrays.

        Raises
        ------
        ValueError
            If the reference raised an exception, which is its cause, or if it returned arrays of wrong shapes or
            dtypes. Nothing is stored then.
        """
        described = self.problem(*args, graph=graph, out=out, **kwargs)
        session = self._session(session, args, kwargs, out)
        return Tuning(json.loads(session.tune_problem(described, _budget_ms(budget), _reported(progress))))

    def prepare(
        self, /, *args: Any, session: Session | None = None, graph: bool = False, out: Any = None, **kwargs: Any
    ) -> bool:
        """Make sure that a call will neither read the cache nor compile. True if its kernel was measured."""
        described = self.problem(*args, graph=graph, out=out, **kwargs)
        prepared: bool = self._session(session, args, kwargs, out).prepare_problem(described)
        return prepared

    def explain(
        self, /, *args: Any, session: Session | None = None, graph: bool = False, out: Any = None, **kwargs: Any
    ) -> Explanation:
        """Tell why the winner that is stored for a call won, or raise `NotTunedError`."""
        described = self.problem(*args, graph=graph, out=out, **kwargs)
        found = json.loads(self._session(session, args, kwargs, out).stored_tuning(described))
        if found is None:
            raise NotTunedError(f"no tuning is stored for {described}: tune it with {self.__name__}.tune() first")
        return Explanation(Tuning(found))

    def _write_reference(self, operands: list[Any], extents: tuple[int, ...]) -> None:
        """Compute the right results: the library's callback, while it verifies."""
        import numpy

        assert self._function is not None
        given: dict[str, Any] = dict(zip(self._extents, extents))
        written = []
        for argument, operand in zip(self._arguments, operands):
            if argument.kind == _SCALAR:
                given[argument.name] = int(operand) if argument.is_integer else operand
            elif argument.is_array:
                dtype = numpy.dtype(argument.reference_name)
                shape = extents[::-1] if argument.elements is None else (len(operand) // dtype.itemsize,)
                view = numpy.ndarray(shape, dtype, operand)
                if argument.is_given:
                    given[argument.name] = view.copy()  # the function may keep it, the library's memory goes
                if _KINDS[argument.kind] != "in":
                    written.append((argument.name, view))
        parameters = inspect.signature(self._function).parameters.values()
        positional = [given[p.name] for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        keywords = {p.name: given[p.name] for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
        with numpy.errstate(all="ignore"):  # inputs have infinities and NaNs
            results = self._function(*positional, **keywords)
        _copy_results(results if isinstance(results, (tuple, list)) else (results,), written)


def _copy_results(results: Iterable[Any], written: list[tuple[str, Any]]) -> None:
    import numpy

    results = list(results)
    if len(results) != len(written):
        names = ", ".join(name for name, _ in written)
        raise ValueError(f"the reference returned {len(results)} arrays; {len(written)} are wanted: {names}")
    for result, (name, view) in zip(results, written):
        if result is None:
            raise TypeError(f"the reference returned None in the place of {name}: it returns what the kernel writes")
        array = numpy.asarray(result)
        if array.shape != view.shape:
            raise ValueError(f"the reference returned {name} in the shape {array.shape}; {view.shape} is wanted")
        if not numpy.can_cast(array.dtype, view.dtype, "same_kind"):
            raise TypeError(f"the reference returned {name} in the dtype {array.dtype}; {view.dtype} is wanted")
        view[...] = array


def _beside(function: Callable[..., Any] | None, path: Path) -> Path:
    """A relative path is one beside the file of the function, if there is such a file."""
    if path.is_absolute() or function is None:
        return path
    try:
        return Path(inspect.getfile(function)).parent / path
    except (OSError, TypeError):
        return path


def kernel(**fields: Unpack[Fields]) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a CUDA kernel of your own callable, with the decorated NumPy function as its reference.

    The fields are those of docs/own-kernel.md. The function takes, by their names, the arguments that the kernel reads
    (``in``, ``inout`` and ``scalar``), and may take extents; it returns what the kernel writes. While a tuning
    verifies, it gets floats as float64, integers and bools as they are, arrays without ``elements`` in the shape of the
    extents (the first extent is the last axis), and others as lists.

    Parameters
    ----------
    file : path
        The source; a relative path is one beside the file of the function.
    source : str
        Or the source itself.
    parameters : dict
        Names with their values, the default first.
    arguments : list of dict
        In the kernel's order: ``{"in": "x", "type": "float32"}``; ``out``, ``inout``, ``scalar`` and ``extent``
        likewise.
    name, entry, where, extents, block, elements_per_block, elements_per_thread, grid_stride
    dynamic_smem_bytes, cluster_blocks, dependent_launch, alignment, tolerance, inputs
        As in docs/own-kernel.md.

    Returns
    -------
    callable
        A decorator, which makes a `Kernel` of the function.

    Examples
    --------
    >>> @hone.kernel(
    ...     source='''extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
    ...       const int i = blockIdx.x * block_threads + threadIdx.x;
    ...       if (i < n) y[i] = a * x[i] + y[i];
    ...     }''',
    ...     parameters={"block_threads": [256, 128, 512]},
    ...     arguments=[
    ...         {"scalar": "a", "type": "float32"},
    ...         {"in": "x", "type": "float32"},
    ...         {"inout": "y", "type": "float32"},
    ...         {"extent": "n", "type": "int32"},
    ...     ],
    ... )
    ... def axpy(a, x, y):
    ...     return a * x + y
    >>> axpy(2.5, numpy.array([1, 2], "float32"), numpy.array([10, 20], "float32"))
    array([12.5, 25. ], dtype=float32)
    >>> axpy.reference(2.5, numpy.array([1, 2]), numpy.array([10, 20]))
    array([12.5, 25. ])
    """

    def decorate(function: Callable[..., Any]) -> Kernel:
        return Kernel(function, **fields)

    return decorate
