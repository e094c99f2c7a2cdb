// Parameter, ParameterSpace and Policy: the compile-time parameters of a kernel family.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hone {

/// The distance between the values of a parameter, on which the search relies.
enum class ParameterKind : std::uint8_t {
  ordinal,      ///< positive numbers; two of them are |log2(a ÷ b)| apart
  categorical,  ///< names; any two are one step apart
};

/// A condition for a parameter to exist in a policy: that another one, which stands before it in the space, has one of
/// `values`.
struct Condition {
  std::string_view parameter;
  std::vector<std::int32_t> values;
};

/// One compile-time parameter: its name, and the values that it may take, the default first. The values of a
/// categorical parameter are enumerators, and `value_names` is parallel to `values`.
struct Parameter {
  std::string_view name;
  std::vector<std::int32_t> values;
  std::vector<std::string_view> value_names = {};
  std::vector<Condition> conditions = {};  ///< the parameter exists where all of them hold
  std::int32_t absent_value = 0;           ///< the value that it has where it does not exist

  ParameterKind kind() const { return value_names.empty() ? ParameterKind::ordinal : ParameterKind::categorical; }
  std::string spell(std::int32_t value) const;

  /// Makes this parameter exist only where `parameter` has one of the `allowed` numbers or enumerators.
  template <class Value>
  Parameter only_if(std::string_view parameter, std::initializer_list<Value> allowed) && {
    Condition condition{.parameter = parameter, .values = {}};
    for (const Value value : allowed) condition.values.push_back(static_cast<std::int32_t>(value));
    conditions.push_back(std::move(condition));
    return std::move(*this);
  }

  /// Gives this parameter the value `value` where it does not exist.
  Parameter otherwise(std::int32_t value) && {
    absent_value = value;
    return std::move(*this);
  }
};

/// An ordinal parameter; `values` has the default first.
Parameter ordinal(std::string_view name, std::vector<std::int32_t> values);

/// A categorical parameter; `value_names` are those of the enumerators 0, 1, …, and the first is the default.
Parameter categorical(std::string_view name, std::vector<std::string_view> value_names);

/// One value for each Parameter of a space, in the order of the space. A parameter that does not exist has its
/// absent_value.
class Policy {
 public:
  static constexpr int kMaxParameters = 16;

  Policy() = default;
  Policy(std::initializer_list<std::int32_t> values);

  int size() const { return size_; }
  std::int32_t operator[](int parameter) const { return values_[static_cast<std::size_t>(parameter)]; }
  void push_back(std::int32_t value);

  /// The policy as the struct that the family's space was made of, see space_of(). Copies; used on every hit.
  template <class Fields>
  Fields as() const {
    static_assert(std::is_trivially_copyable_v<Fields> && sizeof(Fields) <= sizeof(values_));
    Fields fields;
    std::memcpy(static_cast<void*>(&fields), values_.data(), sizeof(Fields));
    return fields;
  }

  /// The policy with the values of `fields`.
  template <class Fields>
  static Policy of(const Fields& fields) {
    static_assert(std::is_trivially_copyable_v<Fields> && sizeof(Fields) <= sizeof(values_));
    Policy policy;
    std::memcpy(policy.values_.data(), &fields, sizeof(Fields));
    policy.size_ = static_cast<int>(sizeof(Fields) / sizeof(std::int32_t));
    return policy;
  }

  bool operator==(const Policy&) const = default;

 private:
  std::array<std::int32_t, kMaxParameters> values_{};
  int size_ = 0;
};

/// The parameters of one family. Immutable.
class ParameterSpace {
 public:
  /// Throws std::logic_error if a condition names no earlier parameter.
  explicit ParameterSpace(std::vector<Parameter> parameters);

  const std::vector<Parameter>& parameters() const { return parameters_; }

  /// True if the parameter at `index` exists in a policy of this space.
  bool exists(std::size_t index, const Policy& policy) const;

  /// Every policy once, in lexicographic order of the value lists, so that the defaults come first. The family says
  /// which of them are valid (KernelFamily::is_valid()).
  std::vector<Policy> all() const;

  /// Spells the parameters that exist, as the cache stores them and messages show them:
  /// "block_threads=256 vector_bytes=16 tail=warp".
  std::string to_string(const Policy& policy) const;

  /// The inverse of to_string(). Returns nullopt unless every parameter that exists is there once, in order, with a
  /// value of the space; `fault`, if given, then says which field is wrong and which values it may have.
  std::optional<Policy> parse(std::string_view text, std::string* fault = nullptr) const;

 private:
  std::vector<Parameter> parameters_;
};

/// A member of a policy struct, with the parameter whose value it holds.
template <class Fields, class Value>
struct PolicyField {
  static_assert(sizeof(Value) == sizeof(std::int32_t) && (std::is_same_v<Value, std::int32_t> || std::is_enum_v<Value>),
                "the members of a policy are std::int32_t or enums of that size");
  Value Fields::* member;
  Parameter parameter;
};
template <class Fields, class Value>
PolicyField(Value Fields::*, Parameter) -> PolicyField<Fields, Value>;

/// Makes the space whose policies are the values of a struct: one member of 32 bits for each parameter, in the same
/// order. Throws std::logic_error if the order differs.
template <class Fields, class... Values>
ParameterSpace space_of(PolicyField<Fields, Values>... fields) {
  static_assert(
      sizeof...(Values) <= Policy::kMaxParameters && sizeof(Fields) == sizeof...(Values) * sizeof(std::int32_t),
      "a policy has a parameter for every member");
  const Fields sample{};
  std::vector<Parameter> parameters;
  const auto add = [&](auto field) {
    const auto offset = reinterpret_cast<const std::byte*>(&(sample.*field.member)) -
                        reinterpret_cast<const std::byte*>(&sample);
    if (static_cast<std::size_t>(offset) != parameters.size() * sizeof(std::int32_t))
      throw std::logic_error("the parameters of a space are not in the order of the policy's members");
    parameters.push_back(std::move(field.parameter));
  };
  (add(std::move(fields)), ...);
  return ParameterSpace(std::move(parameters));
}

}  // namespace hone
