#include <hone/variant.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

namespace hone {

std::string Parameter::spell(std::int32_t value) const {
  const auto position = static_cast<std::size_t>(std::find(values.begin(), values.end(), value) - values.begin());
  return position < value_names.size() ? std::string(value_names[position]) : std::to_string(value);
}

Variant::Variant(std::initializer_list<std::int32_t> values) {
  for (std::int32_t value : values) push_back(value);
}

void Variant::push_back(std::int32_t value) {
  if (size_ == kMaxParameters)
    throw std::length_error(fmt::format("a variant has at most {} parameters", kMaxParameters));
  values_[static_cast<std::size_t>(size_++)] = value;
}

ParameterSpace::ParameterSpace(std::vector<Parameter> parameters) : parameters_(std::move(parameters)) {
  if (parameters_.size() > Variant::kMaxParameters)
    throw std::length_error(fmt::format("a parameter space has at most {} parameters", Variant::kMaxParameters));
}

std::vector<Variant> ParameterSpace::all() const {
  std::vector<Variant> variants{Variant{}};
  for (const Parameter& parameter : parameters_) {
    std::vector<Variant> longer;
    for (const Variant& variant : variants) {
      for (std::int32_t value : parameter.values) {
        longer.push_back(variant);
        longer.back().push_back(value);
      }
    }
    variants = std::move(longer);
  }
  return variants;
}

std::string ParameterSpace::to_string(const Variant& variant) const {
  std::string text;
  for (int i = 0; i < variant.size(); ++i) {
    const Parameter& parameter = parameters_[static_cast<std::size_t>(i)];
    text += fmt::format("{}{}={}", i == 0 ? "" : " ", parameter.name, parameter.spell(variant[i]));
  }
  return text;
}

std::optional<Variant> ParameterSpace::parse(std::string_view text) const {
  Variant variant;
  std::string_view rest = text;
  for (const Parameter& parameter : parameters_) {
    const std::string_view field = rest.substr(0, rest.find(' '));
    const auto value = std::find_if(parameter.values.begin(), parameter.values.end(), [&](std::int32_t candidate) {
      return field == fmt::format("{}={}", parameter.name, parameter.spell(candidate));
    });
    if (value == parameter.values.end()) return std::nullopt;
    variant.push_back(*value);
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
  }
  return to_string(variant) == text ? std::optional(variant) : std::nullopt;
}

}  // namespace hone
