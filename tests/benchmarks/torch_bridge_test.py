"""Drives libhone_for_python with the classes of reduce_vs_torch.py, on arrays of ctypes: LIBRARY FOLDER."""
import ctypes
import sys

sys.path.insert(0, sys.argv[2])
import reduce_vs_torch as bench  # noqa: E402

hone = bench.Hone(bench.load_library(sys.argv[1]), "host", "", 50)

values = (ctypes.c_float * 1000)(*[i % 7 for i in range(1000)])
others = (ctypes.c_float * 1000)(*[2] * 1000)


def result_of(operation, dtype, c_type, in_graph):
    problem = hone.prepare(operation, dtype, 1000, 4, in_graph)
    name, count = hone.result(problem)
    assert name == dtype_of_result[operation], (operation, name)
    out = (c_type * count)()
    hone.call(problem, ctypes.addressof(values), ctypes.addressof(others), ctypes.addressof(out), 0)()
    assert hone.variant(problem).startswith("block_threads="), hone.variant(problem)
    return list(out)


dtype_of_result = {"sum": "f32", "argmax": "i64", "minmax": "f32", "dot": "f32", "any": "bool"}
for graph in (0, 1):
    assert result_of("sum", "f32", ctypes.c_float, graph) == [sum(values)]
    assert result_of("argmax", "f32", ctypes.c_int64, graph) == [6]
    assert result_of("minmax", "f32", ctypes.c_float, graph) == [0, 6]
    assert result_of("dot", "f32", ctypes.c_float, graph) == [2 * sum(values)]
    assert result_of("any", "f32", ctypes.c_bool, graph) == [True]

for operation, dtype, said in (("summ", "f32", "no reduction 'summ'"), ("sum", "f33", "f33"), ("logsumexp", "i8", "i8")):
    try:
        hone.prepare(operation, dtype, 1000, 4, 0)
    except bench.HoneError as error:
        assert said in str(error), error
    else:
        raise AssertionError(f"{operation} of {dtype} was accepted")
try:
    hone.call(hone.prepare("sum", "f32", 1000, 4, 0), 0, 0, 0, 0)()
except bench.HoneError as error:
    assert "null" in str(error), error
else:
    raise AssertionError("a null pointer was accepted")

assert bench.parse_sizes("1000,2^20,2^4+1") == [1000, 1 << 20, 17]
assert bench.agree("sum", [1.0], [1.001]) and not bench.agree("sum", [1.0], [1.1])
