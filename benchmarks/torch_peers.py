"""Peers besides PyTorch itself that shapes_vs_torch.py compares with: cuBLAS's transposes, and the row kernels of Liger
(Triton) and QuACK (CuTe DSL), forward only. Whoever is not there, or fails, is named with the reason."""
import ctypes
import importlib.metadata
import re
from collections import namedtuple

# Calls of a peer, one for each of the inputs, and what makes the result that is compared out of what a call returned.
Calls = namedtuple("Calls", "calls finish", defaults=(lambda result: result,))


class Unavailable(Exception):
    """A peer, or a call of it, that is not to be had; the text says why."""


def one_line(error):
    """An error's type, unless it is our own, and the first line of its text, without colours."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", (str(error).strip().splitlines() or ["no reason given"])[0])
    return text if isinstance(error, Unavailable) else f"{type(error).__name__}: {text}"


class Geam:
    """cuBLAS's transposes, cublas<t>geam, in the library that PyTorch has loaded."""

    NAME = "cuBLAS"
    OPERATIONS = ("transpose",)
    ROUTINES = {"f32": ("cublasSgeam", ctypes.c_float), "f64": ("cublasDgeam", ctypes.c_double)}
    DTYPES = tuple(ROUTINES)
    TRANSPOSED, AS_IT_IS = 1, 0

    def __init__(self, torch):
        major = (torch.version.cuda or "0").partition(".")[0]
        self.torch, self.version = torch, major
        self.library = ctypes.CDLL(f"libcublas.so.{major}")
        self.handle = ctypes.c_void_p()
        self.require(self.library.cublasCreate_v2(ctypes.byref(self.handle)))

    @staticmethod
    def require(status):
        if status != 0:
            raise Unavailable(f"cuBLAS failed with {status}")

    def plan(self, operation, dtype, inputs, second):
        out = self.torch.empty(inputs[0].shape[::-1], dtype=inputs[0].dtype, device=inputs[0].device)
        stream = self.torch.cuda.current_stream().cuda_stream
        calls = [self.call(dtype, x, out, stream) for x in inputs]
        return Calls([lambda call=call: (call(), out)[1] for call in calls])

    def call(self, dtype, x, out, stream):
        """A function that transposes a matrix; cuBLAS, whose matrices are stored by columns, has columns × rows."""
        name, number = self.ROUTINES[dtype]
        (rows, columns), of = x.shape, ctypes.c_int
        source, target = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr())
        arguments = [self.handle, of(self.TRANSPOSED), of(self.AS_IT_IS), of(rows), of(columns),
                     ctypes.byref(number(1)), source, of(columns), ctypes.byref(number(0)), target, of(rows),
                     target, of(rows)]
        function = getattr(self.library, name)
        self.require(self.library.cublasSetStream_v2(self.handle, ctypes.c_void_p(stream)))
        return lambda: self.require(function(*arguments))


class RowKernels:
    """A package of softmax, RMS norms and cross-entropies of contiguous rows. Logsumexp is the loss against the first
    column, with the first element added: the loss is written for each row, as logsumexp is, and a target is read."""

    OPERATIONS = ("row_logsumexp", "softmax", "rms_norm")
    DTYPES = ("f16", "bf16", "f32")

    def plan(self, operation, dtype, inputs, second):
        return getattr(self, operation)(inputs, *second)

    def losses_of(self, inputs, call):
        """`call` takes a matrix, the target of each row, and room for its loss."""
        rows, device = inputs[0].shape[0], inputs[0].device
        targets = self.torch.zeros(rows, dtype=self.torch.int32, device=device)
        losses = self.torch.empty(rows, dtype=self.torch.float32, device=device)
        first = inputs[0][:, 0]  # what is compared is the first call's result
        return Calls([lambda x=x: (call(x, targets, losses), losses)[1] for x in inputs],
                     lambda losses: losses + first.float())


class Liger(RowKernels):
    """Its functions allocate their results, as PyTorch's do. Its cross-entropy asks the device for sums first, which no
    graph can capture, so its kernel is launched as the function does."""

    NAME = "Liger"

    def __init__(self, torch):
        import triton
        from liger_kernel.ops import cross_entropy, rms_norm, softmax
        from liger_kernel.utils import infer_device_arch
        self.torch, self.version = torch, importlib.metadata.version("liger-kernel")
        self.cross_entropy, self.rms_norms, self.softmaxes = cross_entropy, rms_norm, softmax
        self.next_power_of_2, self.is_blackwell = triton.next_power_of_2, infer_device_arch().startswith("blackwell")

    def softmax(self, inputs):
        return Calls([lambda x=x: self.softmaxes._softmax_forward(x)[0] for x in inputs])

    def rms_norm(self, inputs, weight):
        return Calls([lambda x=x: self.rms_norms.rms_norm_forward(x, weight, 1e-6, 0.0, "llama", None)[0]
                      for x in inputs])

    def row_logsumexp(self, inputs):
        rows, columns = inputs[0].shape
        block = min(self.cross_entropy.MAX_FUSED_SIZE, self.next_power_of_2(columns))
        warps = 8 if self.is_blackwell and inputs[0].element_size() == 2 else 32
        kernel = self.cross_entropy.liger_cross_entropy_kernel[(rows,)]

        def call(x, targets, losses):
            kernel(X_ptr=x, X_stride=columns, Y_ptr=targets, Y_stride=1, weight_ptr=None, loss_ptr=losses,
                   z_loss_ptr=None, loss_stride=1, token_accuracy_ptr=None, token_accuracy_stride=0,
                   predicted_tokens_ptr=None, predicted_tokens_stride=0, n_cols=columns, n_non_ignore=rows,
                   sum_non_ignore_weight=rows, ignore_index=-100, weight_sum=0.0, lse_square_scale=0.0,
                   label_smoothing=0.0, reduction="none", softcap=None, RETURN_Z_LOSS=False,
                   RETURN_TOKEN_ACCURACY=False, RETURN_PREDICTED_TOKENS=False, BLOCK_SIZE=block, HAS_WEIGHT=False,
                   HAS_SOFTCAPPING=False, HAS_GRADIENTS=False, num_warps=warps)
        return self.losses_of(inputs, call)


class Quack(RowKernels):
    """Its compiled kernels are called without PyTorch's dispatcher around them, and write to memory that is there. The
    registers of at most 16 blocks hold a row."""

    NAME = "QuACK"
    MOST_COLUMNS = 1 << 18  # the longest that its own benchmarks have; compiling longer ones takes minutes

    def __init__(self, torch):
        from cutlass import Int32
        from quack.cross_entropy import CrossEntropy
        from quack.cute_dsl_utils import torch2cute_dtype_map
        from quack.rmsnorm import _compile_rmsnorm_fwd
        from quack.softmax import Softmax
        self.torch, self.version = torch, importlib.metadata.version("quack-kernels")
        self.compile_cross_entropy, self.compile_softmax = CrossEntropy.compile, Softmax.compile
        self.compile_rms_norm, self.dtypes, self.int32 = _compile_rmsnorm_fwd, torch2cute_dtype_map, Int32

    def plan(self, operation, dtype, inputs, second):
        columns, at_once = inputs[0].shape[1], 16 // inputs[0].element_size()
        if columns > self.MOST_COLUMNS:
            raise Unavailable(f"its rows have {self.MOST_COLUMNS} columns at most")
        if operation == "softmax" and columns % at_once != 0:
            raise Unavailable(f"its softmax needs rows of a multiple of {at_once} columns")
        return super().plan(operation, dtype, inputs, second)

    def softmax(self, inputs):
        dtype, out = self.dtypes[inputs[0].dtype], self.torch.empty_like(inputs[0])
        function = self.compile_softmax(dtype, dtype, inputs[0].shape[1])
        return Calls([lambda x=x: (function(x, out), out)[1] for x in inputs])

    def rms_norm(self, inputs, weight):
        dtype, out = self.dtypes[inputs[0].dtype], self.torch.empty_like(inputs[0])
        function = self.compile_rms_norm(dtype, dtype, None, self.dtypes[weight.dtype], None, None, inputs[0].shape[1],
                                         False, False, False, False, 0.0)
        return Calls([lambda x=x: (function(x, weight, None, None, out, None, None, None, 1e-6), out)[1]
                      for x in inputs])

    def row_logsumexp(self, inputs):
        function = self.compile_cross_entropy(self.dtypes[inputs[0].dtype], self.dtypes[self.torch.int32], None,
                                              inputs[0].shape[1], False, False, None, None)
        none_ignored = self.int32(-100)
        return self.losses_of(inputs, lambda x, targets, losses: function(x, targets, None, losses, None, None, None,
                                                                          none_ignored))


KINDS = {kind.NAME: kind for kind in (Geam, Liger, Quack)}


def load_peers(torch, names, operations, on_gpu):
    """The peers of these names that have any of the operations; and {name: why} of those that are missing."""
    found, missing = [], {}
    for kind in (KINDS[name] for name in names):
        if not set(kind.OPERATIONS) & set(operations):
            continue
        try:
            if not on_gpu:
                raise Unavailable("it needs a GPU")
            found.append(kind(torch))
        except Exception as error:  # whatever a package does when it is imported, the others are compared with
            missing[kind.NAME] = one_line(error)
    return found, missing
