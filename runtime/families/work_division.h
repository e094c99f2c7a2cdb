// Scope, Staging and Combine: how work is divided, in the words that all families have in common.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <hone/policy.h>

namespace hone {

/// The threads that make one output together.
enum class Scope : std::int32_t {
  warp,     ///< one, some or all lanes of a warp: a further parameter says how many
  block,
  cluster,  ///< the blocks of a thread-block cluster: cluster_blocks of them
  grid,     ///< as many blocks as there are for it
};

/// How input reaches the registers.
enum class Staging : std::int32_t {
  direct,   ///< loaded by the threads that use it
  shared,   ///< through shared memory, in tiles
  shifted,  ///< rows that begin anywhere: aligned packs, of which neighbours are shifted into place
};

/// How the results of several blocks meet.
enum class Combine : std::int32_t {
  last_block,     ///< the block that takes the last ticket combines what all have published
  second_kernel,  ///< a second launch does
  pipeline,       ///< blocks publish and later read what others have published, in one launch
};

inline constexpr std::array<std::string_view, 4> kScopeNames{"warp", "block", "cluster", "grid"};
inline constexpr std::array<std::string_view, 3> kStagingNames{"direct", "shared", "shifted"};
inline constexpr std::array<std::string_view, 3> kCombineNames{"last_block", "second_kernel", "pipeline"};

/// A categorical parameter with some of an enum's values, the default first.
template <class Value, std::size_t kCount>
Parameter choice(std::string_view name, const std::array<std::string_view, kCount>& names,
                 std::initializer_list<Value> values) {
  Parameter parameter{.name = name, .values = {}, .value_names = {}};
  for (const Value value : values) {
    parameter.values.push_back(static_cast<std::int32_t>(value));
    parameter.value_names.push_back(names[static_cast<std::size_t>(value)]);
  }
  return parameter;
}

inline Parameter scope_parameter(std::initializer_list<Scope> values) { return choice("scope", kScopeNames, values); }
inline Parameter staging_parameter(std::initializer_list<Staging> values) {
  return choice("staging", kStagingNames, values);
}
inline Parameter combine_parameter(std::initializer_list<Combine> values) {
  return choice("combine", kCombineNames, values);
}

}  // namespace hone
