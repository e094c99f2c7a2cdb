"""What differs between NumPy, PyTorch, CuPy and others: allocating, dtypes, streams. The extension calls these."""

from __future__ import annotations

import functools
import sys
from typing import Any

from . import _native

# In the order of the numbers of the library.
_NAMES = (
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "float8_e4m3fn",
)  # fmt: skip
_NUMBERS = {name: number for number, name in enumerate(_NAMES)}


def dtype_number(dtype: Any, name: str = "dtype") -> int:
    """The library's number of a dtype of any kind: ``'f32'``, ``'float32'``, ``numpy.float32``, ``torch.float32``.

    `name` is that of the argument, for the error.
    """
    if dtype is None:
        return -1
    try:
        return _dtype_number(dtype)
    except TypeError:
        raise TypeError(f"{name}: {dtype!r} is no dtype that Hone knows: {', '.join(_NAMES)}") from None


@functools.lru_cache(maxsize=256)
def _dtype_number(dtype: Any) -> int:
    if isinstance(dtype, str):
        return _named(dtype)
    text = str(dtype)
    if text.startswith("torch."):
        return _named(text.removeprefix("torch."))
    import numpy

    return _named(numpy.dtype(dtype).name)


def _named(name: str) -> int:
    return _NUMBERS[name] if name in _NUMBERS else _native.dtype_number(name)


def _kind(array: Any) -> str:
    """The library that an array belongs to: ``'torch'``, ``'cupy'``, … and ``''`` for one of no library."""
    return type(array).__module__.partition(".")[0]


def empty(like: Any, shape: tuple[int, ...], dtype: int) -> Any:
    """A new array of the kind and on the device of `like`."""
    name = _NAMES[dtype]
    kind = _kind(like)
    if kind == "torch":
        import torch

        return torch.empty(shape, dtype=getattr(torch, name), device=like.device)
    if kind == "cupy":
        import cupy

        with cupy.cuda.Device(like.device.id):
            return cupy.empty(shape, dtype=_numpy_dtype(name))
    if hasattr(like, "__cuda_array_interface__"):
        raise TypeError(f"a {type(like).__name__} cannot be made: give out=")
    import numpy

    return numpy.empty(shape, dtype=_numpy_dtype(name))


def _numpy_dtype(name: str) -> Any:
    import numpy

    if name in ("bfloat16", "float8_e4m3fn"):
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, name))
    return numpy.dtype(name)


def contiguous(array: Any, order: tuple[int, ...] | None) -> Any:
    """A contiguous copy with the axes in `order`, made by the library of the array on its current stream."""
    kind = _kind(array)
    if kind == "torch":
        return (array if order is None else array.permute(order)).contiguous()
    if kind == "cupy":
        import cupy

        return cupy.ascontiguousarray(array if order is None else array.transpose(order))
    import numpy

    return numpy.ascontiguousarray(array if order is None else numpy.asarray(array).transpose(order))


def current_stream(array: Any, device: int) -> int:
    """The stream in which the library of `array` works now."""
    kind = _kind(array)
    if kind == "torch":
        return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)
    if kind == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream(device).ptr)
    return 0


def stream_handle(stream: Any) -> int:
    """The address of a stream: of an object with ``__cuda_stream__``, or a stream of PyTorch or CuPy."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise TypeError(f"stream: version {version} of __cuda_stream__; 0 is known")
        return int(handle)
    for attribute in ("cuda_stream", "ptr"):
        address = getattr(stream, attribute, None)
        if isinstance(address, int):
            return address
    raise TypeError(f"stream: a {type(stream).__name__} is no stream: pass one of PyTorch or CuPy, or its address")


def device_of(array: Any) -> int:
    """The CUDA device of an array with ``__cuda_array_interface__``, which does not say it."""
    place = getattr(array, "__dlpack_device__", None)
    if place is not None:
        return int(place()[1])
    import json

    devices = [name for name in json.loads(_native.devices_json()) if name.startswith("cuda:")]
    if len(devices) > 1:
        raise TypeError(f"a {type(array).__name__} does not say on which of {len(devices)} devices it is")
    return 0
