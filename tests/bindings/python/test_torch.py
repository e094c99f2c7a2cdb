"""PyTorch's tensors: on the host device everywhere, on CUDA where there is one."""

import hone
import numpy
import pytest

torch = pytest.importorskip("torch")

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(params=DEVICES)
def x(request):
    return torch.randn(5, 6, 7, generator=torch.Generator().manual_seed(27)).to(request.param)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
def test_reduces(x, axis):
    result = hone.sum(x, axis=axis)
    assert isinstance(result, torch.Tensor)
    assert result.device == x.device
    torch.testing.assert_close(result, x.sum() if axis is None else x.sum(dim=axis))


def test_other_calls(x):
    torch.testing.assert_close(hone.softmax(x), x.softmax(-1))
    torch.testing.assert_close(hone.log_softmax(x, axis=1), x.log_softmax(1))
    torch.testing.assert_close(hone.logsumexp(x, axis=-1), x.logsumexp(-1))
    torch.testing.assert_close(hone.transpose(x), x.mT.contiguous())
    torch.testing.assert_close(hone.var(x, axis=2), x.var(2, correction=0))
    torch.testing.assert_close(hone.argmax(x, axis=0), x.argmax(0))
    torch.testing.assert_close(hone.dot(x.flatten(), x.flatten()), x.flatten() @ x.flatten())
    offsets = torch.tensor([0, 10, 210], device=x.device)
    expected = torch.stack([x.flatten()[:10].sum(), x.flatten()[10:].sum()])
    torch.testing.assert_close(hone.segment_reduce(x.flatten(), offsets), expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "int64", "bool"])
def test_dtypes(x, dtype):
    ones = torch.ones(9, dtype=getattr(torch, dtype), device=x.device)
    assert hone.sum(ones).item() == 9
    assert hone.max(ones).dtype == ones.dtype


def test_float8(x):
    eighths = torch.tensor([1, 2.5, -3], device=x.device).to(torch.float8_e4m3fn)
    assert hone.sum(eighths).item() == 0.5
    assert hone.max(eighths).float().item() == 2.5
    assert hone.max(eighths).dtype == torch.float8_e4m3fn


def test_views_of_negatives_are_refused(x):
    z = torch.complex(x, x)
    for negative in (z.conj().imag, z[0, 0, 0].conj().imag):
        assert negative.is_neg()
        with pytest.raises(BufferError, match="resolve_neg"):
            hone.sum(negative, copy=True)
        with pytest.raises(BufferError, match="resolve_neg"):
            hone.sum(x, out=negative)
        torch.testing.assert_close(hone.sum(negative.resolve_neg()), negative.sum())
    torch.testing.assert_close(hone.sum(z.imag, copy=True), x.sum())


def test_gradients_of_out_are_refused(x):
    out = torch.empty((), device=x.device, requires_grad=True)
    for call in (hone.sum, hone.var):
        with pytest.raises(BufferError, match="out requires a gradient"):
            call(x, out=out)


def test_a_kernel_of_ones_own(x):
    @hone.kernel(
        source="""extern "C" __global__ void scaled(const float* x, float by, float* y, int n) {
          const int i = blockIdx.x * block_threads + threadIdx.x;
          if (i < n) y[i] = by * x[i];
        }""",
        parameters={"block_threads": [64, 128]},
        arguments=[
            {"in": "x", "type": torch.float32}, {"scalar": "by", "type": torch.float32},
            {"out": "y", "type": torch.float32}, {"extent": "n", "type": "i32"},
        ],
    )  # fmt: skip
    def scaled(x, by):
        return x * by

    result = scaled(x, 3)
    assert result.device == x.device
    torch.testing.assert_close(result, 3 * x)
    assert scaled.tune(x, 3, budget=1).winner is not None
    torch.testing.assert_close(scaled(x, 3), 3 * x)
    with pytest.raises(BufferError, match="detach"):
        scaled(x.requires_grad_(), 3)


def test_dtype_and_out(x):
    assert hone.sum(x, dtype=torch.float64).dtype == torch.float64
    out = torch.empty(5, 6, device=x.device)
    assert hone.sum(x, axis=2, out=out) is out
    torch.testing.assert_close(out, x.sum(2))


def test_empty_and_views(x):
    assert hone.sum(x[:0]).item() == 0
    assert hone.sum(x[:0], axis=1).shape == (0, 7)
    torch.testing.assert_close(hone.sum(x[0].T, axis=0), x[0].T.sum(0))
    with pytest.raises(ValueError, match="copy=True"):
        hone.sum(x.expand(2, 5, 6, 7))
    torch.testing.assert_close(hone.sum(x.expand(2, 5, 6, 7), copy=True), 2 * x.sum())


def test_gradients_are_refused(x):
    with pytest.raises(BufferError, match="detach"):
        hone.sum(x.requires_grad_())
    with pytest.raises(BufferError, match="detach"):
        hone.sum(x.detach(), out=torch.zeros((), device=x.device, requires_grad=True))
    hone.sum(x.detach())


def test_tensors_without_memory_are_refused(x):
    with pytest.raises((RuntimeError, BufferError)):
        hone.sum(x.to("meta"))
    with pytest.raises((RuntimeError, BufferError)):
        hone.sum(x.to_sparse())
    with pytest.raises(TypeError, match="complex64"):
        hone.sum(x.to(torch.complex64))
    with pytest.raises((RuntimeError, BufferError)):
        torch.func.vmap(hone.sum)(x)


def test_kinds_may_be_mixed_in_host_memory():
    out = numpy.empty((), "float32")
    assert hone.sum(torch.ones(5), out=out) is out
    assert out == 5


cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@cuda
def test_another_device_is_refused():
    with pytest.raises(ValueError, match="device"):
        hone.sum(torch.ones(5, device="cuda"), out=torch.zeros(()))
    with pytest.raises(ValueError, match="cuda:0.*host"):
        hone.sum(torch.ones(5, device="cuda"), session=hone.Session("host", cache=""))


@cuda
def test_a_copy_is_made_in_the_current_stream_only():
    x, stream = torch.ones(4, 6, device="cuda")[:, ::2].T, torch.cuda.Stream()
    assert hone.argmax(x, copy=True).item() == 0
    with pytest.raises(ValueError, match="copy=True"):
        hone.argmax(x, copy=True, stream=stream)


@cuda
@pytest.mark.parametrize("is_explicit", [False, True])
def test_works_in_the_streams_order(is_explicit):
    """The call is ordered by the stream: behind a long fill, before the next one."""
    x = torch.zeros(1 << 26, device="cuda")
    hone.sum(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    results = []
    with torch.cuda.stream(stream):
        for i in range(20):
            x.fill_(i)
            results.append(hone.sum(x, stream=stream if is_explicit else None))
    stream.synchronize()
    assert [result.item() for result in results] == [i * float(1 << 26) for i in range(20)]


@cuda
def test_is_captured():
    x = torch.ones(100_000, device="cuda")
    out = torch.zeros((), device="cuda")
    hone.sum(x, out=out)
    hone.prepare("sum", x, graph=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        hone.sum(x, out=out)
        inside = hone.sum(x)
    x.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    assert out.item() == 300_000
    assert inside.item() == 300_000
