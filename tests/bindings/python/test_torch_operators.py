"""hone.torch: the operators beside PyTorch's, under autograd and torch.compile."""

import pytest

torch = pytest.importorskip("torch")

import hone.torch  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
OPERATORS = torch.ops.hone
CALLS = [
    (OPERATORS.sum, (None, False), lambda x: x.sum()),
    (OPERATORS.sum, ([1], True), lambda x: x.sum(1, keepdim=True)),
    (OPERATORS.sum, ([], False), lambda x: x.sum()),
    (OPERATORS.mean, (None, False), lambda x: x.mean()),
    (OPERATORS.mean, ([-1], False), lambda x: x.mean(-1)),
    (OPERATORS.mean, ([0, 1], False), lambda x: x.mean((0, 1))),
    (OPERATORS.logsumexp, ([0], False), lambda x: x.logsumexp(0)),
    (OPERATORS.logsumexp, ([1, -1], True), lambda x: x.logsumexp((1, 2), keepdim=True)),
    (OPERATORS.softmax, ([-1],), lambda x: x.softmax(-1)),
    (OPERATORS.softmax, ([1],), lambda x: x.softmax(1)),
    (OPERATORS.log_softmax, ([-1],), lambda x: x.log_softmax(-1)),
]


def tensor(device, dtype=torch.float64):
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(27), dtype=torch.float64)
    return x.to(device, dtype).requires_grad_()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("operator", "arguments", "peer"), CALLS)
def test_results_and_gradients(operator, arguments, peer, device):
    x, y = tensor(device), tensor(device)
    result, expected = operator(x, *arguments), peer(y)
    torch.testing.assert_close(result, expected)
    weights = torch.linspace(-1, 1, result.numel(), dtype=result.dtype, device=device).reshape(result.shape)
    (result * weights).sum().backward()
    (expected * weights).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize(("operator", "arguments", "peer"), CALLS)
def test_gradcheck(operator, arguments, peer):
    assert torch.autograd.gradcheck(lambda x: operator(x, *arguments), tensor("cpu"))
    assert torch.autograd.gradgradcheck(lambda x: operator(x, *arguments), tensor("cpu"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("operator", "arguments", "peer"), CALLS)
def test_opcheck(operator, arguments, peer, device):
    torch.library.opcheck(operator.default, (tensor(device, torch.float32), *arguments))


@pytest.mark.parametrize("device", DEVICES)
def test_compiles_to_one_graph(device):
    def loss(x):
        return (hone.torch.log_softmax(x * 2, dim=-1) + hone.torch.mean(x, dim=1, keepdim=True)).square().sum()

    x, y = tensor(device), tensor(device)
    torch.compile(loss, fullgraph=True, backend="aot_eager")(x).backward()
    loss(y).backward()
    torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dtypes_are_those_of_pytorch(dtype):
    x = tensor("cpu", dtype).detach()
    assert hone.torch.sum(x, dim=1).dtype == dtype
    torch.testing.assert_close(hone.torch.softmax(x), x.softmax(-1))
    with pytest.raises(TypeError, match="hone::sum.*int64"):
        hone.torch.sum(torch.ones(3, dtype=torch.int64))


def test_strides_are_copied():
    x = tensor("cpu").detach()[:, ::2].expand(2, 2, 4).flip(0)
    torch.testing.assert_close(hone.torch.sum(x.mT), x.sum())


def test_vmap_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="hone::softmax has no vmap"):
        torch.func.vmap(hone.torch.softmax)(tensor("cpu").detach())
