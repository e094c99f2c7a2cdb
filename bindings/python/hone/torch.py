"""Operators for PyTorch: ``import hone.torch``, then ``hone.torch.softmax(x)`` or ``torch.ops.hone.softmax(x, [-1])``.

Unlike the functions of `hone`, they take part in autograd and ``torch.compile``, follow PyTorch's rules for dtypes (the
result has that of a floating ``x``), and copy an ``x`` whose strides no kernel takes. Nothing of PyTorch is changed.

>>> x = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
>>> hone.torch.logsumexp(x, dim=1).sum().backward()
>>> x.grad[0]
tensor([0.2500, 0.2500, 0.2500, 0.2500], dtype=torch.float64)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import _matrices, _reductions

__all__ = ["log_softmax", "logsumexp", "mean", "softmax", "sum"]

Dim = int | Sequence[int] | None

_library = torch.library.Library("hone", "DEF")


def _axes(dim: Sequence[int] | None) -> tuple[int, ...] | None:
    """PyTorch reduces all axes for an empty list, too."""
    return tuple(dim) if dim else None


def _expanded(grad: torch.Tensor, shape: Sequence[int], dim: Sequence[int] | None, keepdim: bool) -> torch.Tensor:
    """What belongs to a reduced tensor in the shape before the reduction."""
    if not keepdim:
        axes = range(len(shape)) if not dim else sorted(axis % len(shape) for axis in dim)
        for axis in axes:
            grad = grad.unsqueeze(axis)
    return grad.expand(shape)


def _define_reduction(
    name: str, call: Callable[..., Any], gradient: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
) -> None:
    """Define ``hone::name``. `gradient` is given x, the result and its gradient, the last two in the shape of x."""
    _library.define(f"{name}(Tensor x, int[]? dim=None, bool keepdim=False) -> Tensor")

    def run(x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False) -> torch.Tensor:
        result: torch.Tensor = call(x.detach(), axis=_axes(dim), keepdims=keepdim, dtype=_floating(name, x), copy=True)
        return result

    def fake(x: torch.Tensor, dim: Sequence[int] | None = None, keepdim: bool = False) -> torch.Tensor:
        axes = range(x.ndim) if not dim else [axis % x.ndim for axis in dim]
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape) if keepdim or axis not in axes]
        return x.new_empty(shape, dtype=_floating(name, x))

    def setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        x, ctx.dim, ctx.keepdim = inputs
        ctx.save_for_backward(x, output)

    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        x, output = ctx.saved_tensors
        if name == "mean":
            grad = grad * (output.numel() / x.numel())
        grad, output = (_expanded(tensor, x.shape, ctx.dim, ctx.keepdim) for tensor in (grad, output))
        return gradient(x, output, grad), None, None

    _register(name, run, fake, setup, backward)


def _define_softmax(
    name: str, call: Callable[..., Any], gradient: Callable[[torch.Tensor, torch.Tensor, list[int]], torch.Tensor]
) -> None:
    """Define ``hone::name``. `gradient` is given the result, its gradient and the axes."""
    _library.define(f"{name}(Tensor x, int[] dim) -> Tensor")

    def run(x: torch.Tensor, dim: Sequence[int]) -> torch.Tensor:
        result: torch.Tensor = call(x.detach(), axis=tuple(dim), dtype=_floating(name, x), copy=True)
        return result

    def fake(x: torch.Tensor, dim: Sequence[int]) -> torch.Tensor:
        return x.new_empty(x.shape, dtype=_floating(name, x))

    def setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        ctx.dim = list(inputs[1])
        ctx.save_for_backward(output)

    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        (output,) = ctx.saved_tensors
        return gradient(output, grad, ctx.dim), None

    _register(name, run, fake, setup, backward)


def _floating(name: str, x: torch.Tensor) -> torch.dtype:
    if not x.is_floating_point():
        raise TypeError(f"hone::{name} takes floating tensors, not {x.dtype}")
    return x.dtype


def _register(
    name: str,
    run: Callable[..., Any],
    fake: Callable[..., Any],
    setup: Callable[..., Any],
    backward: Callable[..., Any],
) -> None:
    def refuse_vmap(*_: Any) -> None:
        raise NotImplementedError(f"hone::{name} has no vmap: give it the axes of the whole tensor")

    for key in ("CPU", "CUDA"):
        _library.impl(name, run, key)
    torch.library.register_fake(f"hone::{name}", fake, lib=_library)
    torch.library.register_autograd(f"hone::{name}", backward, setup_context=setup, lib=_library)
    torch.library.register_vmap(f"hone::{name}", refuse_vmap, lib=_library)


_define_reduction("sum", _reductions.sum, lambda x, result, grad: grad)
_define_reduction("mean", _reductions.mean, lambda x, result, grad: grad)
_define_reduction("logsumexp", _reductions.logsumexp, lambda x, result, grad: grad * (x - result).exp())
_define_softmax(
    "softmax", _matrices.softmax, lambda result, grad, dim: result * (grad - (grad * result).sum(dim, keepdim=True))
)
_define_softmax(
    "log_softmax", _matrices.log_softmax, lambda result, grad, dim: grad - result.exp() * grad.sum(dim, keepdim=True)
)


def _list(dim: Dim) -> list[int] | None:
    return [dim] if isinstance(dim, int) else None if dim is None else list(dim)


def sum(x: torch.Tensor, dim: Dim = None, keepdim: bool = False) -> torch.Tensor:
    """Sum the elements along `dim`, by default all. The result has the dtype of `x`."""
    result: torch.Tensor = torch.ops.hone.sum(x, _list(dim), keepdim)
    return result


def mean(x: torch.Tensor, dim: Dim = None, keepdim: bool = False) -> torch.Tensor:
    """Compute the mean along `dim`, by default of all elements. The result has the dtype of `x`."""
    result: torch.Tensor = torch.ops.hone.mean(x, _list(dim), keepdim)
    return result


def logsumexp(x: torch.Tensor, dim: Dim = None, keepdim: bool = False) -> torch.Tensor:
    """Compute log Σ exp(x) along `dim`, by default over all elements. The result has the dtype of `x`."""
    result: torch.Tensor = torch.ops.hone.logsumexp(x, _list(dim), keepdim)
    return result


def softmax(x: torch.Tensor, dim: int | Sequence[int] = -1) -> torch.Tensor:
    """Compute the softmax along `dim`. The result has the shape and dtype of `x`."""
    result: torch.Tensor = torch.ops.hone.softmax(x, _list(dim))
    return result


def log_softmax(x: torch.Tensor, dim: int | Sequence[int] = -1) -> torch.Tensor:
    """Compute the logarithm of `softmax`. The result has the shape and dtype of `x`."""
    result: torch.Tensor = torch.ops.hone.log_softmax(x, _list(dim))
    return result
