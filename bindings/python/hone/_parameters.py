"""The parameters that calls share: their documentation, and the numbers that the library takes for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ._arrays import dtype_number

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


def documented(*names: str) -> Callable[[_Function], _Function]:
    """Put the parameters that calls share in the place of ``{parameters}`` in a docstring."""

    def decorate(function: _Function) -> _Function:
        text = "\n".join(_PARAMETERS[name] for name in (*names, "out", "stream", "session", "copy"))
        assert function.__doc__ is not None
        function.__doc__ = function.__doc__.replace("{parameters}", "\n    ".join(text.split("\n")))
        return function

    return decorate


def optional_dtype(dtype: Any, name: str = "dtype") -> int:
    return -1 if dtype is None else dtype_number(dtype, name)


def optional_dtypes(dtype: Any, accumulator: Any) -> tuple[int, int]:
    return optional_dtype(dtype), optional_dtype(accumulator, "accumulator")


_NUMERICS = ("fast", "reproducible")


def numerics_number(numerics: str) -> int:
    if numerics not in _NUMERICS:
        raise ValueError(f"numerics is {numerics!r}; known are {', '.join(_NUMERICS)}")
    return _NUMERICS.index(numerics)


def quick(shortcut: Callable[[Any, Any], Any], what: int) -> Callable[[_Function], _Function]:
    """Run calls without the Python code of the function where they give none but the usual arguments."""

    def decorate(function: _Function) -> _Function:
        shortened: _Function = shortcut(function, what)
        functools.update_wrapper(shortened, function)
        return shortened

    return decorate
