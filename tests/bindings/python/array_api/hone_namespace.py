"""NumPy's namespace with the functions of hone in their places, for array-api-tests: scripts/array-api."""

import functools

import hone
import numpy
from numpy import *  # noqa: F403
from numpy import __array_namespace_info__, linalg  # noqa: F401

__array_api_version__ = "2024.12"
__version__ = hone.__version__


def _standard(name, function):
    """`function` as the standard has it: of any strides, which it does not know, and of complex numbers, by NumPy."""

    @functools.wraps(function)
    def call(x, /, **options):
        if numpy.iscomplexobj(x) or numpy.dtype(options.get("dtype")).kind == "c":
            return getattr(numpy, name)(x, **options)
        return function(x, copy=True, **options)

    return call


for _name in ("all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "prod", "sum", "var"):
    globals()[_name] = _standard(_name, getattr(hone, _name))
matrix_transpose = _standard("matrix_transpose", hone.transpose)
