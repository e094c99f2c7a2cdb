# Evaluates the NumPy expression of a kernel file; see numpy_reference.h. Its argument is a folder with call.json and
# the arrays that are read, and it leaves there the arrays that are written, or what is wrong.
import builtins
import json
import keyword
import os
import signal
import sys

folder = sys.argv[1]
os.umask(0o077)  # who started this reads what it writes


def fail(message):
    with open(folder + "/error", "w", encoding="utf-8") as file:
        file.write(message)
    sys.exit(1)


def read(argument, index):
    if "value" in argument:
        return argument["value"]
    return np.fromfile(f"{folder}/{index}.in", dtype=argument["dtype"])


def write(argument, index, value):
    value = np.asarray(value)
    if np.iscomplexobj(value):
        raise TypeError(f"the result for {argument['name']} is complex; its real part is value.real")
    elements = argument["elements"]
    if value.ndim > 0 and value.size != elements:
        raise ValueError(f"{argument['name']} has {elements} elements, and the result {value.size}, "
                         f"in the shape {value.shape}")
    flat = np.broadcast_to(value, elements) if value.ndim == 0 else value.ravel()
    flat.astype(argument["dtype"]).tofile(f"{folder}/{index}.out")


with open(folder + "/call.json", encoding="utf-8") as file:
    call = json.load(file)
signal.alarm(call["seconds"])  # which ends the process
try:
    import numpy as np
except ImportError as error:
    fail(f"there is no NumPy for {sys.executable} ({error}); install it (python3 -m pip install numpy), or set "
         "HONE_PYTHON to a Python that has it")

# __import__ is there for NumPy, whose methods import parts of it when they are called first.
usual = ("__import__", "abs", "bool", "float", "int", "len", "max", "min", "pow", "range", "round", "sum")
names = {"__builtins__": {name: getattr(builtins, name) for name in usual}, "np": np, **call["extents"]}
try:
    for index, argument in enumerate(call["arguments"]):
        name = argument["name"]
        if argument["is_read"] and name.isidentifier():
            names[name + "_" if keyword.iskeyword(name) or name == "np" else name] = read(argument, index)
    with np.errstate(all="ignore"):
        result = eval(compile(call["expression"].strip(), "numpy", "eval"), names)
    written = [each for each in enumerate(call["arguments"]) if each[1]["is_written"]]
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(written):
        raise ValueError(f"it has {len(results)} results, and the kernel writes {len(written)} arrays: "
                         + ", ".join(argument["name"] for _, argument in written))
    for (index, argument), value in zip(written, results):
        write(argument, index, value)
except SyntaxError as error:
    fail(f"SyntaxError: {error.msg}, in column {error.offset} of line {error.lineno}")
except Exception as error:
    known = ", ".join(sorted(name for name in names if name != "__builtins__"))
    fail(f"{type(error).__name__}: {error}" + (f"; the names are {known}" if isinstance(error, NameError) else ""))
