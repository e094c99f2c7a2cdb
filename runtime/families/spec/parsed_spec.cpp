#include "runtime/families/spec/parsed_spec.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/error.h>
#include <hone/sdk/family_table.h>
#include <hone/sdk/kernel_file.h>

#include "cache/digest.h"
#include "runtime/families/built_in_family.h"
#include "runtime/families/counts.h"
#include "runtime/families/spec/words.h"

namespace hone {
namespace {

constexpr std::size_t kMostPolicies = 1 << 20;

/// read_kernel_file() begins each text with a #line of its path; binaries are the same wherever the file lies.
std::string without_place(const std::string& text) { return text.substr(text.find('\n') + 1); }

std::optional<std::int64_t> as_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// A value that is no number, and no flag, which counts as 0 or 1.
bool is_name(std::string_view value) { return !as_integer(value) && value != "true" && value != "false"; }

}  // namespace

ParsedSpec::ParsedSpec(const KernelSpec& described) : spec(described) {
  read_source();
  choose_entry();
  check_names();
  make_space();
  parse_launch();
  parse_arguments();
  check_parameters_are_used();
  check_reference();
  choose_default_policy();
  version = digest();
}

void ParsedSpec::fail(std::string_view field, std::string_view item, const std::string& why) const {
  std::string name = spec.name.empty() ? spec.file.filename().string() : spec.name;
  if (name.empty()) name = spec.entry;
  throw KernelSpecError(fmt::format("the kernel '{}' {}", name, why), std::string(field), std::string(item));
}

void ParsedSpec::read_source() {
  if (spec.file.empty() == spec.source.empty())
    fail("source", "", "needs either 'file' or 'source', and one of them alone");
  if (spec.file.empty()) return;
  const Unit unit = read_kernel_file(spec.file, {""});
  spec.source = without_place(unit.source);
  for (const SourceFile& header : unit.headers)
    headers.push_back({header.name, with_place(header.name, without_place(header.text))});
}

void ParsedSpec::choose_entry() {
  const std::vector<std::string> known = global_functions(spec.source);
  if (spec.entry.empty()) {
    if (known.size() != 1)
      fail("entry", "",
           known.empty()
               ? "has no function marked __global__; name what its macros make as 'entry'"
               : fmt::format("has several kernels; name one as 'entry': {}", fmt::join(known, ", ")));
    spec.entry = known.front();
  }
  std::string function = spec.entry.substr(0, spec.entry.find('<'));
  function.erase(0, function.rfind(':') + 1);
  if (!known.empty() && std::find(known.begin(), known.end(), function) == known.end())
    fail("entry", "",
         fmt::format("has no __global__ function '{}' (its 'entry'); it has {}", function,
                     fmt::join(known, ", ")));
  if (spec.name.empty()) spec.name = function;
  if (!is_identifier(spec.name)) fail("name", "", "needs a name of letters, digits and underscores");
  if (std::ranges::any_of(built_in_families(), [&](const auto& row) { return row.family().name() == spec.name; }))
    fail("name", "", "has the name of a built-in family, and both would be stored under it; give it another 'name'");
  file_name = spec.file.empty() ? spec.name + ".cu" : spec.file.filename().string();
}

/// Copies the names, which belong to the caller.
void ParsedSpec::make_space() {
  const auto keep = [&](std::string_view text) { return std::string_view(names.emplace_back(text)); };
  std::vector<Parameter> parameters = spec.parameters;
  for (Parameter& parameter : parameters) {
    parameter.name = keep(parameter.name);
    for (std::string_view& name : parameter.value_names) name = keep(name);
    for (Condition& condition : parameter.conditions) condition.parameter = keep(condition.parameter);
  }
  spec.parameters = parameters;
  try {
    space = ParameterSpace(parameters);
  } catch (const std::logic_error& error) {
    fail("parameters", "", error.what());
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool has_names = std::ranges::any_of(parameters[i].value_names, is_name);
    expression_names.push_back({.name = parameters[i].name, .variable = static_cast<int>(i), .has_names = has_names});
    std::vector<std::int64_t>& seen = seen_values.emplace_back();
    for (const std::int32_t value : parameters[i].values)
      seen.push_back(as_integer(parameters[i].spell(value)).value_or(value));
  }
  for (const Parameter& parameter : parameters)
    for (std::size_t i = 0; i < parameter.value_names.size(); ++i)
      if (is_identifier(parameter.value_names[i]))
        expression_names.push_back({.name = parameter.value_names[i],
                                    .constant = static_cast<std::int64_t>(i),
                                    .has_names = is_name(parameter.value_names[i])});
  policy_names = expression_names.size();
  for (const std::string& kind : spec.inputs) input_kinds.push_back(keep(kind));
  for (std::size_t i = 0; i < spec.extents.size(); ++i) {
    extent_names.push_back(keep(spec.extents[i]));
    expression_names.push_back({.name = extent_names.back(), .variable = Policy::kMaxParameters + static_cast<int>(i)});
  }
}

Expression ParsedSpec::expression(std::string_view field, std::string_view item, const std::string& text,
                                  std::size_t known_names) const {
  try {
    return {fmt::format("the kernel '{}': {}", spec.name, field), text, std::span(expression_names).first(known_names)};
  } catch (const Error& error) {
    throw KernelSpecError(error.what(), std::string(field), std::string(item));
  }
}

Expression ParsedSpec::policy_expression(std::string_view field, const std::string& text,
                                         const std::string& usual) const {
  return expression(field, text, text.empty() ? usual : text, policy_names);
}

Expression ParsedSpec::call_expression(std::string_view field, std::string_view item, const std::string& text) const {
  const std::string usual = fmt::format("{}", fmt::join(spec.extents, " * "));
  return expression(field, item, text.empty() ? usual : text, expression_names.size());
}

void ParsedSpec::parse_launch() {
  const auto axes = [&](std::string_view field, const std::vector<KernelExpression>& texts, std::size_t most) {
    if (texts.size() > most)
      fail(field, "", fmt::format("has {} values for {}; there may be {}", texts.size(), field, most));
    std::vector<Expression> parsed;
    for (const std::string& text : texts) parsed.push_back(call_expression(field, text, text));
    return parsed;
  };
  for (const std::string& text : spec.where) where.push_back(policy_expression("where", text, "1"));
  if (spec.block.empty() || spec.block.size() > 3) fail("block", "", "needs one to three values for block");
  for (const std::string& text : spec.block) block.push_back(policy_expression("block", text, "1"));
  if (!spec.elements_per_block.empty() && !spec.elements_per_thread.empty())
    fail("elements_per_thread", "", "has both elements_per_block and elements_per_thread; give one of them");
  elements_per_block = axes("elements_per_block", spec.elements_per_block, spec.extents.size());
  elements_per_thread = axes("elements_per_thread", spec.elements_per_thread, spec.extents.size());
  dynamic_smem_bytes = policy_expression("dynamic_smem_bytes", spec.dynamic_smem_bytes, "0");
  cluster_blocks = policy_expression("cluster_blocks", spec.cluster_blocks, "1");
  dependent_launch = policy_expression("dependent_launch", spec.dependent_launch, "0");
  if (spec.grid_stride && spec.extents.size() > 1)
    fail("grid_stride", "", "has several extents and grid_stride; a grid-stride loop is over one extent");
}

void ParsedSpec::parse_arguments() {
  std::size_t buffers = 0;
  for (const KernelArgument& argument : spec.arguments) {
    const bool has_length = argument.kind != KernelArgument::Kind::scalar;
    elements.push_back(has_length ? call_expression("arguments", argument.name, argument.elements) : Expression());
    below.push_back(argument.below.empty() ? Expression()
                                           : call_expression("arguments", argument.name, argument.below));
    constexpr std::uint64_t kParameters = (std::uint64_t{1} << Policy::kMaxParameters) - 1;
    if (argument.is_array() && (elements.back().used_variables() & kParameters) != 0)
      fail("arguments", argument.name,
           fmt::format("has the array {} of {} elements; its length may depend on extents alone", argument.name,
                       argument.elements));
    scalar_of.push_back(scalar_names.size());
    if (argument.kind == KernelArgument::Kind::scalar) scalar_names.push_back(argument.name);
    buffer_of.push_back(
        argument.kind < KernelArgument::Kind::scalar && argument.kind != KernelArgument::Kind::out ? buffers++ : 0);
  }
  for (std::size_t i = 0; i < spec.arguments.size(); ++i)
    if (spec.arguments[i].kind == KernelArgument::Kind::out) buffer_of[i] = buffers++;
  for (const auto kind : {KernelArgument::Kind::inout, KernelArgument::Kind::out})
    for (std::size_t i = 0; i < spec.arguments.size(); ++i)
      if (spec.arguments[i].kind == kind) written_arguments.push_back(i);
  dtype = std::find_if(spec.arguments.begin(), spec.arguments.end(), [](const KernelArgument& argument) {
            return argument.is_array();
          })->dtype;
}

/// Says which part of a policy's launch is below 1, whatever the extents.
ParsedSpec::EmptyLaunch ParsedSpec::empty_launch(const Policy& policy) const {
  const Variables known = variables(policy);
  constexpr std::uint64_t kParameters = (std::uint64_t{1} << Policy::kMaxParameters) - 1;
  const std::pair<std::string_view, const std::vector<Expression>*> parts[] = {
      {"block", &block}, {"elements_per_block", &elements_per_block}, {"elements_per_thread", &elements_per_thread}};
  for (const auto& [field, expressions] : parts)
    for (const Expression& each : *expressions) {
      if ((each.used_variables() & ~kParameters) != 0) continue;
      try {
        if (const std::int64_t value = each.evaluate(known); value < 1)
          return {field, each.text(),
                  fmt::format("{} = \"{}\" is {} for {}, and must be 1 or more", field, each.text(), value,
                              space.to_string(policy))};
      } catch (const Error& error) {
        return {field, each.text(), fmt::format("{}, for {}", error.what(), space.to_string(policy))};
      }
    }
  return {};
}

void ParsedSpec::choose_default_policy() {
  std::size_t policies = 1;
  for (const Parameter& parameter : space.parameters())
    if ((policies *= parameter.values.size()) > kMostPolicies)
      fail("parameters", "", fmt::format("has more than {} policies; give its parameters fewer values", kMostPolicies));
  const std::vector<Policy> known_policies = space.all();
  const auto is_allowed = [&](const Policy& policy) {
    const Variables known = variables(policy);
    return std::all_of(where.begin(), where.end(), [&](const Expression& each) {
      try {
        return each.evaluate(known) != 0;
      } catch (const Error& error) {
        throw KernelSpecError(fmt::format("{}, for {}", error.what(), space.to_string(policy)), "where",
                              std::string(each.text()));
      }
    });
  };
  if (std::none_of(known_policies.begin(), known_policies.end(), is_allowed))
    fail("where", "",
         fmt::format("has no policy that meets {}; loosen a condition or add values", fmt::join(spec.where, " and ")));
  const auto first = std::find_if(known_policies.begin(), known_policies.end(), [&](const Policy& policy) {
    return is_allowed(policy) && empty_launch(policy).why.empty();
  });
  if (first == known_policies.end()) {
    const EmptyLaunch empty = empty_launch(*std::ranges::find_if(known_policies, is_allowed));
    fail(empty.field, empty.item, fmt::format("has no policy that can be launched: {}", empty.why));
  }
  default_policy = *first;
}

int ParsedSpec::digest() const {
  cache::Digest digest;
  digest.add("source", spec.source).add("entry", spec.entry).add("grid_stride", std::int64_t{spec.grid_stride});
  digest.add("alignment", std::int64_t{spec.alignment});
  for (const auto* texts :
       {&spec.where, &spec.extents, &spec.block, &spec.elements_per_block, &spec.elements_per_thread})
    digest.add("list", fmt::format("{}", fmt::join(*texts, "\n")));
  for (const Expression* each : {&dynamic_smem_bytes, &cluster_blocks, &dependent_launch})
    digest.add("launch", each->text());
  for (std::size_t i = 0; i < spec.arguments.size(); ++i) {
    const KernelArgument& argument = spec.arguments[i];
    digest.add("argument", static_cast<std::int64_t>(argument.kind)).add("dtype", info(argument.dtype).name);
    digest.add("elements", elements[i].text());
  }
  return static_cast<int>(std::stoul(digest.hex().substr(0, 7), nullptr, 16));
}

ParsedSpec::Variables ParsedSpec::variables(const Policy& policy, const Extents& extents) const {
  Variables variables{};
  for (std::size_t i = 0; i < seen_values.size(); ++i) {
    const std::vector<std::int32_t>& known = space.parameters()[i].values;
    const std::int32_t value = policy[static_cast<int>(i)];
    const auto place = static_cast<std::size_t>(std::find(known.begin(), known.end(), value) - known.begin());
    variables[i] =
        place < known.size() ? seen_values[i][place] : value;  // beside them is only a parameter's absent value
  }
  std::copy(extents.begin(), extents.end(), variables.begin() + Policy::kMaxParameters);
  return variables;
}

ParsedSpec::Grid ParsedSpec::grid(const Extents& extents, const Policy& policy) const {
  const Variables known = variables(policy, extents);
  Grid grid{.tiles = {1, 1, 1}, .block = {1, 1, 1}, .elements = {1, 1, 1}};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (axis < block.size()) grid.block[axis] = block[axis].evaluate(known);
    std::int64_t per_block = grid.block[axis];
    if (axis < elements_per_block.size()) per_block = elements_per_block[axis].evaluate(known);
    if (axis < elements_per_thread.size()) {
      const std::int64_t per_thread = elements_per_thread[axis].evaluate(known);
      if (__builtin_mul_overflow(per_block, per_thread, &per_block))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("elements_per_thread '{}', times the threads of a block, overflows",
                                elements_per_thread[axis].text()));
    }
    grid.elements[axis] = per_block;
    const std::int64_t extent = axis < extent_names.size() ? extents[axis] : 1;
    if (extent == 0)
      grid.tiles[axis] = 0;
    else if (per_block > 0)
      grid.tiles[axis] = divide_up(extent, per_block);
  }
  return grid;
}

Unit ParsedSpec::unit_of(const Policy& policy) const {
  std::set<std::string_view> template_arguments;
  const std::size_t begin = std::min(spec.entry.find('<'), spec.entry.size());
  add_words(std::string_view(spec.entry).substr(begin), template_arguments);
  std::string macros, entry = spec.entry.substr(0, begin);
  const auto spelled = [&](std::string_view word) -> std::string {
    for (std::size_t i = 0; i < space.parameters().size(); ++i)
      if (space.parameters()[i].name == word) return space.parameters()[i].spell(policy[static_cast<int>(i)]);
    return std::string(word);
  };
  for (const Parameter& parameter : space.parameters())
    if (!template_arguments.contains(parameter.name))
      macros += fmt::format("#define {} {}\n", parameter.name, spelled(parameter.name));
  split_words(
      std::string_view(spec.entry).substr(begin), [&](std::string_view word) { entry += spelled(word); },
      [&](std::string_view other) { entry += other; });
  return {.name = fmt::format("{} {}", spec.name, space.to_string(policy)),
          .source = macros + with_place(file_name, spec.source) + "\n",
          .headers = {},
          .entries = {entry}};
}

}  // namespace hone
