// The extension module hone._native.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "src/calls.h"
#include "src/custom.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace hone::python;

namespace {

using Object = nb::handle;

void define_classes(nb::module_& m) {
  nb::class_<Problem>(m, "Problem", "A call without its arrays: what can be prepared and tuned.")
      .def("__str__", &Problem::text)
      .def("__repr__", [](const Problem& problem) { return "<hone.Problem: " + problem.text() + ">"; })
      .def("set_graph", &Problem::set_graph, "is_graph"_a);

  nb::class_<Session>(m, "Session", nb::is_weak_referenceable())
      .def(
          "__init__",
          [](Session* self, const std::string& device, std::optional<std::int32_t> on_miss,
             std::optional<std::int64_t> budget_ms, std::optional<std::string> cache,
             std::optional<std::int32_t> capture_workspaces, bool read_only, bool validate) {
            new (self) Session(device, {on_miss, budget_ms, std::move(cache), capture_workspaces, read_only, validate});
          },
          "device"_a, "on_miss"_a.none(), "tune_budget_ms"_a.none(), "cache"_a.none(), "capture_workspaces"_a.none(),
          "cache_read_only"_a, "validate"_a)
      .def_prop_ro("device", &Session::device_name, "The name of the device: ``'host'``, ``'cuda:0'``, …")
      .def("facts_json", &Session::facts)
      .def("counters_json", &Session::counters)
      .def("synchronize", &Session::synchronize, "stream"_a = 0,
           "Wait until all work in `stream` (its address) is done, and raise what earlier launches failed with.")
      .def("pin", &Session::pin)
      .def("prepare_problem", &Session::prepare, "problem"_a)
      .def("tune_problem", &Session::tune, "problem"_a, "budget_ms"_a, "progress"_a.none())
      .def("stored_tuning", &Session::stored_tuning, "problem"_a);

  nb::class_<Reduction>(m, "Reduction")
      .def(
          "__init__",
          [](Reduction* self, const std::string& name, const std::string& map, const std::string& combine,
             const std::string& identity, const std::string& finish, const std::string& declarations,
             std::int32_t accumulator, std::int32_t result, double tolerance) {
            new (self) Reduction({name, map, combine, identity, finish, declarations}, accumulator, result, tolerance);
          },
          "name"_a, "map"_a, "combine"_a, "identity"_a, "finish"_a, "declarations"_a, "accumulator"_a, "result"_a,
          "relative_tolerance"_a)
      .def(
          "reduce",
          [](const Reduction& self, Object x, Object out, Object stream, Object session, bool copy) {
            return self(x, {out, stream, session, copy});
          },
          "x"_a, "out"_a.none(), "stream"_a.none(), "session"_a.none(), "copy"_a)
      .def("problem", &Reduction::problem, "x"_a);
}

void define_calls(nb::module_& m) {
  m.def(
      "reduce",
      [](std::int32_t op, Object x, Object axis, bool keepdims, std::int32_t dtype, std::int32_t accumulator,
         bool ignore_nan, Object out, Object stream, Object session, bool copy, std::int32_t numerics) {
        return reduce({op, dtype, accumulator, ignore_nan, numerics}, x, axis, keepdims, {out, stream, session, copy});
      },
      "op"_a, "x"_a, "axis"_a.none(), "keepdims"_a, "dtype"_a, "accumulator"_a, "ignore_nan"_a, "out"_a.none(),
      "stream"_a.none(), "session"_a.none(), "copy"_a, "numerics"_a = int{HONE_NUMERICS_FAST});
  m.def(
      "dot",
      [](Object a, Object b, std::int32_t dtype, std::int32_t accumulator, Object out, Object stream, Object session,
         bool copy, std::int32_t numerics) {
        return dot({hone_op("dot"), dtype, accumulator, false, numerics}, a, b, {out, stream, session, copy});
      },
      "a"_a, "b"_a, "dtype"_a, "accumulator"_a, "out"_a.none(), "stream"_a.none(), "session"_a.none(), "copy"_a,
      "numerics"_a);
  m.def(
      "fused",
      [](nb::sequence ops, bool ignore_nan, Object x, Object out, Object stream, Object session, bool copy) {
        return fused(std::move(ops), ignore_nan, x, {out, stream, session, copy});
      },
      "ops"_a, "ignore_nan"_a, "x"_a, "out"_a.none(), "stream"_a.none(), "session"_a.none(), "copy"_a);
  m.def(
      "segments",
      [](std::int32_t op, Object x, Object offsets, std::int32_t dtype, std::int32_t accumulator, bool ignore_nan,
         Object out, Object stream, Object session, bool copy, std::int32_t numerics) {
        return segments({op, dtype, accumulator, ignore_nan, numerics}, x, offsets, {out, stream, session, copy});
      },
      "op"_a, "x"_a, "offsets"_a, "dtype"_a, "accumulator"_a, "ignore_nan"_a, "out"_a.none(), "stream"_a.none(),
      "session"_a.none(), "copy"_a, "numerics"_a);
  m.def(
      "softmax",
      [](bool is_logarithm, Object x, Object axis, double scale, std::int32_t dtype, Object out, Object stream,
         Object session, bool copy, std::int32_t numerics) {
        return softmax({is_logarithm, scale, dtype, numerics}, x, axis, {out, stream, session, copy});
      },
      "is_logarithm"_a, "x"_a, "axis"_a.none(), "scale"_a, "dtype"_a, "out"_a.none(), "stream"_a.none(),
      "session"_a.none(), "copy"_a, "numerics"_a);
  m.def(
      "transpose",
      [](Object x, Object out, Object stream, Object session, bool copy) {
        return transpose(x, {out, stream, session, copy});
      },
      "x"_a, "out"_a.none(), "stream"_a.none(), "session"_a.none(), "copy"_a);
  m.def(
      "rms_norm",
      [](Object x, Object weight, Object residual, double eps, Object out, Object sum, Object stream, Object session,
         bool copy) {
        return rms_norm(x, {weight, residual, sum, eps}, {out, stream, session, copy});
      },
      "x"_a, "weight"_a.none(), "residual"_a.none(), "eps"_a, "out"_a.none(), "sum"_a.none(), "stream"_a.none(),
      "session"_a.none(), "copy"_a);
}

void define_problems(nb::module_& m) {
  m.def(
      "reduce_problem",
      [](std::int32_t op, Object x, Object axis, std::int32_t dtype, std::int32_t accumulator, bool ignore_nan,
         std::int32_t numerics) {
        return reduce_problem({op, dtype, accumulator, ignore_nan, numerics}, x, axis);
      },
      "op"_a, "x"_a, "axis"_a.none(), "dtype"_a, "accumulator"_a, "ignore_nan"_a, "numerics"_a);
  m.def(
      "segments_problem",
      [](std::int32_t op, Object x, Object offsets, std::int32_t dtype, std::int32_t accumulator, bool ignore_nan,
         std::int32_t numerics) {
        return segments_problem({op, dtype, accumulator, ignore_nan, numerics}, x, offsets);
      },
      "op"_a, "x"_a, "offsets"_a, "dtype"_a, "accumulator"_a, "ignore_nan"_a, "numerics"_a);
  m.def(
      "softmax_problem",
      [](bool is_logarithm, Object x, Object axis, std::int32_t dtype, std::int32_t numerics) {
        return softmax_problem({is_logarithm, 1, dtype, numerics}, x, axis);
      },
      "is_logarithm"_a, "x"_a, "axis"_a.none(), "dtype"_a, "numerics"_a);
  m.def("transpose_problem", &transpose_problem, "x"_a);
  m.def("fused_problem", &fused_problem, "ops"_a, "ignore_nan"_a, "x"_a);
  m.def("rms_norm_problem", &rms_norm_problem, "x"_a, "has_weight"_a, "has_residual"_a);
  m.def(
      "session_of", [](Object session, Object x) { return &session_for(session, Array(x, "x"), "x"); },
      nb::rv_policy::reference, "session"_a.none(), "x"_a);
}

}  // namespace

NB_MODULE(_native, m) {
  // Sessions, types and hooks live as long as the process.
  nb::set_leak_warnings(false);
  define_classes(m);
  define_calls(m);
  define_problems(m);
  m.def("version", [] { return hone_version(); });
  m.def("devices_json", [] {
    char* json = nullptr;
    run([&] { return hone_devices(&json); });
    return taken(json);
  });
  m.def("op_number", [](const std::string& name) {
    const std::int32_t number = hone_op(name.c_str());
    if (number < 0) throw nb::value_error(hone_last_error());
    return number;
  });
  m.def("dtype_number", [](const std::string& name) {
    const std::int32_t number = hone_dtype(name.c_str());
    if (number < 0) throw nb::type_error(hone_last_error());
    return number;
  });
  m.def("forget_default_sessions", &forget_default_sessions);
  m.def(
      "set_hooks",
      [](nb::object errors, nb::object empty, nb::object contiguous, nb::object current_stream,
         nb::object stream_handle, nb::object default_session, nb::object device_of) {
        hooks() = {std::move(errors),         std::move(empty),         std::move(contiguous),
                   std::move(current_stream), std::move(stream_handle), std::move(default_session),
                   std::move(device_of)};
      },
      "errors"_a, "empty"_a, "contiguous"_a, "current_stream"_a, "stream_handle"_a, "default_session"_a, "device_of"_a);
}
