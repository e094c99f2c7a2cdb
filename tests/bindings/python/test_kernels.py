"""Kernels of one's own, on NumPy arrays and the host device, with NumPy functions as their references."""

import pathlib
import threading

import hone
import numpy
import pytest
from numpy.testing import assert_allclose, assert_array_equal

AXPY = """extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  for (int u = 0; u < unroll; ++u) {
    const int i = (blockIdx.x * unroll + u) * block_threads + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
  }
}"""
F32 = "float32"


@pytest.fixture(scope="module")
def session():
    return hone.Session("host", cache="")


@hone.kernel(
    source=AXPY,
    parameters={"block_threads": [64, 128], "unroll": [1, 2]},
    elements_per_thread="unroll",
    arguments=[
        {"scalar": "a", "type": F32},
        {"in": "x", "type": "f32"},
        {"inout": "y", "type": numpy.float32},
        {"extent": "n", "type": "int32"},
    ],
)
def axpy(a, x, y):
    """Scale and add."""
    return a * x + y


def map_kernel(reference, operation="2 * x[i]", dtype=F32, cuda="float"):
    """A kernel that writes a new array y of x, with a reference of its own."""
    return hone.kernel(
        source=f"""extern "C" __global__ void mapped(const {cuda}* x, {cuda}* y, int n) {{
          const int i = blockIdx.x * block_threads + threadIdx.x;
          if (i < n) y[i] = {operation};
        }}""",
        parameters={"block_threads": [64, 128]},
        arguments=[{"in": "x", "type": dtype}, {"out": "y", "type": dtype}, {"extent": "n", "type": "i32"}],
    )(reference)


def test_a_call_updates_in_place_and_returns_what_it_wrote(session):
    x, y = numpy.arange(1000, dtype=F32), numpy.ones((10, 100), F32)
    assert axpy(2, x, y, session=session) is y
    assert_array_equal(y.reshape(-1), 2 * numpy.arange(1000) + 1)
    axpy(y=y, x=x, a=numpy.float64(-2), session=session)
    assert_array_equal(y, 1)
    assert axpy.__doc__ == "Scale and add."
    assert "a, x, y, *, n=None" in repr(axpy)
    assert_array_equal(axpy.reference(2, numpy.ones(3), numpy.ones(3)), [3, 3, 3])


def test_a_call_never_tunes_and_a_tuning_is_explained(tmp_path):
    session = hone.Session("host", cache=tmp_path / "cache.sqlite")
    x, y = numpy.ones(500, F32), numpy.ones(500, F32)
    axpy(1, x, y, session=session)
    assert session.counters()["tunings"] == 0
    with pytest.raises(hone.NotTunedError, match="axpy.tune"):
        axpy.explain(1, x, y, session=session)
    phases = []
    tuning = axpy.tune(1, x, y, budget=1, progress=lambda phase, *_: phases.append(phase), session=session)
    assert tuning.winner["verdict"] == "ok"
    assert "verifying" in phases
    assert "axpy run f32 n=500" in str(axpy.explain(1, x, y, session=session))
    assert axpy.prepare(1, x, y, session=session) is True
    assert_array_equal(y, 2)


def test_positional_arguments_are_in_the_order_of_the_function(session):
    @hone.kernel(
        source="""extern "C" __global__ void scaled(const float* x, float by, float* y, int n) {
          const int i = blockIdx.x * block_threads + threadIdx.x;
          if (i < n) y[i] = by * x[i];
        }""",
        parameters={"block_threads": [32, 64]},
        arguments=[
            {"in": "x", "type": "f32"}, {"scalar": "by", "type": "f32"}, {"out": "y", "type": "f32"},
            {"extent": "n", "type": "i32"},
        ],
    )  # fmt: skip
    def scaled(by, x):
        return x * by

    x = numpy.arange(5, dtype="float32")
    for result in (scaled(3, x, session=session), scaled(x=x, by=3.0, session=session)):
        assert_array_equal(result, 3 * x)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        scaled(3, session=session)


def test_outputs_are_new_arrays_or_those_of_out(session):
    twice = map_kernel(lambda x: 2 * x)
    x = numpy.arange(12, dtype=F32).reshape(3, 4)
    result = twice(x, session=session)
    assert result.shape == (3, 4)
    assert_array_equal(result, 2 * x)
    out = numpy.empty(12, F32)
    assert twice(x, out=out, session=session) is out
    assert_array_equal(out, 2 * x.reshape(-1))
    assert_array_equal(twice(x[:, ::2], copy=True, session=session), 2 * x[:, ::2])
    assert twice(x[:0], session=session).shape == (0, 4)


def test_two_extents_follow_from_the_axes_or_are_named(session):
    @hone.kernel(
        source="""extern "C" __global__ void pairs(const int* in, int* out, int* count, int width, int height) {
          const int x = blockIdx.x * block_x + threadIdx.x, y = blockIdx.y * block_y + threadIdx.y;
          if (x == 0 && y < height) count[y] = width;
          if (x < width && y < height) out[y * width + x] = in[y * (width + 1) + x] + in[y * (width + 1) + x + 1];
        }""",
        extents=["width", "height"],
        parameters={"block_x": [16, 32], "block_y": [2, 4]},
        block=["block_x", "block_y"],
        where="block_x * block_y <= 64",
        arguments=[
            {"in": "rows", "type": "int32", "elements": "(width + 1) * height"},
            {"out": "sums", "type": "int32"},
            {"out": "count", "type": "int32", "elements": "height"},
            {"extent": "width", "type": "int32"},
            {"extent": "height", "type": "int32"},
        ],
    )
    def pairs(rows, width, height):
        rows = rows.reshape(height, width + 1)
        return rows[:, :-1] + rows[:, 1:], numpy.full(height, width)

    rows = numpy.arange(9, dtype="int32").reshape(3, 3)
    sums, count = pairs(rows, width=2, height=3, session=session)
    assert_array_equal(sums, [[1, 3], [7, 9], [13, 15]])
    assert_array_equal(count, [2, 2, 2])
    assert pairs.tune(rows, width=2, height=3, budget=1, session=session).winner is not None
    out = numpy.empty((3, 2), "int32"), numpy.empty(3, "int32")
    assert pairs(rows, out=out, session=session)[0] is out[0]  # whose axes are the extents
    assert_array_equal(out[0], sums)
    with pytest.raises(ValueError, match="pass width="):
        pairs(rows, session=session)
    with pytest.raises(ValueError, match=r"rows has the shape \(3, 3\); 10 elements.*width = 1, height = 5"):
        pairs(rows, width=1, height=5, session=session)
    with pytest.raises(ValueError, match="a tuple of 2"):
        pairs(rows, out=out[:1], session=session)


def test_references_compute_in_double_precision(session):
    seen = []

    def reference(x):
        seen.append(x.dtype)
        return numpy.sqrt(numpy.abs(x))

    root = map_kernel(reference, "sqrtf(fabsf(x[i]))")
    assert root.tune(numpy.ones(300, F32), budget=1, session=session).winner is not None
    assert set(seen) == {numpy.dtype("float64")}
    half = map_kernel(lambda x: 2 * x, "hone::Half(2 * float(x[i]))", "int16", "short")  # another type than it says
    with pytest.raises(hone.CompileError):
        half(numpy.ones(3, "int16"), session=session)
    small = map_kernel(lambda x: x + 1, "x[i] + 1", "uint8", "unsigned char")
    assert small.tune(numpy.ones(300, "uint8"), budget=1, session=session).winner is not None


@pytest.mark.parametrize(
    ("reference", "cause", "message"),
    [
        (lambda x: 1 / 0, ZeroDivisionError, "division"),
        (lambda x: x[:3], ValueError, r"y in the shape \(3,\); \(1000,\)"),
        (lambda x: None, TypeError, "None in the place of y"),
        (lambda x: (x, x), ValueError, "2 arrays; 1 .* y"),
        (lambda x: x + 1j, TypeError, "complex128; float64"),
        (lambda x: [[1, 2], [3]], ValueError, None),
    ],
)
def test_what_a_reference_raises_is_the_cause(session, reference, cause, message):
    tunings = session.counters()["tunings"]
    with pytest.raises(ValueError, match="the reference of the kernel '<lambda>' raised") as raised:
        map_kernel(reference).tune(numpy.ones(1000, F32), session=session)
    assert isinstance(raised.value.__cause__, cause)
    if message:
        with pytest.raises(cause, match=message):
            raise raised.value.__cause__
    assert session.counters()["tunings"] == tunings


def test_what_is_no_exception_goes_through(session):
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_kernel(interrupted).tune(numpy.ones(1000, F32), session=session)


def test_a_kernel_that_contradicts_its_reference_has_no_winner(session):
    wrong = map_kernel(lambda x: 3 * x)
    tuning = wrong.tune(numpy.ones(1000, F32), budget=1, session=session)
    assert tuning.winner is None
    assert "reference" in tuning.trials[0]["reason"]


def test_a_first_call_that_contradicts_the_reference_is_refused(session):
    with pytest.raises(hone.DeviceError, match=r"y\[0\]"):
        map_kernel(lambda x: 5 * x)(numpy.ones(1000, F32), session=session)
    with pytest.raises(ValueError, match="the reference of the kernel '<lambda>' raised"):
        map_kernel(lambda x: x[:3])(numpy.ones(1000, F32), session=session)


def test_kept_arrays_stay_valid_after_the_reference(session):
    kept = []

    def reference(x):
        kept.append(x)
        return 2 * x

    map_kernel(reference).tune(numpy.ones(1000, F32), budget=0.5, session=session)
    assert all(numpy.isfinite(x[0]) for x in kept)


def test_a_source_beside_the_function(tmp_path, session):
    (tmp_path / "twice.cu").write_text(
        '#include "factor.cuh"\nextern "C" __global__ void twice(const float* x, float* y, int n) {\n'
        "  const int i = blockIdx.x * block_threads + threadIdx.x;\n  if (i < n) y[i] = factor * x[i];\n}\n"
    )
    (tmp_path / "factor.cuh").write_text("constexpr float factor = 2;\n")
    module = tmp_path / "module.py"
    module.write_text(
        "import hone\n@hone.kernel(file='twice.cu', parameters={'block_threads': [64]}, arguments=["
        "{'in': 'x', 'type': 'f32'}, {'out': 'y', 'type': 'f32'}, {'extent': 'n', 'type': 'i32'}])\n"
        "def twice(x):\n    return 2 * x\n"
    )
    found = {"__file__": str(module)}
    exec(compile(module.read_text(), str(module), "exec"), found)
    assert_array_equal(found["twice"](numpy.ones(3, F32), session=session), 2)


def test_the_fields_of_a_kernel_file(session):
    import tomllib

    path = pathlib.Path(__file__).parents[3] / "examples" / "kernels" / "axpy.toml"
    fields = tomllib.loads(path.read_text())
    fields["file"] = path.with_name(fields["file"])
    fields["reference"] = fields["reference"]["source"]
    kernel = hone.Kernel(**fields)
    y = kernel(3, numpy.ones(10, F32), numpy.ones(10, F32), session=session)
    assert_array_equal(y, 4)
    with pytest.raises(TypeError, match="no function"):
        kernel.reference(1, y, y)


def test_without_a_reference_the_default_policy_is_right(session):
    kernel = hone.Kernel(
        source=AXPY.replace("axpy", "checked"),
        parameters={"block_threads": [64, 128], "unroll": [1, 2]},
        elements_per_thread="unroll",
        arguments=[
            {"scalar": "a", "type": F32}, {"in": "x", "type": F32}, {"inout": "y", "type": F32},
            {"extent": "n", "type": "i32"},
        ],
    )  # fmt: skip
    y = numpy.ones(300, F32)
    assert kernel.tune(2, y, y.copy(), budget=1, session=session).winner is not None


def test_scalars_of_integers(session):
    @hone.kernel(
        source="""extern "C" __global__ void shift(unsigned char by, int* x, int n) {
          const int i = blockIdx.x * block_threads + threadIdx.x;
          if (i < n) x[i] += by;
        }""",
        parameters={"block_threads": [32]},
        arguments=[
            {"scalar": "by", "type": "u8", "value": 3}, {"inout": "x", "type": "i32"}, {"extent": "n", "type": "i32"},
        ],
    )  # fmt: skip
    def shift(x, by=1):
        assert isinstance(by, int)
        return x + by

    assert_array_equal(shift(numpy.zeros(3, "int32"), session=session), 1)
    assert_array_equal(shift(numpy.zeros(3, "int32"), numpy.array(255), session=session), 255)
    assert shift.tune(numpy.zeros(300, "int32"), budget=0.5, session=session).winner is not None
    for bad, error in ((256, ValueError), (0.5, ValueError), (2**60 + 1, ValueError), ("1", TypeError)):
        with pytest.raises(error, match="by"):
            shift(numpy.zeros(3, "int32"), bad, session=session)


def test_threads_tune_and_call_at_once():
    session, twice, results = hone.Session("host", cache=""), map_kernel(lambda x: 2 * x), []

    def work(n):
        x = numpy.full(n, 3, F32)
        twice.tune(x, budget=0.2, session=session)
        results.append((twice(x, session=session) == 6).all())

    threads = [threading.Thread(target=work, args=(n,)) for n in (100, 3000, 50000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 3


X = numpy.ones(10, F32)
IN, OUT, N = {"in": "x", "type": F32}, {"out": "y", "type": F32}, {"extent": "n", "type": "i32"}


def described(function=None, **changed):
    fields = {
        "source": 'extern "C" __global__ void k(const float* x, float* y, int n) { y[0] = block_threads; }',
        "parameters": {"block_threads": [32]},
        "arguments": [IN, OUT, N],
    }
    return hone.Kernel(function, **{**fields, **changed})


READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: described(sources="x"), TypeError, "'sources'; known are name, file"),
        (lambda: described(parameters={"block_threads": [1.5]}), TypeError, "1.5"),
        (lambda: described(parameters={"block_threads": [32], "idle": [1, 2]}), ValueError, "idle"),
        (lambda: described(arguments=[{"in": "x"}, OUT, N]), TypeError, "x has no type"),
        (lambda: described(arguments=[{"in": "x", "out": "x", "type": F32}]), TypeError, "one of in, out"),
        (lambda: described(arguments=[{"in": "x", "type": "complex64"}]), TypeError, "complex64"),
        (lambda: described(arguments=[{"in": "x", "type": F32, "length": "n"}]), TypeError, "length"),
        (lambda: described(arguments=[{"inout": "stream", "type": F32}]), TypeError, "stream.*rename"),
        (lambda: described(lambda z: z), TypeError, r"takes \(z\).*reads, x"),
        (lambda: described(lambda: 0), TypeError, "reads, x"),
        (lambda: described(lambda x, y: x), TypeError, r"\(x, y\)"),
        (lambda: described(lambda x: x, reference="void"), TypeError, "leave out reference"),
        (lambda: hone.kernel()(lambda x: x), TypeError, "arguments=, and file= or source="),
        (lambda: described(arguments=[]), TypeError, "described by arguments=:"),
        (lambda: described(source="\0"), ValueError, "source has a null character"),
        (lambda: described(parameters={"block_threads": ["a\0"]}), ValueError, "parameters has a null character"),
        (lambda: described(arguments=[{**IN, "elements": "n\0"}]), ValueError, "elements has a null character"),
        (lambda: described(file=b"nowhere\xff.cu", source=None), hone.CacheError, r"nowhere\\xff.cu"),
        (lambda: described(where="block <"), ValueError, "where"),
        (lambda: described(alignment=3), ValueError, "alignment"),
        (lambda: described(source=None), ValueError, "source"),
        (lambda: described(file="nowhere.cu", source=None), hone.CacheError, "nowhere.cu"),
        (lambda: axpy(1, X), TypeError, "missing a required argument: 'y'"),
        (lambda: axpy(1, X, X, X), TypeError, "too many"),
        (lambda: axpy(1, X, X, m=2), TypeError, "'m'"),
        (lambda: axpy("1", X, X), TypeError, "a: a number is wanted"),
        (lambda: axpy(1, X, X, n="10"), TypeError, "n: an integer"),
        (lambda: axpy(1, X, X, n=-1), ValueError, "-1"),
        (lambda: axpy(1, X, [1]), TypeError, "y: a list is no array"),
        (lambda: axpy(1, X.astype("f8"), X), TypeError, "x has the dtype f64; the kernel takes f32"),
        (lambda: axpy(1, X, X[:5]), ValueError, r"y has the shape \(5,\); 10 elements are wanted where n = 10"),
        (lambda: axpy(1, X[::2], X[:5]), ValueError, "copy=True"),
        (lambda: axpy(1, X[:5], X[::2], copy=True), ValueError, "y must be contiguous"),
        (lambda: axpy(1, X, READ_ONLY), ValueError, "y is read-only"),
        (lambda: axpy(1, X, X, out=X), ValueError, "out: the kernel has no array that it only writes"),
        (lambda: hone.tune(axpy, X), TypeError, "Kernel"),
    ],
)
def test_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_kernel_without_inputs_needs_out(session):
    @hone.kernel(
        source='extern "C" __global__ void fill(float v, float* y, int n) { const int i = blockIdx.x * block_threads + '
        "threadIdx.x; if (i < n) y[i] = v; }",
        parameters={"block_threads": [32]},
        arguments=[{"scalar": "v", "type": F32}, OUT, N],
    )
    def fill(v, n):
        return numpy.full(n, v)

    out = numpy.empty(5, F32)
    assert_allclose(fill(0.5, out=out, session=session), 0.5)
    assert fill.tune(0.5, out=out, budget=0.2, session=session).winner is not None
    with pytest.raises(ValueError, match="out="):
        fill(0.5, n=5, session=session)
