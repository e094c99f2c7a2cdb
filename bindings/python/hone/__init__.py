"""Hone: autotuned reductions, softmax and transposes of the arrays that you have.

>>> x = numpy.arange(12, dtype="float32").reshape(3, 4)
>>> hone.sum(x, axis=1)
array([ 6., 22., 38.], dtype=float32)

Arrays of NumPy and PyTorch in host memory run on the CPU, those of PyTorch, CuPy and others on a CUDA device in the
current stream of their library. Nothing is copied, and nothing waits. See docs/python.md.
"""

from ._command import find_nvrtc_wheels as _find_nvrtc_wheels

_find_nvrtc_wheels()

from . import _native  # noqa: E402
from ._command import command_path, inspect  # noqa: E402
from ._composed import Fused, Reduction, fuse  # noqa: E402
from ._errors import (  # noqa: E402
    CacheError,
    CompileError,
    DeviceError,
    DeviceLostError,
    Error,
    NotTunedError,
    UnsupportedError,
)
from ._extremes import argmax, argmin, max, min, minmax  # noqa: E402
from ._kernel import Kernel, kernel  # noqa: E402
from ._matrices import log_softmax, rms_norm, softmax, transpose  # noqa: E402
from ._native import Problem  # noqa: E402
from ._reductions import (  # noqa: E402
    dot,
    logsumexp,
    mean,
    mean_var,
    norm,
    prod,
    segment_reduce,
    sum,
    var,
)
from ._session import Session, devices  # noqa: E402
from ._truth import all, any, count_nonzero  # noqa: E402
from ._tuning import Explanation, Tuning, explain, prepare, print_progress, problem, tune  # noqa: E402

__version__ = _native.version()

__all__ = [
    "CacheError", "CompileError", "DeviceError", "DeviceLostError", "Error", "Explanation", "Fused", "Kernel",
    "NotTunedError", "Problem", "Reduction", "Session", "Tuning", "UnsupportedError", "all", "any", "argmax", "argmin",
    "command_path", "count_nonzero", "devices", "dot", "explain", "fuse", "inspect", "kernel", "log_softmax",
    "logsumexp", "max", "mean", "mean_var", "min", "minmax", "norm", "prepare", "print_progress", "problem", "prod",
    "rms_norm", "segment_reduce", "softmax", "sum", "transpose", "tune", "var",
]  # fmt: skip
