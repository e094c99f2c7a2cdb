#include <hone/policy.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

namespace hone {

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
}

std::vector<Policy> ParameterSpace::all() const {
  std::vector<Policy> policies{Policy{}};
  for (const Parameter& parameter : parameters_) {
    std::vector<Policy> longer;
    for (const Policy& policy : policies) {
      for (std::int32_t value : parameter.values) {
        longer.push_back(policy);
        longer.back().push_back(value);
      }
    }
    policies = std::move(longer);
  }
  return policies;
}

std::string ParameterSpace::to_string(const Policy& policy) const {
  std::string text;
  for (int i = 0; i < policy.size(); ++i) {
    const Parameter& parameter = parameters_[static_cast<std::size_t>(i)];
    text += fmt::format("{}{}={}", i == 0 ? "" : " ", parameter.name, parameter.spell(policy[i]));
  }
  return text;
}

std::optional<Policy> ParameterSpace::parse(std::string_view text) const {
  Policy policy;
  std::string_view rest = text;
  for (const Parameter& parameter : parameters_) {
    const std::string_view field = rest.substr(0, rest.find(' '));
    const auto value = std::find_if(parameter.values.begin(), parameter.values.end(), [&](std::int32_t candidate) {
      return field == fmt::format("{}={}", parameter.name, parameter.spell(candidate));
    });
    if (value == parameter.values.end()) return std::nullopt;
    policy.push_back(*value);
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
  }
  return to_string(policy) == text ? std::optional(policy) : std::nullopt;
}

}  // namespace hone
