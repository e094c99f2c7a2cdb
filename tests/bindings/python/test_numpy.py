"""Every function on NumPy arrays, beside NumPy."""

import warnings

import hone
import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal

RANDOM = numpy.random.default_rng(27)
CUBE = RANDOM.standard_normal((5, 6, 7)).astype("float32")
SHUFFLED = RANDOM.permutation(5 * 6 * 7).reshape(5, 6, 7).astype("int32")

AXES = [None, 0, 1, 2, -1, (0, 1), (1, 2), (0, 1, 2), ()]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_are_those_of_numpy(axis, keepdims):
    result = hone.sum(CUBE, axis=axis, keepdims=keepdims)
    expected = CUBE.sum(axis=axis, keepdims=keepdims)
    assert isinstance(result, numpy.ndarray)
    assert result.shape == expected.shape
    assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("name", ["argmin", "argmax", "min", "max"])
def test_extremes(name, axis):
    assert_array_equal(getattr(hone, name)(SHUFFLED, axis=axis), getattr(numpy, name)(SHUFFLED, axis=axis))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("prod", lambda x: x.prod(axis=2)),
        ("mean", lambda x: x.mean(axis=2)),
        ("var", lambda x: x.var(axis=2)),
        ("norm", lambda x: numpy.linalg.norm(x, axis=2)),
        ("logsumexp", lambda x: numpy.log(numpy.exp(x).sum(axis=2))),
        ("minmax", lambda x: numpy.stack([x.min(axis=2), x.max(axis=2)], axis=-1)),
        ("mean_var", lambda x: numpy.stack([x.mean(axis=2), x.var(axis=2)], axis=-1)),
    ],
)
def test_other_reductions(name, expected):
    assert_allclose(getattr(hone, name)(CUBE, axis=2), expected(CUBE), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("ord", "expected"), [(1, 7.0), (2, 5.0), (float("inf"), 4.0)])
def test_norms(ord, expected):
    assert hone.norm(numpy.array([3, -4], "float32"), ord=ord) == expected


def test_truth():
    x = numpy.array([[0, 1, 2], [0, 0, 0], [3, 4, 5]], "int32")
    assert_array_equal(hone.any(x, axis=1), [True, False, True])
    assert_array_equal(hone.all(x, axis=1), [False, False, True])
    assert_array_equal(hone.count_nonzero(x, axis=1), [2, 0, 3])
    assert hone.any(x).dtype == bool


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", "int64", "uint64", "bool"])
def test_dtypes(dtype):
    x = numpy.array([1, 0, 1, 1], dtype)
    assert hone.sum(x) == 3
    assert hone.sum(x).dtype == {"f": "float32" if dtype == "float16" else "float64", "u": "uint64"}.get(
        numpy.dtype(dtype).kind, "int64"
    )


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.array([1, 2, 3], ml_dtypes.bfloat16)
    assert hone.sum(x) == 6
    assert hone.max(x).dtype == ml_dtypes.bfloat16


def test_float8_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.array([1, 2.5, -3], ml_dtypes.float8_e4m3fn)
    assert hone.sum(x) == 0.5
    assert hone.sum(x).dtype == "float32"
    assert hone.max(x) == 2.5
    assert hone.max(x).dtype == x.dtype
    assert hone.sum(x, dtype="float8_e4m3fn").dtype == x.dtype
    with pytest.raises(ValueError, match="f8e4m3"):
        hone.softmax(x)


@pytest.mark.parametrize("keepdims", [1, numpy.True_, True])
def test_flags_are_taken_as_numpy_takes_them(keepdims):
    assert hone.sum(CUBE, keepdims=keepdims).shape == (1, 1, 1)


@pytest.mark.parametrize("spelling", ["float64", "f64", numpy.float64, numpy.dtype("float64"), float])
def test_spellings_of_dtypes(spelling):
    assert hone.sum(numpy.ones(4, "float32"), dtype=spelling).dtype == "float64"


def test_accumulator_and_nan():
    x = numpy.array([3e30, 4e30, numpy.nan], "float32")
    assert numpy.isnan(hone.norm(x))
    assert_allclose(hone.norm(x, ignore_nan=True, accumulator="float64"), 5e30, rtol=1e-6)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[:, :, 1:5],
        lambda x: x[::2],
        lambda x: x[1:, 2:, 3:],
        lambda x: x.swapaxes(1, 2),
        lambda x: x[:, 0],
        lambda x: x[:, :, 3],
        lambda x: x[:, ::2, :],
    ],
)
def test_strides_are_right_or_refused(view):
    """Where a kernel takes the strides the result is right; where none does, a copy must be asked for."""
    x = view(CUBE)
    for axis in [None, *range(x.ndim)]:
        expected = x.sum(axis=axis)
        try:
            result = hone.sum(x, axis=axis)
        except ValueError as error:
            assert "copy=True" in str(error)
            result = hone.sum(x, axis=axis, copy=True)
        assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("view", "axis"),
    [(lambda x: x[0, :, 1:5], 1), (lambda x: x[0, :, 1:5], 0), (lambda x: x[0].T, 0), (lambda x: x[0].T, None)],
)
def test_strides_that_need_no_copy(view, axis):
    assert_allclose(hone.sum(view(CUBE), axis=axis), view(CUBE).sum(axis=axis), rtol=1e-5, atol=1e-5)


def test_indices_of_a_transposed_array_are_those_of_its_order():
    x = SHUFFLED[0].T
    with pytest.raises(ValueError, match="copy=True"):
        hone.argmax(x)
    assert hone.argmax(x, copy=True) == x.argmax()
    assert_array_equal(hone.argmax(x, axis=0), x.argmax(axis=0))


def test_axes_with_others_between_them_need_a_copy():
    x = RANDOM.standard_normal((2, 3, 4, 5)).astype("float32")
    with pytest.raises(ValueError, match="copy=True"):
        hone.sum(x, axis=(0, 2))
    assert_allclose(hone.sum(x, axis=(0, 2), copy=True), x.sum(axis=(0, 2)), rtol=1e-5, atol=1e-5)
    assert hone.max(x, axis=(1, 3), copy=True, keepdims=True).shape == (2, 1, 4, 1)
    with pytest.raises(ValueError, match="between"):
        hone.softmax(x, axis=(0, 2), copy=True)


def test_empty_arrays():
    empty = numpy.zeros((0, 3), "float32")
    assert_array_equal(hone.sum(empty, axis=0), [0, 0, 0])
    assert hone.sum(empty, axis=1).shape == (0,)
    assert hone.sum(empty) == 0
    assert hone.max(empty, axis=1).shape == (0,)
    assert numpy.isnan(hone.mean(empty))
    assert hone.softmax(empty).shape == (0, 3)
    assert hone.transpose(empty).shape == (3, 0)
    with pytest.raises(ValueError, match="no elements"):
        hone.argmax(empty)
    for name in ("min", "max", "minmax"):
        for axis in (None, 0, (0, 1)):
            with pytest.raises(ValueError, match=f"no elements to take the {name}"):
                getattr(hone, name)(empty, axis=axis)
        with pytest.raises(ValueError, match="no elements"):
            hone.fuse("sum", name)(empty)


def test_arrays_without_axes():
    x = numpy.array(3, "float32")
    assert hone.sum(x) == 3
    assert hone.sum(x).shape == ()
    assert hone.sum(x, axis=()) == 3
    with pytest.raises(IndexError):
        hone.sum(x, axis=0)


def test_dot():
    a = CUBE.reshape(-1)
    assert_allclose(hone.dot(a, a), a @ a, rtol=1e-5)
    with pytest.raises(ValueError, match="shape"):
        hone.dot(a, a[1:])
    with pytest.raises(ValueError, match="one axis"):
        hone.dot(CUBE, CUBE)
    with pytest.raises(TypeError, match="f64"):
        hone.dot(a, a.astype("float64"))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_softmax(axis):
    weights = numpy.exp(CUBE * 0.5)
    expected = weights / weights.sum(axis=axis, keepdims=True)
    assert_allclose(hone.softmax(CUBE, axis=axis, scale=0.5), expected, rtol=1e-5)
    assert_allclose(hone.log_softmax(CUBE, axis=axis, scale=0.5), numpy.log(expected), rtol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_softmax_of_a_transposed_array_needs_a_copy(axis):
    x = CUBE[0].T
    with pytest.raises(ValueError, match="copy=True"):
        hone.softmax(x, axis=axis)
    expected = numpy.exp(x) / numpy.exp(x).sum(axis=axis, keepdims=True)
    assert_allclose(hone.softmax(x, axis=axis, copy=True), expected, rtol=1e-5)


def test_any_strides_are_right_or_refused():
    """Views made at random: what is not refused is right, and so is everything with copy=True."""
    refused = 0
    for _ in range(300):
        sizes = RANDOM.choice([1, 2, 3, 5], RANDOM.integers(1, 5))
        x = RANDOM.standard_normal(sizes * RANDOM.choice([1, 1, 2], len(sizes))).astype("float32")
        x = x[tuple(slice(0, end, RANDOM.choice([1, end // size])) for size, end in zip(sizes, x.shape))]
        x = x.transpose(RANDOM.permutation(x.ndim))
        axes = tuple(int(axis) for axis in range(x.ndim) if RANDOM.integers(2))
        expected = numpy.stack([x.min(axis=axes), x.max(axis=axes)], axis=-1)
        try:
            assert_array_equal(hone.minmax(x, axis=axes), expected)
        except ValueError:
            refused += 1
        assert_array_equal(hone.minmax(x, axis=axes, copy=True), expected)
    assert 0 < refused < 200


def test_softmax_in_place_and_of_rows_with_gaps():
    x = CUBE[0].copy()
    expected = hone.softmax(x)
    assert hone.softmax(x, out=x) is x
    assert_array_equal(x, expected)
    wide = numpy.zeros((6, 20), "float32")
    hone.softmax(CUBE[0], out=wide[:, 3:10])
    assert_allclose(wide[:, 3:10], expected, rtol=1e-6)
    assert wide[:, :3].sum() == 0
    assert wide[:, 10:].sum() == 0


@pytest.mark.parametrize("x", [SHUFFLED, SHUFFLED[0], SHUFFLED[0, :, 2:5], SHUFFLED[:, :, :1], SHUFFLED[:1, :1]])
def test_transpose(x):
    assert_array_equal(hone.transpose(x), x.swapaxes(-1, -2))


def test_transpose_copies_a_broadcast_array():
    x = numpy.broadcast_to(numpy.arange(4, dtype="float32"), (3, 4))
    assert_array_equal(hone.transpose(x, copy=True), x.T)


def test_transpose_in_place():
    x = SHUFFLED.reshape(-1)[:36].reshape(6, 6).copy()
    expected = x.T.copy()
    assert hone.transpose(x, out=x) is x
    assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_segments(dtype):
    x = CUBE.reshape(-1)
    offsets = numpy.array([0, 5, 5, 60, 210], dtype)
    expected = [x[begin:end].sum() for begin, end in zip(offsets, offsets[1:])]
    assert_allclose(hone.segment_reduce(x, offsets), expected, rtol=1e-5, atol=1e-5)
    assert hone.segment_reduce(x, offsets, "minmax").shape == (4, 2)
    assert hone.segment_reduce(x, offsets[:1]).shape == (0,)


def test_fused():
    total, extremes = hone.fuse("sum", "minmax")(SHUFFLED)
    assert total == SHUFFLED.sum()
    assert_array_equal(extremes, [0, 209])
    out = (numpy.zeros((), "int64"), numpy.zeros(2, "int32"))
    results = hone.fuse("sum", "minmax")(SHUFFLED, out=out)
    assert results[0] is out[0]
    assert out[0] == SHUFFLED.sum()
    with pytest.raises(ValueError, match="out"):
        hone.fuse("sum", "minmax")(SHUFFLED, out=out[:1])


def test_out():
    out = numpy.empty(5, "float32")
    assert hone.sum(CUBE, axis=(1, 2), out=out) is out
    assert_allclose(out, CUBE.sum(axis=(1, 2)), rtol=1e-5, atol=1e-5)
    wide = numpy.empty(5, "float64")
    hone.sum(CUBE, axis=(1, 2), out=wide)
    assert_allclose(wide, CUBE.sum(axis=(1, 2), dtype="float64"), rtol=1e-5)


def test_other_holders_of_buffers():
    import array

    assert hone.sum(array.array("d", [1, 2, 3])) == 6
    assert hone.sum(bytearray([1, 2, 3])) == 6
    assert hone.sum(b"\x01\x02") == 3


def test_an_array_that_has_only_dlpack():
    class Lender:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

    class OldLender(Lender):
        def __dlpack__(self):
            return self.array.__dlpack__()

    for lender in (Lender, OldLender):
        result = hone.sum(lender(CUBE), axis=0)
        assert_allclose(result, CUBE.sum(axis=0), rtol=1e-5, atol=1e-5)


def rms_normalised(h, eps):
    return h / numpy.sqrt(numpy.square(h.astype("float64")).mean(axis=-1, keepdims=True) + eps)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rms_norm(dtype):
    x, residual = CUBE.astype(dtype), CUBE[::-1].astype(dtype)
    weight = RANDOM.standard_normal(7).astype(dtype)
    tolerance = {"rtol": 1e-5} if dtype == "float32" else {"rtol": 2e-3, "atol": 2e-3}
    assert_allclose(hone.rms_norm(x), rms_normalised(x, 1e-6), **tolerance)
    assert_allclose(hone.rms_norm(x, weight, eps=0.5), rms_normalised(x, 0.5) * weight, **tolerance)
    with pytest.raises(ValueError, match="strides"):
        hone.rms_norm(x, weight, numpy.asfortranarray(residual))
    normalised, total = hone.rms_norm(x, weight, residual)
    assert_array_equal(total, x + residual)
    assert_allclose(normalised, rms_normalised(x + residual, 1e-6) * weight, **tolerance)


def test_rms_norm_writes_where_it_is_told():
    x, residual = CUBE.copy(), CUBE.copy()
    out = numpy.empty_like(x)
    assert hone.rms_norm(x, out=x) is x
    assert_allclose(x, rms_normalised(CUBE, 1e-6), rtol=1e-5)
    results = hone.rms_norm(x, None, residual, out=out, sum=residual)
    assert results[0] is out and results[1] is residual
    assert_allclose(residual, CUBE + x, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"weight": numpy.ones(6, "float32")}, ValueError),
        ({"weight": numpy.ones(7, "float64")}, TypeError),
        ({"residual": numpy.ones((5, 6, 6), "float32")}, ValueError),
        ({"sum": numpy.empty_like(CUBE)}, ValueError),
        ({"eps": -1.0}, ValueError),
    ],
)
def test_rms_norm_refuses(arguments, error):
    with pytest.raises(error):
        hone.rms_norm(CUBE, **arguments)
    with pytest.raises(ValueError, match="axis"):
        hone.rms_norm(numpy.array(1, "float32"))


@pytest.mark.parametrize("axis", [None, 1, (1, 2)])
@pytest.mark.parametrize("correction", [0, 1, 2.5])
def test_variances_with_a_correction(axis, correction):
    result = hone.var(CUBE, axis=axis, correction=correction)
    expected = numpy.var(CUBE.astype("float64"), axis=axis, ddof=correction)
    assert_allclose(result, expected, rtol=1e-4)
    out = numpy.empty(expected.shape, "float32")
    assert hone.var(CUBE, axis=axis, correction=correction, out=out) is out
    assert_array_equal(out, result)


def test_variances_without_a_degree_of_freedom():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = hone.var(numpy.array([[1, 2], [3, 3]], "float32"), axis=1, correction=2)
        assert numpy.isnan(hone.var(numpy.array([1], "float32"), correction=1))
    assert_array_equal(result, [numpy.inf, numpy.nan])
    with pytest.raises(ValueError, match="stream"):
        hone.var(CUBE, correction=1, stream=0)
    with pytest.raises(ValueError, match="ignore_nan"):
        hone.var(CUBE, correction=1, ignore_nan=True)


def test_reductions_by_expressions():
    geometric = hone.Reduction(
        "geometric_mean", "a + b", "0.0", map="log(double(x))", finish="exp(acc / n)", accumulator="float64"
    )
    x = RANDOM.uniform(1, 2, 1000).astype("float32")
    result = geometric(x)
    assert result.dtype == "float64"
    assert_allclose(result, numpy.exp(numpy.log(x.astype("float64")).mean()), rtol=1e-12)
    out = numpy.empty((), "float64")
    assert geometric(x, out=out) is out and out == result
    with pytest.raises(ValueError, match="strides"):
        geometric(x[::2])
    assert geometric(x[::2], copy=True) == geometric(x[::2].copy())
    with pytest.raises(TypeError):
        geometric(x, out=numpy.empty((), "float32"))


def test_expressions_that_are_wrong():
    with pytest.raises(ValueError, match="name"):
        hone.Reduction("no name", "a + b", "0")
    with pytest.raises(ValueError, match="accumulate in f16"):
        hone.Reduction("halves", "a + b", "0", accumulator="float16")
    with pytest.raises(hone.CompileError, match="misspelt.map"):
        hone.Reduction("misspelt", "a + b", "0", map="y")(CUBE)
    subtracting = hone.Reduction("subtracting", "a - b", "0.0f")
    with pytest.raises(ValueError, match="order"):
        hone.tune(subtracting, CUBE, budget=0.2)
