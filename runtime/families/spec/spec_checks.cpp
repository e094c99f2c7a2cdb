// The checks of a KernelSpec whose names, launch and arguments are known: ParsedSpec refuses what they find.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include <hone/sdk/kernel_file.h>

#include "runtime/families/spec/parsed_spec.h"
#include "runtime/families/spec/scalar_range.h"
#include "runtime/families/spec/words.h"

namespace hone {

void ParsedSpec::check_names() const {
  std::set<std::string_view> known;
  const auto add = [&](std::string_view field, std::string_view name) {
    if (!is_identifier(name))
      fail(field, name, fmt::format("has '{}' among its {}, which is no C++ name", name, field));
    if (!known.insert(name).second)
      fail(field, name, fmt::format("has the name '{}' twice among its parameters and extents; rename one", name));
  };
  if (spec.parameters.size() > Policy::kMaxParameters)
    fail("parameters", "",
         fmt::format("has {} parameters; there may be {}", spec.parameters.size(), Policy::kMaxParameters));
  for (const Parameter& parameter : spec.parameters) {
    add("parameters", parameter.name);
    if (parameter.values.empty())
      fail("parameters", parameter.name, fmt::format("has no values for the parameter {}", parameter.name));
    std::set<std::string> values;
    for (const std::int32_t value : parameter.values)
      if (const std::string text = parameter.spell(value); !values.insert(text).second)
        fail("parameters", parameter.name, fmt::format("has the value {} twice for {}", text, parameter.name));
    if (parameter.kind() == ParameterKind::ordinal &&
        std::any_of(parameter.values.begin(), parameter.values.end(), [](std::int32_t value) { return value < 1; }))
      fail("parameters", parameter.name,
           fmt::format("has a value below 1 for the parameter {}; what is no size is categorical",
                       parameter.name));
  }
  if (spec.extents.empty() || spec.extents.size() > 3)
    fail("extents", "",
         fmt::format("has {} extents; there may be one to three, and further numbers as scalars", spec.extents.size()));
  for (const std::string& extent : spec.extents) add("extents", extent);
  std::size_t scalars = 0;
  std::set<std::string_view> named;
  for (const KernelArgument& argument : spec.arguments) {
    if (argument.kind == KernelArgument::Kind::extent) continue;
    if (!is_identifier(argument.name))
      fail("arguments", argument.name,
           fmt::format("has '{}' among its arguments, which is no C++ name", argument.name));
    if (!named.insert(argument.name).second)
      fail("arguments", argument.name, fmt::format("has the argument '{}' twice; rename one", argument.name));
    if (!argument.below.empty() && info(argument.dtype).is_floating())
      fail("arguments", argument.name,
           fmt::format("has indices_below for '{}', whose elements are {}; indices are integers", argument.name,
                       info(argument.dtype).name));
    if (std::find(spec.extents.begin(), spec.extents.end(), argument.name) != spec.extents.end())
      fail("arguments", argument.name,
           fmt::format("has an argument with the name of the extent {}; give that the kind 'extent'", argument.name));
    if (argument.kind != KernelArgument::Kind::scalar) continue;
    ++scalars;
    if (const std::string fault = scalar_fault(argument, argument.value); !fault.empty())
      fail("arguments", argument.name, fmt::format("has no value to tune with for a scalar: {}", fault));
  }
  if (scalars > Scalars().size())
    fail("arguments", "", fmt::format("has {} scalars; there may be {}", scalars, Scalars().size()));
  if (spec.arguments.size() > Arguments::kCapacity)
    fail("arguments", "",
         fmt::format("has {} arguments; there may be {}", spec.arguments.size(), Arguments::kCapacity));
  if (std::none_of(spec.arguments.begin(), spec.arguments.end(), [](const KernelArgument& argument) {
        return argument.kind == KernelArgument::Kind::out || argument.kind == KernelArgument::Kind::inout;
      }))
    fail("arguments", "", "writes nothing: give 'out' or 'inout' among its arguments");
  for (const std::string& kind : spec.inputs)
    if (kind != "uniform" && kind != "special")
      fail("inputs", kind,
           fmt::format("is verified on the input '{}', which is not known; there are uniform and special", kind));
  if (spec.inputs.empty()) fail("inputs", "", "has no kind of input to be verified on; give 'inputs'");
}

/// A parameter that changes nothing would be tuned all the same.
void ParsedSpec::check_parameters_are_used() const {
  std::vector<std::string> texts{without_comments(spec.source)};
  for (const SourceFile& header : headers) texts.push_back(without_comments(header.text));
  std::set<std::string_view> words;
  for (const std::string& text : texts) add_words(text, words);
  add_words(std::string_view(spec.entry).substr(std::min(spec.entry.find('<'), spec.entry.size())), words);
  std::uint64_t used =
      dynamic_smem_bytes.used_variables() | cluster_blocks.used_variables() | dependent_launch.used_variables();
  for (const auto* expressions : {&block, &elements_per_block, &elements_per_thread, &elements})
    for (const Expression& each : *expressions) used |= each.used_variables();
  for (std::size_t i = 0; i < spec.parameters.size(); ++i)
    if (!words.contains(spec.parameters[i].name) && (used >> i & 1) == 0)
      fail("parameters", spec.parameters[i].name,
           fmt::format("has the parameter {}, which its source does not use: neither as a macro, nor as an argument in "
                       "'entry' ({}), nor in block and the like",
                       spec.parameters[i].name, spec.entry));
}

void ParsedSpec::check_reference() const {
  using Kind = KernelReference::Kind;
  if (spec.reference.kind() == Kind::kernel && global_functions(spec.reference.source()).size() != 1)
    fail("reference", "", "has a reference kernel with no or several __global__ functions; it needs exactly one");
  if (spec.reference.kind() != Kind::function) return;
  const std::vector<KernelReference::Parameter>& parameters = spec.reference.parameters();
  if (parameters.size() != spec.arguments.size())
    fail("reference", "",
         fmt::format("has {} arguments, and its reference {} parameters; they must be the same in number and order",
                     spec.arguments.size(), parameters.size()));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const KernelArgument& argument = spec.arguments[i];
    const bool is_written = argument.kind == KernelArgument::Kind::out || argument.kind == KernelArgument::Kind::inout;
    if (argument.is_array() == parameters[i].is_array && is_written == parameters[i].is_written) continue;
    fail("reference", "",
         fmt::format("has a reference whose parameter {} does not fit the argument {}: it must be {}", i + 1,
                     argument.name,
                     !argument.is_array() ? "a number"
                     : is_written         ? "a std::span of elements to write"
                                          : "a std::span of const elements"));
  }
}

}  // namespace hone
