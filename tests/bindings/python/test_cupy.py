"""CuPy's arrays, where there is a CUDA device."""

import hone
import numpy
import pytest

cupy = pytest.importorskip("cupy")
try:
    has_device = cupy.cuda.runtime.getDeviceCount() > 0
except cupy.cuda.runtime.CUDARuntimeError:
    has_device = False
pytestmark = pytest.mark.skipif(not has_device, reason="no CUDA device")


def test_reduces():
    x = cupy.random.default_rng(27).standard_normal((5, 6, 7), dtype="float32")
    for axis in (None, 0, 1, 2, (0, 1)):
        result = hone.sum(x, axis=axis)
        assert isinstance(result, cupy.ndarray)
        numpy.testing.assert_allclose(result.get(), x.get().sum(axis=axis), rtol=1e-5, atol=1e-5)
    numpy.testing.assert_array_equal(hone.transpose(x).get(), x.get().swapaxes(1, 2))
    numpy.testing.assert_allclose(hone.var(x, axis=1).get(), x.get().var(axis=1), rtol=1e-4)


def test_strides_and_copies():
    x = cupy.arange(24, dtype="int64").reshape(4, 6)
    assert hone.sum(x[:, 1:3], axis=1).get().tolist() == x.get()[:, 1:3].sum(axis=1).tolist()
    with pytest.raises(ValueError, match="copy=True"):
        hone.sum(x[::-1])
    assert hone.sum(x[::-1], copy=True).item() == 276


@pytest.mark.parametrize("is_explicit", [False, True])
def test_works_in_the_streams_order(is_explicit):
    x = cupy.zeros(1 << 26, "float32")
    hone.sum(x)
    cupy.cuda.get_current_stream().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    results = []
    with stream:
        for i in range(20):
            x.fill(i)
            results.append(hone.sum(x, stream=stream if is_explicit else None))
        assert [result.item() for result in results] == [i * float(1 << 26) for i in range(20)]


def test_a_graph():
    x, out = cupy.ones(100_000, "float32"), cupy.zeros((), "float32")
    hone.sum(x, out=out)
    hone.prepare("sum", x, graph=True)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        hone.sum(x, out=out)
        graph = stream.end_capture()
        x.fill(3)
        graph.launch()
    stream.synchronize()
    assert out.item() == 300_000


def test_a_kernel_of_ones_own():
    @hone.kernel(
        source="""extern "C" __global__ void scaled(const float* x, float by, float* y, int n) {
          const int i = blockIdx.x * block_threads + threadIdx.x;
          if (i < n) y[i] = by * x[i];
        }""",
        parameters={"block_threads": [64, 128]},
        arguments=[
            {"in": "x", "type": "f32"}, {"scalar": "by", "type": "f32"}, {"out": "y", "type": "f32"},
            {"extent": "n", "type": "i32"},
        ],
    )  # fmt: skip
    def scaled(x, by):
        return x * by

    x = cupy.arange(1000, dtype="float32")
    assert scaled.tune(x, 3, budget=1).winner is not None
    result = scaled(x, 3)
    assert isinstance(result, cupy.ndarray)
    numpy.testing.assert_array_equal(result.get(), 3 * x.get())
