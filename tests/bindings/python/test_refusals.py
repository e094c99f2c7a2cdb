"""Bad input: an exception of the usual kind with a message that says what was found, and never a crash."""

import hone
import numpy
import pytest
from numpy.lib.stride_tricks import as_strided

X = numpy.ones((3, 4), "float32")
READ_ONLY = numpy.zeros((), "float32")
READ_ONLY.flags.writeable = False


class Lies:
    """An object whose protocols do not work."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class CudaInterface:
    def __init__(self, **fields):
        self.__cuda_array_interface__ = {
            "shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3, **fields,
        }  # fmt: skip

    def __dlpack_device__(self):
        return (2, 0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: hone.sum([1, 2]), TypeError, "list"),
        (lambda: hone.sum(None), TypeError, "NoneType"),
        (lambda: hone.sum("text"), TypeError, "str"),
        (lambda: hone.sum(Lies(__dlpack__=1)), TypeError, "Lies"),
        (lambda: hone.sum(X, numerics="exact"), ValueError, "reproducible"),
        (lambda: hone.sum(X.astype("complex64")), TypeError, "complex64"),
        (lambda: hone.sum(X.astype(">f4")), TypeError, "byte order"),
        (lambda: hone.sum(numpy.zeros(3, "M8[s]")), TypeError, r"datetime64\[s\]"),
        (lambda: hone.sum(numpy.array([1, "a"], object)), TypeError, "object"),
        (lambda: hone.sum(numpy.zeros(3, "i4,f4")), TypeError, "i4"),
        (lambda: hone.sum(numpy.ma.masked_equal(X, 1)), TypeError, "masked"),
        (lambda: hone.sum(CudaInterface(typestr="<c8")), TypeError, "dtype"),
        (lambda: hone.sum(CudaInterface(mask=X)), TypeError, "mask"),
        (lambda: hone.softmax(X, out=numpy.zeros_like(X)[:, ::-1]), ValueError, "^out: .* pass a contiguous array$"),
        (lambda: hone.softmax(X[:, ::-1]), ValueError, "^x: .* pass a contiguous array, or copy=True"),
        (lambda: hone.Session("host\0x"), ValueError, "device has a null character"),
        (lambda: hone.Session("host", cache="x\0y"), ValueError, "cache has a null character"),
        (lambda: hone.Session("host", cache=b"x\0y"), ValueError, "cache has a null character"),
        (lambda: hone.Session("host", cache=3), TypeError, "cache: a path.*int 3"),
        (lambda: hone.Session("\udcff"), ValueError, "device has a surrogate"),
        (lambda: hone.sum(X, dtype="float32\0"), ValueError, "dtype has a null character"),
        (lambda: hone.inspect(cache=3), TypeError, "cache: a path.*int 3"),
        (lambda: hone.sum(X, axis=2), IndexError, "axis 2 of an array with 2 dimensions"),
        (lambda: hone.sum(X, axis=-3), IndexError, "axis -3"),
        (lambda: hone.sum(X, axis=2**70), IndexError, f"axis {2**70} of an array with 2 dimensions"),
        (lambda: hone.sum(X, axis=(0, 0)), ValueError, "twice"),
        (lambda: hone.sum(X, axis=1.5), TypeError, "float"),
        (lambda: hone.sum(X, axis="x"), TypeError, "axis.*str"),
        (lambda: hone.sum(X, axis=[0, 1]), TypeError, r"axis.*list \[0, 1\]"),
        (lambda: hone.sum(X, axis=(0, 1.5)), TypeError, "axis.*float 1.5"),
        (lambda: hone.sum(X, stream=-1), TypeError, "stream.*int -1"),
        (lambda: hone.sum(X, stream=2**70), TypeError, "stream.*int"),
        (lambda: hone.var(X, out=numpy.zeros(3)), ValueError, r"\(3,\).*\(\)"),
        (lambda: hone.fuse("sum", "max")(X, out=X), TypeError, "out.*tuple"),
        (lambda: hone.sum(X, axis=1, out=X.ravel()[2:5]), ValueError, "overlap"),
        (lambda: hone.sum(X, axis=0, out=X[1]), ValueError, "overlap"),
        (lambda: hone.sum(X, out=X[0, 0:1].reshape(())), ValueError, "overlap"),
        (lambda: hone.Session("host", validate=True), ValueError, "validate"),
        (lambda: hone.sum(X[::-1], axis=0), ValueError, "copy=True"),
        (lambda: hone.sum(numpy.broadcast_to(X, (2, 3, 4))), ValueError, "copy=True"),
        (lambda: hone.sum(X, dtype="complex64"), TypeError, "complex64"),
        (lambda: hone.sum(X, dtype="int32"), ValueError, "i32"),
        (lambda: hone.sum(X, dtype=object()), TypeError, "dtype"),
        (lambda: hone.sum(X, accumulator="f16"), ValueError, "f16"),
        (lambda: hone.sum(X, accumulator="f2"), TypeError, "^accumulator: 'f2'"),
        (lambda: hone.problem("sum", X, accumulator="f2"), TypeError, "^accumulator: 'f2'"),
        (lambda: hone.Reduction("r", "a", "0", accumulator="f2"), TypeError, "^accumulator: 'f2'"),
        (lambda: hone.sum(X, out=numpy.zeros(2, "float32")), ValueError, r"\(2,\).*\(\)"),
        (lambda: hone.sum(X, out=numpy.zeros((), "int64")), ValueError, "i64"),
        (lambda: hone.sum(X, dtype="f32", out=numpy.zeros(())), TypeError, "f64.*f32"),
        (lambda: hone.max(X, out=numpy.zeros(())), ValueError, "f64"),
        (lambda: hone.sum(X, out=READ_ONLY), ValueError, "read-only"),
        (lambda: hone.sum(X, axis=1, out=numpy.zeros(6, "float32")[::2]), ValueError, "contiguous"),
        (lambda: hone.sum(X, out=[0]), TypeError, "list"),
        (lambda: hone.sum(X, stream="main"), TypeError, "str"),
        (lambda: hone.sum(X, session="host"), TypeError, "Session"),
        (lambda: hone.sum(CudaInterface(), session=hone.Session("host")), ValueError, "cuda:0.*host"),
        (lambda: hone.sum(X, out=CudaInterface(shape=())), ValueError, "device"),
        (lambda: hone.softmax(X.astype("int32")), ValueError, "i32"),
        (lambda: hone.softmax(X, scale=float("inf")), ValueError, "scale is inf"),
        (lambda: hone.softmax(X, scale=10**400), ValueError, "scale: the int is too large"),
        (lambda: hone.softmax(X, scale=-(10**400)), ValueError, "scale.*too small"),
        (lambda: hone.rms_norm(X, eps=float("inf")), ValueError, "eps is inf.*from 0 to 3.4"),
        (lambda: hone.logsumexp(X.astype("int32")), ValueError, "i32"),
        (lambda: hone.transpose(X[0]), ValueError, "two axes"),
        (lambda: hone.transpose(numpy.broadcast_to(X[0], (3, 4))), ValueError, "^x:.*copy=True"),
        (lambda: hone.transpose(numpy.broadcast_to(X[0, :1], (5, 1))), ValueError, "^x:.*copy=True"),
        (lambda: hone.transpose(numpy.broadcast_to(X[0], (2, 3, 4))), ValueError, "^x:.*copy=True"),
        (lambda: hone.transpose(X, out=as_strided(X[0, :1].copy(), (4, 3), (0, 4))), ValueError, "^out:"),
        (lambda: hone.problem("transpose", numpy.broadcast_to(X[0], (3, 4))), ValueError, "^x:"),
        (lambda: hone.norm(X, ord=3), ValueError, "ord is 3"),
        (lambda: hone.fuse("sum", "nothing"), ValueError, "nothing"),
        (lambda: hone.fuse(), ValueError, "no operation"),
        (lambda: hone.segment_reduce(X, X), ValueError, r"\(3, 4\)"),
        (lambda: hone.segment_reduce(X[0], X[0]), ValueError, "f32"),
        (lambda: hone.segment_reduce(X[0], numpy.zeros(0, "int64")), ValueError, "empty"),
        (lambda: hone.Session("moon"), ValueError, "moon"),
        (lambda: hone.Session("host", on_miss="maybe"), ValueError, "maybe"),
        (lambda: hone.Session("host", objective="power"), ValueError, "power.*energy"),
        (lambda: hone.tune("sum", X, budget=0), ValueError, "budget"),
        (lambda: hone.tune("sum", X, budget="1"), TypeError, "budget.*str '1'"),
        (lambda: hone.tune("sum", X, budget=float("inf")), ValueError, "budget is inf"),
        (lambda: hone.tune(3, X), TypeError, "op.*int"),
        (lambda: hone.sum(X, keepdims="yes"), TypeError, "keepdims: True or False is wanted, not the str 'yes'"),
        (lambda: hone.sum(X, ignore_nan=1.0), TypeError, "ignore_nan.*float"),
        (lambda: hone.sum(X, copy=None), TypeError, "copy.*NoneType"),
        (lambda: hone.softmax(X, scale="1"), TypeError, "scale: a number is wanted, not the str '1'"),
        (lambda: hone.rms_norm(X, eps=None), TypeError, "eps.*NoneType"),
        (lambda: hone.var(X, correction="1"), TypeError, "correction.*str '1'"),
        (lambda: hone.segment_reduce(X[0], X[0], 3), TypeError, "op: a str is wanted, not the int 3"),
        (lambda: hone.fuse(None), TypeError, "op.*NoneType"),
        (lambda: hone.Reduction("r", 1, "0"), TypeError, "combine.*int 1"),
        (lambda: hone.Reduction("r", "a", "0", relative_tolerance="x"), TypeError, "relative_tolerance.*str"),
        (lambda: hone.Session(0), TypeError, "device.*int 0"),
        (lambda: hone.Session("host", tune_budget="1"), TypeError, "tune_budget.*str"),
        (lambda: hone.Session("host", tune_budget=-1), ValueError, "tune_budget is -1: 0.0 to"),
        (lambda: hone.tune("sum", X, budget=-1), ValueError, "budget is -1: 0.001 to"),
        (lambda: hone.tune("sum", X, budget=1e300), ValueError, "budget is 1e.300: 0.001 to"),
        (lambda: hone.Session("host", capture_workspaces=1.5), TypeError, "capture_workspaces.*float 1.5"),
        (lambda: hone.Session("host", validate="no"), TypeError, "validate.*str"),
        (lambda: hone.problem("sum", X, graph="yes"), TypeError, "graph.*str"),
        (lambda: hone.tune("nothing", X), ValueError, "nothing"),
    ],
)
def test_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_strides_that_are_no_multiple_of_the_element():
    packed = numpy.zeros(4, numpy.dtype([("a", "i1"), ("b", "f4")]))["b"]
    with pytest.raises(ValueError, match="stride"):
        hone.sum(packed)


def test_misaligned_arrays():
    x = numpy.frombuffer(bytearray(4 * 10 + 1), "float32", 10, 1)
    with pytest.raises(ValueError, match="align"):
        hone.sum(x)


def test_more_axes_than_are_taken():
    x = numpy.ones([1] * 33, "float32")
    with pytest.raises(ValueError, match="33 dimensions"):
        hone.sum(x)
    assert hone.sum(x.reshape([1] * 32)) == 1
    with pytest.raises(ValueError, match="32 dimensions"):
        hone.minmax(x.reshape([1] * 32), axis=())


def test_not_tuned():
    session = hone.Session("host", on_miss="error", cache="")
    with pytest.raises(hone.NotTunedError, match="no winner"):
        hone.sum(X, session=session)
    assert issubclass(hone.NotTunedError, RuntimeError)


def test_a_compiler_that_is_missing(monkeypatch):
    monkeypatch.setenv("HONE_CXX", "/nowhere/c++")
    session = hone.Session("host", cache="")
    with pytest.raises((hone.CompileError, hone.UnsupportedError), match="/nowhere"):
        hone.sum(X, session=session)
