"""Sessions, tunings, threads, processes, the command, the docstrings."""

import doctest
import importlib
import importlib.util
import json
import os
import pkgutil
import subprocess
import sys
import threading

import hone
import numpy
import pytest

X = numpy.arange(1000, dtype="float32")


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )


def test_the_version_is_the_distributions():
    from importlib.metadata import PackageNotFoundError, version

    try:
        assert hone.__version__ == version("hone-gpu")
    except PackageNotFoundError:
        pytest.skip("the package is not installed")


def test_a_daemon_thread_may_call_while_the_interpreter_ends():
    code = """
import threading, time, numpy, hone
x = numpy.ones(1000, 'f4')
hone.sum(x)
def call():
    while True:
        hone.sum(x)
for _ in range(3):
    threading.Thread(target=call, daemon=True).start()
time.sleep(0.1)
print('done')
"""
    for _ in range(3):
        ended = run_python(code, HONE_CACHE="off")
        assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


def test_a_progress_function_cannot_wait_for_its_session():
    session = hone.Session("host", cache="")
    hone.sum(X, session=session)
    hone.tune("sum", X, budget=0.3, session=session, progress=lambda *_: hone.sum(X, session=session))
    with pytest.raises(ValueError, match="wait for itself"):
        hone.tune("sum", X, budget=0.3, session=session, progress=lambda *_: hone.max(X, session=session))
    assert hone.max(X, session=session) == 999


def test_a_pinned_session_keeps_its_winners():
    session = hone.Session("host", cache="")
    session.pin()
    with pytest.raises(ValueError, match="pinned"):
        hone.tune("max", X, budget=0.1, session=session)
    assert hone.max(X, session=session) == 999


def test_numerics_that_do_not_matter_are_the_same_problem():
    integers = X.astype("int32")
    assert hone.sum(integers, numerics="reproducible") == hone.sum(integers)
    assert str(hone.problem("sum", integers, numerics="reproducible")) == str(hone.problem("sum", integers))
    assert "reproducible" in str(hone.problem("sum", X, numerics="reproducible"))


def test_columns_and_softmax_have_the_bits_of_rows_anywhere():
    matrix = numpy.random.default_rng(1).standard_normal((1500, 3)).astype("float32")
    columns = hone.sum(matrix, axis=0, numerics="reproducible")
    rows = hone.sum(numpy.ascontiguousarray(matrix.T), axis=1, numerics="reproducible")
    assert columns.tobytes() == rows.tobytes()
    softmax = hone.softmax(matrix, numerics="reproducible")
    assert hone.softmax(matrix[700:701], numerics="reproducible").tobytes() == softmax[700:701].tobytes()
    of_columns = hone.softmax(matrix, axis=0, numerics="reproducible")
    of_rows = hone.softmax(numpy.ascontiguousarray(matrix.T), axis=1, numerics="reproducible")
    assert numpy.ascontiguousarray(of_columns.T).tobytes() == of_rows.tobytes()


def test_everything_public_is_documented():
    for name in hone.__all__:
        assert getattr(hone, name).__doc__, name
    for name in ("sum", "softmax", "segment_reduce"):
        text = getattr(hone, name).__doc__
        assert "Parameters\n    ----------\n    " in text
        assert "{parameters}" not in text


def test_doctests():
    failed = attempted = 0
    for module in pkgutil.iter_modules(hone.__path__):
        if module.name in ("__main__", "_native"):
            continue
        names = {"hone": hone, "numpy": numpy}
        if module.name == "torch":
            if importlib.util.find_spec("torch") is None:
                continue
            names["torch"] = importlib.import_module("torch")
        tests = doctest.testmod(importlib.import_module(f"hone.{module.name}"), extraglobs=names)
        failed, attempted = failed + tests.failed, attempted + tests.attempted
    assert failed == 0
    assert attempted > 20


def test_a_miss_is_not_tuned_unless_asked(monkeypatch):
    session = hone.Session("host", cache="")
    hone.sum(X, session=session)
    assert session.counters()["tunings"] == 0
    assert session.counters()["heuristics"] == 1
    monkeypatch.setenv("HONE_ON_MISS", "tune")
    tuning = hone.Session("host", cache="", tune_budget=0.05)
    hone.sum(X, session=tuning)
    assert tuning.counters()["tunings"] == 1


def test_sessions():
    session = hone.Session("host", cache="")
    assert session.device == "host"
    assert session.facts()["kind"] == "host"
    assert "host" in repr(session)
    session.synchronize()
    assert hone.devices()[-1] == "host"


@pytest.mark.parametrize(("call", "operation"), [("prod", "product"), ("var", "mean_variance"), ("norm", "l2_norm")])
def test_problems_have_the_names_of_calls_too(call, operation):
    assert str(hone.problem(call, X)) == str(hone.problem(operation, X))


def test_tune_explain_and_inspect(tmp_path):
    cache = tmp_path / "cache.sqlite"
    session = hone.Session("host", cache=cache)
    seen = []
    tuning = hone.tune("max", X, budget=1, progress=lambda *now: seen.append(now), session=session)
    # On a busy machine the budget may end before a second candidate is compiled.
    assert "measuring" in {phase for phase, *_ in seen}
    assert seen[-1][:3] == ("verifying", 1, 1)
    assert tuning.winner["verdict"] == "ok"
    assert tuning.winner["median_us"] > 0
    assert "max f32" in str(tuning.explain())
    html = tuning._repr_html_()
    assert html.count("<tr>") == len(tuning.trials) + 1
    assert hone.prepare("max", X, session=session) is True
    (winner,) = [row for row in hone.inspect(cache=cache) if row["problem.operation"] == "max"]
    assert winner["problem.dtype"] == "f32"
    assert not any(isinstance(value, dict) for value in winner.values())
    stored = hone.explain("max", X, session=session).tuning
    assert stored.rank_correlation == pytest.approx(tuning.rank_correlation)
    with pytest.raises(hone.CacheError, match="test_package"):
        hone.inspect(cache=__file__)


def test_the_cache_may_have_a_path_of_any_bytes(tmp_path):
    for cache in (os.fsencode(tmp_path) + b"/a\xff.sqlite", os.fsdecode(os.fsencode(tmp_path) + b"/b\xff.sqlite")):
        session = hone.Session("host", cache=cache)
        hone.sum(X, session=session)
        assert os.path.exists(cache)
        assert len(hone.inspect(cache=cache)) == 1


def test_what_a_program_composed_is_tuned_and_explained(tmp_path):
    session = hone.Session("host", cache=tmp_path / "cache.sqlite")
    x = X.reshape(10, 100)
    both = hone.fuse("sum", "max")
    squares = hone.Reduction("squares", "a + b", "0.0f", map="x * x")
    for op, options in ((both, {}), (squares, {}), ("rms_norm", {"weight": True}), ("sum", {"axis": 1})):
        with pytest.raises(hone.NotTunedError, match="hone.tune"):
            hone.explain(op, x, session=session, **options)
        tuning = hone.tune(op, x, budget=0.2, session=session, **options)
        explanation = hone.explain(op, x, session=session, **options)
        assert explanation.tuning.winner["policy"] == tuning.winner["policy"]
        assert len(explanation.tuning.trials) == len(tuning.trials)
        assert "<table>" in explanation._repr_html_()
    compiles = session.counters()["compiles"]
    both(x, session=session), squares(x, session=session), hone.rms_norm(x, x[0].copy(), session=session)
    assert session.counters()["compiles"] == compiles
    with pytest.raises(TypeError, match="axis"):
        hone.tune(both, x, axis=1)


def test_what_progress_raises_ends_the_tuning():
    def progress(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hone.tune("min", X, progress=progress, session=hone.Session("host", cache=""))


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (("sum", X), {}, "reduce sum f32"),
        (("sum", X.reshape(10, 100)), {"axis": 0}, "columns"),
        (("sum", X.reshape(10, 100)), {"axis": 1, "graph": True}, "graph"),
        (("sum", X, numpy.array([0, 5, 1000])), {}, "segments"),
        (("softmax", X.reshape(10, 100)), {}, "softmax"),
        (("log_softmax", X.reshape(10, 100)), {"axis": 0}, "log_softmax"),
        (("transpose", X.reshape(10, 100)), {}, "transpose"),
    ],
)
def test_problems_are_those_of_the_calls(arguments, options, text):
    assert text in str(hone.problem(*arguments, **options))
    session = hone.Session("host", cache="")
    hone.prepare(*arguments, session=session, **options)
    if options.get("graph"):
        return
    compiles = session.counters()["compiles"]
    name, x, *offsets = arguments
    call = hone.segment_reduce if offsets else getattr(hone, name)
    call(x, *offsets, session=session, **options)
    assert session.counters()["compiles"] == compiles


def test_threads():
    expected = X.reshape(10, 100).sum(axis=1)
    failures = []

    def work():
        for _ in range(50):
            if not numpy.allclose(hone.sum(X.reshape(10, 100), axis=1), expected):
                failures.append("wrong")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_forked_child_makes_its_own_session():
    code = """
import os, numpy, hone
x = numpy.ones(100, "float32")
kept = hone.Session("host")
assert hone.sum(x) == 100 and hone.sum(x, session=kept) == 100
if os.fork() == 0:
    assert hone.sum(x) == 100
    try:
        hone.sum(x, session=kept)
    except hone.DeviceLostError:
        pass
    else:
        os._exit(1)
    del kept
    os._exit(0)
assert os.wait()[1] == 0 and hone.sum(x) == 100
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_nothing_leaks():
    import resource

    out = numpy.empty((), "float32")
    small = X[:64]

    def call(n):
        for _ in range(n):
            hone.sum(small, out=out)
            hone.sum(small)
            try:
                hone.sum(small, axis=1)
            except IndexError:
                pass

    call(1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call(5000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048  # KiB


def test_the_command():
    done = subprocess.run([sys.executable, "-m", "hone", "devices", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["devices"][-1]["kind"] == "host"
    assert subprocess.run([hone.command_path(), "nonsense"], capture_output=True).returncode != 0


def test_nvrtc_of_wheels_is_found(tmp_path, monkeypatch):
    for folder in ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "libnvrtc.so.13").touch()
    code = "import os, hone; print(os.environ['HONE_NVRTC_PATH'])"
    monkeypatch.delenv("HONE_NVRTC_PATH", raising=False)
    environment = {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    found = run_python(code, **environment).stdout.strip()
    assert found.startswith(f"{tmp_path}/nvidia/cu13/lib:{tmp_path}/nvidia/cuda_nvrtc/lib")
    assert run_python(code, HONE_NVRTC_PATH="/mine", **environment).stdout.strip() == "/mine"
