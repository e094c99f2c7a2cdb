"""profile_winners.py without a GPU: its arguments, the CSV that ncu prints, programs that stand in for ncu, and the
calls that it profiles, on the host device: LIBRARY FOLDER."""
import contextlib
import ctypes
import io
import json
import os
import sys
import tempfile
import types

sys.path.insert(0, sys.argv[2])
import profile_winners as program  # noqa: E402
import beside_torch as bench  # noqa: E402

# As ncu prints it: progress and the program's own lines around a line of names, one of units, and one a kernel.
RANGES = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
HEADER = ["ID", "Process ID", "Process Name", "Host Name", RANGES, "Kernel Name", "Context", "Stream", "Block Size",
          "Grid Size", "Device", "CC", "dram__bytes_read.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
          "gpu__time_duration.sum", "launch__registers_per_thread",
          "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
          "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",
          "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
          "smsp__average_warps_issue_stalled_drain_per_issue_active.ratio"]


SOFTMAX = ("void hone::kernel<&(void hone::Softmax<hone::SoftmaxTypes<__half, __half, float, unsigned int, (bool)0, "
           "(bool)1>, (unsigned int)512>::groups<32u, 4u, 1u>(hone::SoftmaxArguments<float> const&)), 512u, 0u>(T1)")
REDUCE = "void hone::kernel<&hone::Reduce<hone::Sum<float, float, unsigned int, false>, 256>::last_block, 256, 1>(T1)"


def csv_line(cells):
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)


def kernel_line(place, name, *values):
    ranges = f'4711  "<default domain>:hone_problem_{place}:none:none:none:none:none:none" '
    return csv_line([str(place), "4711", "python3.11", "127.0.0.1", ranges, name, "1", "7", "(512, 1, 1)",
                     "(132, 1, 1)", "0", "9.0", *values])


def printed(time_unit="ns", time="116,224"):
    return "\n".join([
        "==PROF== Connected to process 4711 (/usr/bin/python3.11)", "NVIDIA H200, PyTorch 2.9.0, 2026-11-22", "",
        "problem 0: block_threads=512", '==PROF== Profiling "kernel" - 0: 0%....50%....100% - 12 passes', "",
        "problem 1: block_threads=256", "==PROF== Disconnected from process 4711",
        csv_line(HEADER), csv_line([""] * 12 + ["byte", "%", time_unit, "register/thread"] + ["inst"] * 4),
        kernel_line(0, SOFTMAX, "144,200,000", "45.04", time, "80", "8.125", "1.25", "0.02", "2.5"),
        kernel_line(1, REDUCE, "134,217,728", "n/a", "57,600.00", "46", "nan", "3", "n/a", "0"),
        kernel_line(1, "hone_finish", "512", "0.10", "2,100", "24", "0", "0", "0", "0"),
        "==WARNING== Something else", ""])


# The CSV.
kernels = program.parse_raw_page(printed())
assert [(place, name) for place, name, _ in kernels] == [(0, "Softmax::groups"), (1, "Reduce::last_block"),
                                                         (1, "hone_finish")]
assert kernels[0][2]["gpu__time_duration.sum"] == 116224 and kernels[0][2]["dram__bytes_read.sum"] == 144200000
assert kernels[1][2]["dram__throughput.avg.pct_of_peak_sustained_elapsed"] is None
assert kernels[0][2]["lts__t_sector_hit_rate.pct"] is None  # a metric that ncu did not give
assert program.parse_raw_page(printed("us", "116.224"))[0][2]["gpu__time_duration.sum"] == 116224
assert program.parse_raw_page(printed().replace("hone_problem_", "other_"))[0][0] is None
for nothing in ("", "==ERROR== no kernels were profiled\n", csv_line(HEADER)):
    assert program.parse_raw_page(nothing) == []

# The table: a line a problem, and a line a kernel.
problems = [program.parse_problem(text) for text in ("softmax:softmax:f16:2^6x2^20", "reduce:sum:f16:2^26+1")]
assert problems[0].shape == (64, 1 << 20) and problems[1].shape == (1, (1 << 26) + 1)
rows = program.rows_of(problems, ["block_threads=512", "block_threads=256"], kernels, printed())
lines = program.table_text(rows).splitlines()
assert lines[1] == "softmax:softmax:f16:2^6x2^20  block_threads=512", lines[1]
assert lines[2].split()[:6] == ["Softmax::groups", "116.2", "144.2", "-", "45.0", "-"], lines[2]
assert lines[2].endswith(" 80  long_scoreboard 8.1, drain 2.5, wait 1.2"), lines[2]
assert lines[3].startswith("reduce:sum:f16:2^26+1 "), lines[3]
assert lines[4].split()[:5] == ["Reduce::last_block", "57.6", "134.2", "-", "-"], lines[4]
assert lines[4].endswith(" 46  wait 3.0") and lines[5].startswith("  hone_finish ") and lines[5].endswith(" 24  -")
assert len(lines) == 6


def refused(kind, said, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        assert said in str(error), error
    else:
        raise AssertionError(f"nothing said '{said}'")


refused(program.NcuError, "block_threads=512' called", program.rows_of, problems, ["other", "other"], kernels,
        printed())
refused(program.NcuError, "hone_problem_1", program.rows_of, problems, ["block_threads=512", "block_threads=256"],
        kernels[:1], printed())
for text in ("softmax:softmax:f16", "read::f33:5", "read::f16:0", "read::f16:2x3x4", "read::f16:x", ""):
    refused(ValueError, f"'{text}' is no problem", program.parse_problem, text)

# Programs that stand in for ncu.
with tempfile.TemporaryDirectory() as folder:
    def standing_in(*lines_):
        path = os.path.join(folder, "ncu")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(["#!/bin/sh", *lines_]))
        os.chmod(path, 0o755)
        return path

    with open(os.path.join(folder, "printed"), "w", encoding="utf-8") as file:
        file.write(printed())
    # The sum of a pipe is not known to it; the second time it is not asked for any more.
    ncu = standing_in(
        f"echo \"$@\" >> {folder}/asked", "case \"$*\" in *pipe_xu*)",
        "echo '==ERROR== Failed to find metric regex:^sm__inst_executed_pipe_xu\\.(avg)$'; exit 1;; esac",
        f"cat {folder}/printed")
    with contextlib.redirect_stderr(io.StringIO()) as complaint:
        found, output = program.profile(ncu, ["python3", "--call-all"])
    assert len(found) == 3 and output == printed() and "knows no sm__inst_executed_pipe_xu" in complaint.getvalue()
    with open(os.path.join(folder, "asked"), encoding="utf-8") as file:
        asked = file.read().splitlines()
    assert len(asked) == 2 and "--profile-from-start off" in asked[0] and asked[0].endswith(" python3 --call-all")
    assert "pipe_xu" in asked[0] and "pipe_xu" not in asked[1] and "pipe_alu" in asked[1]

    refused(bench.Missing, "NVreg_RestrictProfilingToAdminUsers", program.profile,
            standing_in("echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1"), ["true"])
    refused(program.NcuError, "ended with 2 after 0 kernels:\nprofile_winners: no memory", program.profile,
            standing_in("echo '==PROF== Connected'; echo 'profile_winners: no memory' >&2; exit 2"), ["true"])
    refused(program.NcuError, "Failed to find metric what", program.profile,
            standing_in("echo '==ERROR== Failed to find metric what'; exit 1"), ["true"])


class Tensor:
    """As much of PyTorch's as the calls need, with memory of the host."""

    def __init__(self, elements, size_bytes):
        self.elements, self.size_bytes = elements, size_bytes
        self.memory = (ctypes.c_uint8 * (elements * size_bytes + 16))()

    def data_ptr(self):
        return (ctypes.addressof(self.memory) + 15) // 16 * 16

    def numel(self):
        return self.elements

    def element_size(self):
        return self.size_bytes

    def clone(self):
        return Tensor(self.elements, self.size_bytes)

    device = "cpu"


# The calls: a warm-up outside, and one while the profiler looks.
log = []


@contextlib.contextmanager
def logged(what):
    log.append(what)
    yield
    log.append("end")


class LoggingHone(bench.Hone):
    def enqueuing(self, function, *arguments):
        call = super().enqueuing(function, *arguments)

        def enqueue():
            log.append("call")
            call()
        return enqueue


cuda = types.SimpleNamespace(
    current_stream=lambda: types.SimpleNamespace(cuda_stream=0), nvtx=types.SimpleNamespace(range=logged),
    profiler=types.SimpleNamespace(profile=lambda: logged("profile")))
torch = types.SimpleNamespace(cuda=cuda, int64=8, empty=lambda values, dtype, device: Tensor(values, dtype))
clock = types.SimpleNamespace(device="cpu", synchronize=lambda: None)
hone = LoggingHone(bench.load_library(sys.argv[1]), "host", "", 50)
program.open_all = lambda name, options: (torch, hone, clock, "host")
program.make_input = lambda torch, dtype, elements, device: Tensor(elements, {"f16": 2, "f32": 4}[dtype])
given = "read::f16:100,reduce:dot:f32:1000,softmax:softmax:f16:3x50,transpose::f32:20x50"
for context in ("stream", "graph"):
    log.clear()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        program.call_all(program.parse_arguments(["--problems", given, "--context", context, "--budget", "50"]))
    assert log == [word for place in range(4)
                   for word in ("call", f"hone_problem_{place}", "profile", "call", "end", "end")], log
    said = [line for line in out.getvalue().splitlines() if line]
    assert said[0] == "problem 0: " and len(said) == 4 and said[3].startswith("problem 3: "), said
    assert "block_threads=" in said[1], said
refused(bench.HoneError, "'device_copy'", program.call_all,
        program.parse_arguments(["--problems", "device_copy::f32:5x5"]))

# The whole program, of a plain read and with a program that stands in for ncu.
torch.__version__ = "2.9.0"
with tempfile.TemporaryDirectory() as folder:
    def path_of(name):
        return os.path.join(folder, name)

    with open(path_of("printed"), "w", encoding="utf-8") as file:
        file.write(printed().replace("block_threads=512", ""))
    with open(path_of("ncu"), "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho \"$@\" > {folder}/asked\ncat {folder}/printed\n")
    os.chmod(path_of("ncu"), 0o755)
    sys.argv = ["profile_winners", "--problems", "read::f16:2^26", "--ncu", path_of("ncu"), "--json", path_of("json"),
                "--table", path_of("table")]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert program.main() == 0
    with open(path_of("json"), encoding="utf-8") as file:
        run = json.load(file)
    assert run["device"] == "host" and [row["kernel"] for row in run["rows"]] == ["Softmax::groups"]
    with open(path_of("table"), encoding="utf-8") as file:
        table = file.read()
    assert table.startswith("host, PyTorch 2.9.0, ") and "\nread::f16:2^26\n" in table, table
    assert table.endswith(out.getvalue()), out.getvalue()
    with open(path_of("asked"), encoding="utf-8") as file:
        command = file.read().split(sys.executable)[1].split()
    assert command[0].endswith("profile_winners.py"), command
    child = program.parse_arguments(command[1:])
    assert child.call_all and child.given == "read::f16:2^26" and child.cache
    sys.argv += ["--ncu", path_of("no_ncu")]
    with contextlib.redirect_stderr(io.StringIO()) as complaint:
        assert program.main() == 3
    assert "Nsight Compute is missing" in complaint.getvalue()
