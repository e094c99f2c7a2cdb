// Kernels of the caller's own: KernelSpec, field by field, and the calls of what it becomes.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/kernel_spec.h>

#include "bindings/c/handles.h"
#include "bindings/c/status.h"

using namespace hone;
using hone::c::guarded, hone::c::required, hone::c::stream_of;

struct hone_kernel_spec {
  KernelSpec spec;
  std::set<std::string_view> given;     ///< the fields
  std::deque<std::string> names;        ///< what the parameters' views point into
  std::vector<DType> reference_dtypes;  ///< of each argument
  hone_kernel_reference reference = nullptr;
  void* context = nullptr;
};

namespace hone::c {
namespace {

constexpr hone_kernel_argument kArgumentDefaults{.size = 0,
                                                 .kind = HONE_ARGUMENT_IN,
                                                 .dtype = static_cast<int32_t>(DType::f32),
                                                 .name = nullptr,
                                                 .elements = nullptr,
                                                 .indices_below = nullptr,
                                                 .value = 1,
                                                 .reference_dtype = -1,
                                                 .reserved = 0};

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

[[noreturn]] void refuse_value(std::string_view field, std::string_view value, const char* wanted) {
  throw Error(ErrorCode::invalid_argument, fmt::format("the field {} is '{}'; it is {}", field, value, wanted));
}

void set_grid_stride(KernelSpec& spec, std::string_view value) {
  if (value != "true" && value != "false") refuse_value("grid_stride", value, "true or false");
  spec.grid_stride = value == "true";
}

void set_alignment(KernelSpec& spec, std::string_view value) {
  const std::uint32_t bytes = number_in<std::uint32_t>(value).value_or(0);
  if (bytes == 0 || bytes > kMaxAlignment || (bytes & (bytes - 1)) != 0)
    refuse_value("alignment", value, "1, 2, 4, 8 or 16 bytes");
  spec.alignment = bytes;
}

void set_tolerance(KernelSpec& spec, std::string_view value) {
  const double tolerance = number_in<double>(value).value_or(-1);
  if (!(tolerance >= 0) || !std::isfinite(tolerance)) refuse_value("tolerance", value, "a number that is not below 0");
  spec.tolerance = tolerance;
}

/// A field that is a text, a list of texts, or made of a text.
struct Field {
  std::string_view name;
  std::variant<std::string KernelSpec::*, std::vector<std::string> KernelSpec::*,
               void (*)(KernelSpec&, std::string_view)>
      place;
};

const std::array kFields{
    Field{"name", &KernelSpec::name},
    Field{"file", [](KernelSpec& spec, std::string_view value) { spec.file = value; }},
    Field{"source", &KernelSpec::source},
    Field{"entry", &KernelSpec::entry},
    Field{"where", &KernelSpec::where},
    Field{"extents", &KernelSpec::extents},
    Field{"block", &KernelSpec::block},
    Field{"elements_per_block", &KernelSpec::elements_per_block},
    Field{"elements_per_thread", &KernelSpec::elements_per_thread},
    Field{"grid_stride", &set_grid_stride},
    Field{"dynamic_smem_bytes", &KernelSpec::dynamic_smem_bytes},
    Field{"cluster_blocks", &KernelSpec::cluster_blocks},
    Field{"dependent_launch", &KernelSpec::dependent_launch},
    Field{"alignment", &set_alignment},
    Field{"tolerance", &set_tolerance},
    Field{"inputs", &KernelSpec::inputs},
    Field{"reference", [](KernelSpec& spec,
                          std::string_view value) { spec.reference = KernelReference::kernel(std::string(value)); }},
};

[[noreturn]] void refuse_twice(std::string_view field) {
  throw Error(ErrorCode::invalid_argument, fmt::format("the field {} was given before; give it once", field));
}

void add_field(hone_kernel_spec& to, std::string_view name, const char* value) {
  const auto field = std::ranges::find(kFields, name, &Field::name);
  if (field == kFields.end()) {
    std::vector<std::string_view> known;
    for (const Field& each : kFields) known.push_back(each.name);
    throw Error(ErrorCode::not_found,
                fmt::format("a kernel has no field '{}'; known are {}", name, fmt::join(known, ", ")));
  }
  const bool is_first = !to.given.contains(field->name);
  if (const auto* list = std::get_if<std::vector<std::string> KernelSpec::*>(&field->place)) {
    if (is_first) (to.spec.**list).clear();
    (to.spec.**list).emplace_back(value);
  } else if (!is_first) {
    refuse_twice(field->name);
  } else if (const auto* text = std::get_if<std::string KernelSpec::*>(&field->place)) {
    to.spec.** text = value;
  } else {
    std::get<void (*)(KernelSpec&, std::string_view)>(field->place)(to.spec, value);
  }
  to.given.insert(field->name);
}

void add_parameter(hone_kernel_spec& to, std::string_view name, std::span<const char* const> texts) {
  std::vector<std::int32_t> sizes;
  std::vector<std::string_view> choices;
  for (const char* text : texts) {
    choices.push_back(to.names.emplace_back(&required(text, "a value of the parameter")));
    if (const auto size = number_in<std::int32_t>(choices.back()); size && *size > 0) sizes.push_back(*size);
  }
  const std::string_view kept = to.names.emplace_back(name);
  to.spec.parameters.push_back(sizes.size() == choices.size() ? ordinal(kept, sizes) : categorical(kept, choices));
}

void add_argument(hone_kernel_spec& to, const hone_kernel_argument& given) {
  if (given.kind < HONE_ARGUMENT_IN || given.kind > HONE_ARGUMENT_EXTENT)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("kind is {}: HONE_ARGUMENT_IN to HONE_ARGUMENT_EXTENT are 0 to 4", given.kind));
  KernelArgument argument{.kind = static_cast<KernelArgument::Kind>(given.kind),
                          .name = &required(given.name, "the name of the argument"),
                          .dtype = dtype_of(given.dtype, "dtype"),
                          .value = given.value};
  if (given.elements != nullptr) argument.elements = given.elements;
  if (given.indices_below != nullptr) argument.below = given.indices_below;
  if (argument.kind == KernelArgument::Kind::extent) argument.elements = argument.name;
  to.reference_dtypes.push_back(optional_dtype(given.reference_dtype, "reference_dtype").value_or(argument.dtype));
  to.spec.arguments.push_back(std::move(argument));
}

/// The caller's function as a reference: C knows the arguments, but not their types, when it compiles.
KernelReference function_of(const hone_kernel_spec& described) {
  std::vector<KernelReference::Parameter> parameters;
  for (std::size_t i = 0; i < described.spec.arguments.size(); ++i) {
    const KernelArgument& argument = described.spec.arguments[i];
    parameters.push_back(
        {.is_array = argument.is_array(),
         .is_written = argument.kind == KernelArgument::Kind::out || argument.kind == KernelArgument::Kind::inout,
         .dtype = described.reference_dtypes[i]});
  }
  return KernelReference::function(
      std::move(parameters),
      [reference = described.reference, context = described.context](std::span<const KernelReference::Value> values,
                                                                     std::span<const std::int64_t> extents) {
        std::vector<hone_kernel_operand> operands;
        for (const KernelReference::Value& value : values)
          operands.push_back({value.data, static_cast<int64_t>(value.elements), value.number});
        const int32_t status = reference(context, operands.data(), static_cast<int32_t>(operands.size()),
                                         extents.data(), static_cast<int32_t>(extents.size()));
        if (status != 0) throw Error(ErrorCode::invalid_argument, fmt::format("it returned {}", status));
      });
}

template <class T>
std::span<const T> given_list(const T* values, std::int32_t count, const char* what) {
  if (count < 0) throw Error(ErrorCode::invalid_argument, fmt::format("{} {} are no list", count, what));
  if (count > 0) required(values, what);
  return {values, static_cast<std::size_t>(count)};
}

KernelExtents extents_of(const std::int64_t* extents, std::int32_t count) {
  return KernelExtents(given_list(extents, count, "extents"));
}

/// Throws where the caller has another number of arrays, or of scalars, than the kernel.
void check_count(const KernelSpec& spec, bool are_arrays, std::int32_t found) {
  std::vector<std::string_view> names;
  for (const KernelArgument& argument : spec.arguments)
    if (argument.kind != KernelArgument::Kind::extent && argument.is_array() == are_arrays)
      names.push_back(argument.name);
  if (names.size() != static_cast<std::size_t>(found))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the kernel '{}' has {} {} ({}), and {} were passed", spec.name, names.size(),
                            are_arrays ? "arrays" : "scalars", fmt::join(names, ", "), found));
}

/// The lengths of a kernel's arrays in its order; buffers() has those that are read before those that are only written.
void write_elements(const TunableKernel& kernel, const Problem& problem, std::int64_t* elements) {
  const std::vector<BufferSpec> buffers = kernel.family().buffers(problem);
  auto read = buffers.begin();
  auto written = std::ranges::find(buffers, false, &BufferSpec::is_input);
  for (const KernelArgument& argument : kernel.spec().arguments)
    if (argument.is_array()) *elements++ = (argument.kind == KernelArgument::Kind::out ? written++ : read++)->elements;
}

}  // namespace
}  // namespace hone::c

hone_status hone_kernel_spec_create(hone_kernel_spec** spec) {
  return guarded([&] { required(spec, "spec") = new hone_kernel_spec; });
}

void hone_kernel_spec_destroy(hone_kernel_spec* spec) { delete spec; }

hone_status hone_kernel_spec_add(hone_kernel_spec* spec, const char* field, const char* value) {
  return guarded([&] { c::add_field(required(spec, "spec"), &required(field, "field"), &required(value, "value")); });
}

hone_status hone_kernel_spec_add_parameter(hone_kernel_spec* spec, const char* name, const char* const* values,
                                           int32_t count) {
  return guarded([&] {
    c::add_parameter(required(spec, "spec"), &required(name, "name"), c::given_list(values, count, "values"));
  });
}

hone_status hone_kernel_argument_init(hone_kernel_argument* argument, size_t size) {
  return c::init(argument, size, c::kArgumentDefaults, "hone_kernel_argument");
}

hone_status hone_kernel_spec_add_argument(hone_kernel_spec* spec, const hone_kernel_argument* argument) {
  return guarded([&] {
    c::add_argument(required(spec, "spec"), c::read(argument, c::kArgumentDefaults, "hone_kernel_argument"));
  });
}

hone_status hone_kernel_spec_set_reference(hone_kernel_spec* spec, hone_kernel_reference reference, void* context) {
  return guarded([&] {
    required(spec, "spec");
    if (reference == nullptr) throw Error(ErrorCode::invalid_argument, "reference is NULL");
    if (!spec->given.insert("reference").second) c::refuse_twice("reference");
    spec->reference = reference;
    spec->context = context;
  });
}

hone_status hone_kernel_create(const hone_kernel_spec* spec, hone_kernel** kernel) {
  return guarded([&] {
    KernelSpec described = required(spec, "spec").spec;
    required(kernel, "kernel");
    if (spec->reference != nullptr) described.reference = c::function_of(*spec);
    *kernel = new hone_kernel{TunableKernel(described)};
  });
}

void hone_kernel_destroy(hone_kernel* kernel) { delete kernel; }

hone_status hone_kernel_elements(const hone_kernel* kernel, const int64_t* extents, int32_t extent_count,
                                 int64_t* elements, int32_t array_count) {
  return guarded([&] {
    const TunableKernel& known = required(kernel, "kernel").kernel;
    const Problem problem = known.problem(c::extents_of(extents, extent_count));
    c::check_count(known.spec(), true, array_count);
    required(elements, "elements");
    if (const std::string refusal = known.family().refuse(problem); !refusal.empty())
      throw Error(ErrorCode::invalid_argument, refusal);
    c::write_elements(known, problem, elements);
  });
}

hone_status hone_kernel_launch(hone_session* session, const hone_kernel* kernel, void* const* arrays,
                               int32_t array_count, const double* scalars, int32_t scalar_count, const int64_t* extents,
                               int32_t extent_count, void* stream, hone_choice* choice) {
  return guarded([&] {
    Session& known_session = required(session, "session").session;
    const TunableKernel& known = required(kernel, "kernel").kernel;
    const std::span<void* const> given_arrays = c::given_list(arrays, array_count, "arrays");
    const std::span<const double> given_scalars = c::given_list(scalars, scalar_count, "scalars");
    c::check_count(known.spec(), true, array_count);
    c::check_count(known.spec(), false, scalar_count);
    auto array = given_arrays.begin();
    auto scalar = given_scalars.begin();
    std::vector<KernelValue> values;
    for (const KernelArgument& argument : known.spec().arguments) {
      if (argument.is_array())
        values.emplace_back(*array++);
      else if (argument.kind == KernelArgument::Kind::scalar)
        values.emplace_back(*scalar++);
    }
    c::write_choice(known_session.launch(known, values, c::extents_of(extents, extent_count), stream_of(stream)),
                    choice);
  });
}

hone_status hone_problem_kernel(const hone_kernel* kernel, const int64_t* extents, int32_t extent_count,
                                uint32_t alignment, hone_problem** problem) {
  return c::make_problem(alignment, problem, [&](std::uint32_t bytes) {
    return required(kernel, "kernel").kernel.problem(c::extents_of(extents, extent_count), bytes);
  });
}
