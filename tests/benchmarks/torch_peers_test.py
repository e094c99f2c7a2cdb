"""torch_peers.py, and how shapes_vs_torch.py takes peers that are missing or fail, with modules and tensors that stand
in for the real ones: FOLDER."""
import contextlib
import importlib.metadata
import sys
import types

sys.path.insert(0, sys.argv[1])
import torch_peers as peers  # noqa: E402
import shapes_vs_torch as shapes  # noqa: E402


class Tensor:
    """A matrix, or a column of it, that knows what was done to it."""

    def __init__(self, shape, dtype="float16", text="x"):
        self.shape, self.dtype, self.text, self.device = shape, dtype, text, "cuda"

    def element_size(self):
        return {"float16": 2, "float32": 4}[self.dtype]

    def float(self):
        return Tensor(self.shape, "float32", f"float({self.text})")

    def __getitem__(self, at):
        return Tensor(self.shape[:1], self.dtype, f"{self.text}[:, {at[1]}]")

    def __add__(self, other):
        return f"{self.text} + {other.text}"


def empty(rows, dtype, device):
    return Tensor((rows,), dtype, dtype)


torch = types.SimpleNamespace(int32="int32", float32="float32", zeros=empty, empty=empty,
                              empty_like=lambda x: Tensor(x.shape, x.dtype, "out"))


@contextlib.contextmanager
def modules(**stand_ins):
    """The modules of these names, with `__` for the dots, while within; None: there is none."""
    stand_ins = {name.replace("__", "."): module for name, module in stand_ins.items()}
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    version, importlib.metadata.version = importlib.metadata.version, lambda name: "1.2"
    try:
        yield
    finally:
        importlib.metadata.version = version
        for name, module in before.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})


def load(names, operations, on_gpu=True):
    return peers.load_peers(torch, names, operations, on_gpu)


# Who cannot be imported is named with the reason, and who has none of the operations is not asked for.
with modules(liger_kernel=None, triton=types.SimpleNamespace(next_power_of_2=int), cutlass=None):
    found, missing = load(["Liger", "QuACK"], ["softmax", "row_sum"])
    assert not found and set(missing) == {"Liger", "QuACK"}
    assert missing["Liger"].startswith("ModuleNotFoundError: "), missing
    assert load(["Liger", "QuACK"], ["row_sum"]) == ([], {})
    assert load(["QuACK"], ["softmax"], on_gpu=False) == ([], {"QuACK": "it needs a GPU"})


class Broken(types.ModuleType):
    def __getattr__(self, name):
        raise RuntimeError(f"\x1b[91mno {name} on this GPU\x1b[0m\nand more")


with modules(cutlass=Broken("cutlass")):
    why = load(["QuACK"], ["softmax"])[1]["QuACK"]
    assert why.startswith("RuntimeError: no ") and why.endswith(" on this GPU"), why

# Liger's cross-entropy is launched for each row against column 0, with room for a loss; logsumexp is made out of it.
launched = []


class Kernel:
    def __getitem__(self, grid):
        return lambda **arguments: launched.append((grid, arguments))


ops = types.SimpleNamespace(
    cross_entropy=types.SimpleNamespace(MAX_FUSED_SIZE=32768, liger_cross_entropy_kernel=Kernel()),
    rms_norm=types.SimpleNamespace(rms_norm_forward=lambda *arguments: (arguments, "more")),
    softmax=types.SimpleNamespace(_softmax_forward=lambda x: (f"softmax({x.text})", "more")))
utils = types.SimpleNamespace(infer_device_arch=lambda: "hopper")
with modules(triton=types.SimpleNamespace(next_power_of_2=lambda n: 1 << (n - 1).bit_length()),
             liger_kernel=types.SimpleNamespace(ops=ops, utils=utils), liger_kernel__ops=ops,
             liger_kernel__utils=utils):
    (liger,), missing = load(["Liger"], ["softmax"])
assert liger.version == "1.2" and not missing
x, weight = Tensor((6, 5000)), Tensor((5000,))
losses = liger.plan("row_logsumexp", "f16", [x, x], ())
assert losses.finish(losses.calls[1]()) == "float32 + float(x[:, 0])"
((grid, arguments),) = launched
assert grid == (6,) and arguments["X_ptr"] is x and arguments["X_stride"] == 5000 and arguments["n_cols"] == 5000
assert arguments["Y_ptr"].dtype == "int32" and arguments["BLOCK_SIZE"] == 8192 and not arguments["HAS_GRADIENTS"]
assert liger.plan("softmax", "f16", [x], ()).calls[0]() == "softmax(x)"
assert liger.plan("rms_norm", "f16", [x], (weight,)).calls[0]() == (x, weight, 1e-6, 0.0, "llama", None)

# QuACK compiles for a dtype and a number of columns, and is asked for no rows that it cannot have.
compiled = []


def compiler(name):
    def compile_one(*arguments):
        compiled.append((name, *arguments))
        return lambda *given: compiled.append(given)
    return compile_one


with modules(cutlass=types.SimpleNamespace(Int32=lambda value: ("int32", value)), quack=types.ModuleType("quack"),
             quack__cross_entropy=types.SimpleNamespace(CrossEntropy=types.SimpleNamespace(compile=compiler("ce"))),
             quack__softmax=types.SimpleNamespace(Softmax=types.SimpleNamespace(compile=compiler("softmax"))),
             quack__rmsnorm=types.SimpleNamespace(_compile_rmsnorm_fwd=compiler("rms")),
             quack__cute_dsl_utils=types.SimpleNamespace(torch2cute_dtype_map={"float16": "f16", "int32": "i32"})):
    (quack,), missing = load(["QuACK"], ["softmax"])
calls = quack.plan("softmax", "f16", [x], ())
out = calls.finish(calls.calls[0]())
assert out.text == "out" and compiled == [("softmax", "f16", "f16", 5000), (x, out)], compiled
compiled.clear()
losses = quack.plan("row_logsumexp", "f16", [x], ())
assert losses.finish(losses.calls[0]()) == "float32 + float(x[:, 0])"
assert compiled[0] == ("ce", "f16", "i32", None, 5000, False, False, None, None)
assert compiled[1][0] is x and compiled[1][-1] == ("int32", -100) and compiled[1][4:7] == (None, None, None)
for shape, said in (((2, 1 << 19), "262144 columns at most"), ((2, 5001), "a multiple of 8 columns")):
    try:
        quack.plan("softmax", "f16", [Tensor(shape)], ())
    except peers.Unavailable as error:
        assert said in str(error), error
    else:
        raise AssertionError(f"QuACK was asked for {shape}")

# A peer that refuses, one that fails when it is called, and one that cannot be captured are named; the others go on.
options = types.SimpleNamespace(compile=False)
odd = [Tensor((2, 5001))]
planned, failed = shapes.planned_calls(torch, [quack, liger], "softmax", "f16", odd, "float16", (), options)
assert list(planned) == ["PyTorch", "Liger"]
assert failed == {"QuACK": "its softmax needs rows of a multiple of 8 columns"}
planned, failed = shapes.planned_calls(torch, [quack, liger], "softmax", "f64", [x], "float64", (), options)
assert list(planned) == ["PyTorch"] and not failed, "neither has f64"


def fails():
    raise ValueError("no such kernel\nand more")



planned = {"good": peers.Calls([lambda: 7]), "wrong": peers.Calls([lambda: 6], lambda result: result + 0.5),
           "broken": peers.Calls([fails])}
clock = types.SimpleNamespace(runner=lambda *given: lambda: None, synchronize=lambda: None)
failed = {"absent": "it is not there"}
assert shapes.rehearse(clock, planned, failed, None, lambda result: result == 7) == {"good": True, "wrong": False}
assert failed == {"absent": "it is not there", "broken": "ValueError: no such kernel"}
clock.runner = lambda calls, count, setting, others: fails
failed = {}
assert shapes.rehearse(clock, planned, failed, None, lambda result: True) == {} and set(failed) == set(planned)
