// The extension module hone._native.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "src/calls.h"
#include "src/custom.h"
#include "src/given.h"
#include "src/kernel.h"
#include "src/shortcut.h"

namespace nb = nanobind;
using namespace hone::python;

namespace {

using Object = nb::handle;
/// Takes None, too: the conversions of the arguments say what is wanted instead.
auto operator""_a(const char* name, std::size_t) { return nb::arg(name).none(); }

template <ArgumentName kName>
using Flag = Given<bool, kName>;
template <ArgumentName kName>
using Text = Given<std::string, kName>;

void define_classes(nb::module_& m) {
  nb::class_<Problem>(m, "Problem", "A call without its arrays: what can be prepared and tuned.")
      .def("__str__", &Problem::text)
      .def("__repr__", [](const Problem& problem) { return "<hone.Problem: " + problem.text() + ">"; })
      .def(
          "set_graph", [](Problem& problem, Flag<"graph"> is_graph) { problem.set_graph(is_graph); }, "is_graph"_a);

  nb::class_<Session>(m, "Session", nb::is_weak_referenceable())
      .def(
          "__init__",
          [](Session* self, Text<"device"> device, std::optional<std::int32_t> on_miss,
             std::optional<std::int64_t> budget_ms, std::optional<nb::bytes> cache_path, Object capture_workspaces,
             Flag<"cache_read_only"> read_only, Flag<"validate"> validate, std::optional<std::int32_t> objective) {
            std::optional<std::string> cache;
            if (cache_path) cache = c_text("cache", {cache_path->c_str(), cache_path->size()});
            std::optional<std::int32_t> workspaces;
            if (!capture_workspaces.is_none())
              workspaces = Given<std::int32_t, "capture_workspaces">(capture_workspaces);
            new (self)
                Session(device, {on_miss, budget_ms, std::move(cache), workspaces, read_only, validate, objective});
          },
          "device"_a, "on_miss"_a, "tune_budget_ms"_a, "cache"_a, "capture_workspaces"_a, "cache_read_only"_a,
          "validate"_a, "objective"_a)
      .def_prop_ro("device", &Session::device_name, "The name of the device: ``'host'``, ``'cuda:0'``, …")
      .def("facts_json", &Session::facts)
      .def("counters_json", &Session::counters)
      .def("synchronize", &Session::synchronize, "stream"_a = 0,
           "Wait until all work in `stream` (its address) is done, and raise what earlier launches failed with.")
      .def("pin", &Session::pin)
      .def("prepare_problem", &Session::prepare, "problem"_a)
      .def("tune_problem", &Session::tune, "problem"_a, "budget_ms"_a, "progress"_a)
      .def("stored_tuning", &Session::stored_tuning, "problem"_a);

  nb::class_<Reduction>(m, "Reduction")
      .def(
          "__init__",
          [](Reduction* self, Text<"name"> name, Text<"map"> map, Text<"combine"> combine, Text<"identity"> identity,
             Text<"finish"> finish, Text<"declarations"> declarations, std::int32_t accumulator, std::int32_t result,
             Given<double, "relative_tolerance"> tolerance) {
            new (self) Reduction({name, map, combine, identity, finish, declarations}, accumulator, result, tolerance);
          },
          "name"_a, "map"_a, "combine"_a, "identity"_a, "finish"_a, "declarations"_a, "accumulator"_a, "result"_a,
          "relative_tolerance"_a)
      .def(
          "reduce",
          [](const Reduction& self, Object x, Object out, Object stream, Object session, Flag<"copy"> copy) {
            return self(x, {out, stream, session, copy});
          },
          "x"_a, "out"_a, "stream"_a, "session"_a, "copy"_a)
      .def("problem", &Reduction::problem, "x"_a);

  static PyType_Slot called[] = {{Py_tp_call, reinterpret_cast<void*>(&call_kernel)}, {0, nullptr}};
  nb::class_<Kernel>(m, "Kernel", nb::type_slots(called))
      .def(
          "__init__",
          [](Kernel* self, const std::vector<Kernel::Field>& fields, const std::vector<Kernel::Parameter>& parameters,
             const std::vector<nb::tuple>& arguments, std::vector<std::string> extents,
             std::optional<std::vector<std::size_t>> places, const std::string& name, nb::object reference) {
            std::vector<Kernel::Argument> described;
            for (const nb::tuple& one : arguments)
              described.push_back({nb::cast<std::int32_t>(one[0]), nb::cast<std::int32_t>(one[1]),
                                   nb::cast<std::string>(one[2]), nb::cast<std::optional<std::string>>(one[3]),
                                   nb::cast<std::optional<std::string>>(one[4]), nb::cast<double>(one[5]),
                                   nb::cast<std::int32_t>(one[6])});
            new (self) Kernel(fields, parameters, std::move(described), std::move(extents), std::move(places), name,
                              std::move(reference));
          },
          "fields"_a, "parameters"_a, "arguments"_a, "extents"_a, "places"_a, "name"_a, "reference"_a)
      .def(
          "launch_values",
          [](const Kernel& self, nb::sequence values, nb::sequence extents, Object out, Object stream, Object session,
             Flag<"copy"> copy) {
            return self.launch(std::move(values), std::move(extents), {out, stream, session, copy});
          },
          "values"_a, "extents"_a, "out"_a, "stream"_a, "session"_a, "copy"_a)
      .def("problem_of_values", &Kernel::problem, "values"_a, "extents"_a, "out"_a);
}

void define_calls(nb::module_& m) {
  m.def(
      "reduce",
      [](std::int32_t op, Object x, Object axis, Flag<"keepdims"> keepdims, std::int32_t dtype,
         std::int32_t accumulator, Flag<"ignore_nan"> ignore_nan, Object out, Object stream, Object session,
         Flag<"copy"> copy, std::int32_t numerics) {
        return reduce({op, dtype, accumulator, ignore_nan, numerics}, x, axis, keepdims, {out, stream, session, copy});
      },
      "op"_a, "x"_a, "axis"_a, "keepdims"_a, "dtype"_a, "accumulator"_a, "ignore_nan"_a, "out"_a, "stream"_a,
      "session"_a, "copy"_a, "numerics"_a = int{HONE_NUMERICS_FAST});
  m.def(
      "dot",
      [](Object a, Object b, std::int32_t dtype, std::int32_t accumulator, Object out, Object stream, Object session,
         Flag<"copy"> copy, std::int32_t numerics) {
        return dot({hone_op("dot"), dtype, accumulator, false, numerics}, a, b, {out, stream, session, copy});
      },
      "a"_a, "b"_a, "dtype"_a, "accumulator"_a, "out"_a, "stream"_a, "session"_a, "copy"_a, "numerics"_a);
  m.def(
      "fused",
      [](nb::sequence ops, Flag<"ignore_nan"> ignore_nan, Object x, Object out, Object stream, Object session,
         Flag<"copy"> copy) {
        return fused(std::move(ops), ignore_nan, x, {out, stream, session, copy});
      },
      "ops"_a, "ignore_nan"_a, "x"_a, "out"_a, "stream"_a, "session"_a, "copy"_a);
  m.def(
      "segments",
      [](std::int32_t op, Object x, Object offsets, std::int32_t dtype, std::int32_t accumulator,
         Flag<"ignore_nan"> ignore_nan, Object out, Object stream, Object session, Flag<"copy"> copy,
         std::int32_t numerics) {
        return segments({op, dtype, accumulator, ignore_nan, numerics}, x, offsets, {out, stream, session, copy});
      },
      "op"_a, "x"_a, "offsets"_a, "dtype"_a, "accumulator"_a, "ignore_nan"_a, "out"_a, "stream"_a, "session"_a,
      "copy"_a, "numerics"_a);
  m.def(
      "softmax",
      [](bool is_logarithm, Object x, Object axis, Given<double, "scale"> scale, std::int32_t dtype, Object out,
         Object stream, Object session, Flag<"copy"> copy, std::int32_t numerics) {
        return softmax({is_logarithm, scale, dtype, numerics}, x, axis, {out, stream, session, copy});
      },
      "is_logarithm"_a, "x"_a, "axis"_a, "scale"_a, "dtype"_a, "out"_a, "stream"_a, "session"_a, "copy"_a,
      "numerics"_a);
  m.def(
      "transpose",
      [](Object x, Object out, Object stream, Object session, Flag<"copy"> copy) {
        return transpose(x, {out, stream, session, copy});
      },
      "x"_a, "out"_a, "stream"_a, "session"_a, "copy"_a);
  m.def(
      "rms_norm",
      [](Object x, Object weight, Object residual, Given<double, "eps"> eps, Object out, Object sum, Object stream,
         Object session, Flag<"copy"> copy) {
        return rms_norm(x, {weight, residual, sum, eps}, {out, stream, session, copy});
      },
      "x"_a, "weight"_a, "residual"_a, "eps"_a, "out"_a, "sum"_a, "stream"_a, "session"_a, "copy"_a);
  m.def("reduce_shortcut", &reduce_shortcut, "function"_a, "op"_a);
  m.def("softmax_shortcut", &softmax_shortcut, "function"_a, "is_logarithm"_a);
}

void define_problems(nb::module_& m) {
  m.def(
      "reduce_problem",
      [](std::int32_t op, Object x, Object axis, std::int32_t dtype, std::int32_t accumulator,
         Flag<"ignore_nan"> ignore_nan, std::int32_t numerics) {
        return reduce_problem({op, dtype, accumulator, ignore_nan, numerics}, x, axis);
      },
      "op"_a, "x"_a, "axis"_a, "dtype"_a, "accumulator"_a, "ignore_nan"_a, "numerics"_a);
  m.def(
      "segments_problem",
      [](std::int32_t op, Object x, Object offsets, std::int32_t dtype, std::int32_t accumulator,
         Flag<"ignore_nan"> ignore_nan, std::int32_t numerics) {
        return segments_problem({op, dtype, accumulator, ignore_nan, numerics}, x, offsets);
      },
      "op"_a, "x"_a, "offsets"_a, "dtype"_a, "accumulator"_a, "ignore_nan"_a, "numerics"_a);
  m.def(
      "softmax_problem",
      [](bool is_logarithm, Object x, Object axis, std::int32_t dtype, std::int32_t numerics) {
        return softmax_problem({is_logarithm, 1, dtype, numerics}, x, axis);
      },
      "is_logarithm"_a, "x"_a, "axis"_a, "dtype"_a, "numerics"_a);
  m.def("transpose_problem", &transpose_problem, "x"_a);
  m.def(
      "fused_problem",
      [](nb::sequence ops, Flag<"ignore_nan"> ignore_nan, Object x) { return fused_problem(ops, ignore_nan, x); },
      "ops"_a, "ignore_nan"_a, "x"_a);
  m.def(
      "rms_norm_problem",
      [](Object x, Flag<"weight"> weight, Flag<"residual"> residual) { return rms_norm_problem(x, weight, residual); },
      "x"_a, "weight"_a, "residual"_a);
  m.def(
      "session_of", [](Object session, Object x) { return &session_for(session, Array(x, "x"), "x"); },
      nb::rv_policy::reference, "session"_a, "x"_a);
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
  m.def(
      "op_number",
      [](Text<"op"> op) {
        const std::int32_t number = hone_op(std::string(op).c_str());
        if (number < 0) throw nb::value_error(hone_last_error());
        return number;
      },
      "op"_a);
  m.def(
      "dtype_number",
      [](Text<"dtype"> dtype) {
        const std::int32_t number = hone_dtype(std::string(dtype).c_str());
        if (number < 0) throw nb::type_error(hone_last_error());
        return number;
      },
      "dtype"_a);
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
