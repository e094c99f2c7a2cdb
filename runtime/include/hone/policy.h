// Parameter, ParameterSpace and Policy: the compile-time choices of a kernel family.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

/// One compile-time parameter: its name and the values it may take. Where the kernel source spells values by name
/// (an enum), `value_names` is parallel to `values`; otherwise it is empty.
struct Parameter {
  std::string_view name;
  std::vector<std::int32_t> values;
  std::vector<std::string_view> value_names = {};

  std::string spell(std::int32_t value) const;
};

/// One choice for every Parameter of a space, in the order of the space.
class Policy {
 public:
  static constexpr int kMaxParameters = 8;

  Policy() = default;
  Policy(std::initializer_list<std::int32_t> values);

  int size() const { return size_; }
  std::int32_t operator[](int parameter) const { return values_[static_cast<std::size_t>(parameter)]; }
  void push_back(std::int32_t value);

  bool operator==(const Policy&) const = default;

 private:
  std::array<std::int32_t, kMaxParameters> values_{};
  int size_ = 0;
};

/// The parameters of one family. Immutable.
class ParameterSpace {
 public:
  explicit ParameterSpace(std::vector<Parameter> parameters);

  const std::vector<Parameter>& parameters() const { return parameters_; }

  /// The whole product, in lexicographic order of the value lists. Constraints are the family's business.
  std::vector<Policy> all() const;

  /// "block_threads=256 vector_bytes=16 tail=shuffle": what the cache stores and messages show.
  std::string to_string(const Policy& policy) const;

  /// The inverse of to_string; nullopt unless every parameter is there once, in order, with a value of the space.
  std::optional<Policy> parse(std::string_view text) const;

 private:
  std::vector<Parameter> parameters_;
};

}  // namespace hone
