"""Calls that run without the package's Python code, and what is still the Python function's."""

import copy
import inspect
import pickle
import sys

import hone
import numpy
import pytest

X = numpy.arange(6, dtype="float32").reshape(2, 3)


def python_functions(call):
    """How many functions of Python run in a call."""
    call()  # the first makes the session
    entered = []
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(entered) - 1  # the call's own


@pytest.mark.parametrize(
    "call",
    [
        lambda: hone.sum(X, axis=1, out=numpy.ndarray(2, "float32")),
        lambda: hone.max(X, axis=(0, 1), keepdims=True, out=numpy.ndarray((1, 1), "float32")),
        lambda: hone.softmax(X, out=numpy.ndarray((2, 3), "float32"), stream=None, session=None, copy=True),
    ],
)
def test_usual_calls_run_no_python(call):
    assert python_functions(call) == 0


def test_usual_calls_of_own_kernels_run_no_python():
    kernel = hone.Kernel(
        source="""extern "C" __global__ void scaled(float by, const float* x, int plus, float* y, int n) {
          const int i = blockIdx.x * block_threads + threadIdx.x;
          if (i < n) y[i] = by * x[i] + plus;
        }""",
        parameters={"block_threads": [32]},
        arguments=[
            {"scalar": "by", "type": "f32"}, {"in": "x", "type": "f32"}, {"scalar": "plus", "type": "i32"},
            {"out": "y", "type": "f32"}, {"extent": "n", "type": "i32"},
        ],
    )  # fmt: skip
    y = numpy.empty((2, 3), "float32")
    assert python_functions(lambda: kernel(2.5, X, 3, out=y)) == 0
    numpy.testing.assert_array_equal(y, 2.5 * X + 3)
    assert python_functions(lambda: kernel(by=2.5, x=X, plus=3, out=y)) > 0
    numpy.testing.assert_array_equal(kernel(2, X, True), 2 * X + 1)
    numpy.testing.assert_array_equal(kernel(numpy.float32(2), X[0], 0, n=3), 2 * X[0])
    for plus in (2**31, 2**53 + 1, 10**400, 1.5, numpy.nan):
        with pytest.raises(ValueError, match="plus"):
            kernel(2.5, X, plus)


def test_they_are_the_functions_that_they_stand_for():
    assert list(inspect.signature(hone.sum).parameters)[:3] == ["x", "axis", "dtype"]
    assert (hone.sum.__name__, hone.sum.__module__) == ("sum", "hone._reductions")
    assert "Sum the elements." in hone.sum.__doc__
    assert inspect.isroutine(hone.sum)
    assert pickle.loads(pickle.dumps(hone.sum)) is hone.sum
    assert copy.deepcopy(hone.softmax) is hone.softmax
    assert repr(hone.sum).startswith("<function sum at ")


def test_as_attributes_of_classes_they_are_no_methods():
    class Statistics:
        total = hone.sum

    assert Statistics().total(X) == 15


def test_names_that_are_not_interned_are_the_same():
    axis = "".join(["ax", "is"])
    numpy.testing.assert_array_equal(hone.sum(X, **{axis: 1}), X.sum(axis=1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: hone.sum(),
        lambda: hone.sum(X, 1),
        lambda: hone.sum(x=X),
        lambda: hone.sum(X, axes=1),
        lambda: hone.softmax(X, keepdims=True),
    ],
)
def test_arguments_that_there_are_not_are_refused_as_by_functions(call):
    with pytest.raises(TypeError, match=r"^(sum|softmax)\(\)"):
        call()


@pytest.mark.parametrize("keepdims", [numpy.True_, 1])
def test_flags_that_are_no_bools_are_read(keepdims):
    assert hone.sum(X, keepdims=keepdims).shape == (1, 1)


def test_a_dtype_of_out_that_is_not_offered_is_refused_for_an_empty_array_too():
    for x in (X, X[:0]):
        with pytest.raises(ValueError, match="i32"):
            hone.sum(x, out=numpy.empty((), "int32"))
