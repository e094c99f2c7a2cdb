"""The extension module: arrays of Python to calls of libhone.so.0. The package's other modules are its interface."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

class Problem:
    """A call without its arrays: what can be prepared and tuned."""

    def set_graph(self, is_graph: bool) -> None: ...

class Session:
    def __init__(
        self,
        device: str,
        on_miss: int | None,
        tune_budget_ms: int | None,
        cache: bytes | None,
        capture_workspaces: int | None,
        cache_read_only: bool,
        validate: bool,
        objective: int | None,
    ) -> None: ...
    @property
    def device(self) -> str:
        """The name of the device: ``'host'``, ``'cuda:0'``, …"""

    def pin(self) -> None: ...
    def facts_json(self) -> str: ...
    def counters_json(self) -> str: ...
    def synchronize(self, stream: int = 0) -> None:
        """Wait until all work in `stream` (its address) is done, and raise what earlier launches failed with."""

    def prepare_problem(self, problem: Problem) -> bool: ...
    def tune_problem(
        self, problem: Problem, budget_ms: int, progress: Callable[[int, int, int, float], object] | None
    ) -> str: ...
    def stored_tuning(self, problem: Problem) -> str: ...

class Reduction:
    def __init__(
        self, name: str, map: str, combine: str, identity: str, finish: str, declarations: str, accumulator: int,
        result: int, relative_tolerance: float,
    ) -> None: ...  # fmt: skip
    def reduce(self, x: Any, out: Any, stream: Any, session: Any, copy: bool) -> Any: ...
    def problem(self, x: Any) -> Problem: ...

class Kernel:
    def __init__(
        self,
        fields: Sequence[tuple[str, bytes]],
        parameters: Sequence[tuple[str, Sequence[str]]],
        arguments: Sequence[tuple[int, int, str, str | None, str | None, float, int]],
        extents: Sequence[str],
        places: Sequence[int] | None,
        name: str,
        reference: Callable[[list[Any], tuple[int, ...]], None] | None,
    ) -> None: ...
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...
    def launch_values(
        self, values: Sequence[Any], extents: Sequence[int | None], out: Any, stream: Any, session: Any, copy: bool
    ) -> Any: ...
    def problem_of_values(self, values: Sequence[Any], extents: Sequence[int | None], out: Any) -> Problem: ...

def reduce(
    op: int, x: Any, axis: Any, keepdims: bool, dtype: int, accumulator: int, ignore_nan: bool, out: Any, stream: Any,
    session: Any, copy: bool, numerics: int = 0,
) -> Any: ...  # fmt: skip
def dot(
    a: Any, b: Any, dtype: int, accumulator: int, out: Any, stream: Any, session: Any, copy: bool, numerics: int
) -> Any: ...  # fmt: skip
def fused(
    ops: Sequence[int], ignore_nan: bool, x: Any, out: Any, stream: Any, session: Any, copy: bool
) -> tuple[Any, ...]: ...
def segments(
    op: int, x: Any, offsets: Any, dtype: int, accumulator: int, ignore_nan: bool, out: Any, stream: Any, session: Any,
    copy: bool, numerics: int,
) -> Any: ...  # fmt: skip
def softmax(
    is_logarithm: bool, x: Any, axis: Any, scale: float, dtype: int, out: Any, stream: Any, session: Any, copy: bool,
    numerics: int,
) -> Any: ...  # fmt: skip
def transpose(x: Any, out: Any, stream: Any, session: Any, copy: bool) -> Any: ...
def rms_norm(
    x: Any, weight: Any, residual: Any, eps: float, out: Any, sum: Any, stream: Any, session: Any, copy: bool
) -> Any: ...
def reduce_shortcut(function: _Function, op: int) -> _Function: ...
def softmax_shortcut(function: _Function, is_logarithm: bool) -> _Function: ...
def reduce_problem(
    op: int, x: Any, axis: Any, dtype: int, accumulator: int, ignore_nan: bool, numerics: int
) -> Problem: ...
def segments_problem(
    op: int, x: Any, offsets: Any, dtype: int, accumulator: int, ignore_nan: bool, numerics: int
) -> Problem: ...  # fmt: skip
def softmax_problem(is_logarithm: bool, x: Any, axis: Any, dtype: int, numerics: int) -> Problem: ...
def transpose_problem(x: Any) -> Problem: ...
def fused_problem(ops: Sequence[int], ignore_nan: bool, x: Any) -> Problem: ...
def rms_norm_problem(x: Any, has_weight: bool, has_residual: bool) -> Problem: ...
def session_of(session: Any, x: Any) -> Session: ...
def version() -> str: ...
def devices_json() -> str: ...
def op_number(name: str) -> int: ...
def dtype_number(name: str) -> int: ...
def forget_default_sessions() -> None: ...
def set_hooks(
    errors: dict[int, type[Exception]],
    empty: Callable[[Any, tuple[int, ...], int], Any],
    contiguous: Callable[[Any, tuple[int, ...] | None], Any],
    current_stream: Callable[[Any, int], int],
    stream_handle: Callable[[Any], int],
    default_session: Callable[[str], Session],
    device_of: Callable[[Any], int],
) -> None: ...
