#include <hone/policy.h>

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hone {
namespace {

std::vector<std::string> spelled_values(const Parameter& parameter) {
  std::vector<std::string> texts;
  for (const std::int32_t value : parameter.values) texts.push_back(parameter.spell(value));
  return texts;
}

}  // namespace

Parameter ordinal(std::string_view name, std::vector<std::int32_t> values) {
  return {.name = name, .values = std::move(values)};
}

Parameter categorical(std::string_view name, std::vector<std::string_view> value_names) {
  Parameter parameter{.name = name, .values = {}, .value_names = std::move(value_names)};
  for (std::size_t i = 0; i < parameter.value_names.size(); ++i)
    parameter.values.push_back(static_cast<std::int32_t>(i));
  return parameter;
}

std::string Parameter::spell(std::int32_t value) const {
  const auto position = static_cast<std::size_t>(std::find(values.begin(), values.end(), value) - values.begin());
  return position < value_names.size() ? std::string(value_names[position]) : std::to_string(value);
}

Policy::Policy(std::initializer_list<std::int32_t> values) {
  for (std::int32_t value : values) push_back(value);
}

void Policy::push_back(std::int32_t value) {
  if (size_ == kMaxParameters)
    throw std::length_error(fmt::format("a policy has at most {} parameters", kMaxParameters));
  values_[static_cast<std::size_t>(size_++)] = value;
}

ParameterSpace::ParameterSpace(std::vector<Parameter> parameters) : parameters_(std::move(parameters)) {
  if (parameters_.size() > Policy::kMaxParameters)
    throw std::length_error(fmt::format("a parameter space has at most {} parameters", Policy::kMaxParameters));
  for (auto parameter = parameters_.begin(); parameter != parameters_.end(); ++parameter)
    for (const Condition& condition : parameter->conditions)
      if (std::none_of(parameters_.begin(), parameter, [&](const Parameter& other) {
            return other.name == condition.parameter;
          }))
        throw std::logic_error(fmt::format("the parameter {} depends on {}, which does not stand before it",
                                           parameter->name, condition.parameter));
}

bool ParameterSpace::exists(std::size_t index, const Policy& policy) const {
  const std::vector<Condition>& conditions = parameters_[index].conditions;
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    const auto named = std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& parameter) {
      return parameter.name == condition.parameter;
    });
    const std::int32_t value = policy[static_cast<int>(named - parameters_.begin())];
    return std::find(condition.values.begin(), condition.values.end(), value) != condition.values.end();
  });
}

std::vector<Policy> ParameterSpace::all() const {
  std::vector<Policy> policies{Policy{}};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::vector<Policy> longer;
    for (const Policy& policy : policies) {
      if (!exists(i, policy)) {
        longer.emplace_back(policy).push_back(parameters_[i].absent_value);
        continue;
      }
      for (const std::int32_t value : parameters_[i].values) longer.emplace_back(policy).push_back(value);
    }
    policies = std::move(longer);
  }
  return policies;
}

std::string ParameterSpace::to_string(const Policy& policy) const {
  std::string text;
  for (int i = 0; i < policy.size(); ++i) {
    const Parameter& parameter = parameters_[static_cast<std::size_t>(i)];
    if (exists(static_cast<std::size_t>(i), policy))
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", parameter.name, parameter.spell(policy[i]));
  }
  return text;
}

std::optional<Policy> ParameterSpace::parse(std::string_view text, std::string* fault) const {
  const auto reject = [&](std::string why) {
    if (fault) *fault = std::move(why);
    return std::nullopt;
  };
  Policy policy;
  std::string_view rest = text;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (!exists(i, policy)) {
      policy.push_back(parameter.absent_value);
      continue;
    }
    const std::string_view field = rest.substr(0, rest.find(' '));
    const auto value = std::find_if(parameter.values.begin(), parameter.values.end(), [&](std::int32_t candidate) {
      return field == fmt::format("{}={}", parameter.name, parameter.spell(candidate));
    });
    if (value == parameter.values.end())
      return reject(fmt::format("'{}' stands where {} has to be one of {}", field, parameter.name,
                                fmt::join(spelled_values(parameter), ", ")));
    policy.push_back(*value);
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
  }
  if (to_string(policy) == text) return policy;
  return reject(rest.empty() ? fmt::format("'{}' has a space too many", text)
                             : fmt::format("'{}' is no parameter of a policy that begins with '{}'", rest,
                                           to_string(policy)));
}

}  // namespace hone
