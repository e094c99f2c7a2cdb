// ParsedSpec: a KernelSpec that was found to make sense, with its source read and its expressions parsed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel.h>
#include <hone/kernel_spec.h>
#include <hone/policy.h>
#include <hone/problem.h>

#include "runtime/families/counts.h"
#include "runtime/families/spec/expression.h"

namespace hone {

struct ParsedSpec {
  /// Values of all parameters and extents, as expressions take them.
  using Variables = std::array<std::int64_t, Policy::kMaxParameters + 3>;

  struct Grid {
    std::array<std::int64_t, 3> tiles;
    std::array<std::int64_t, 3> block;
    std::array<std::int64_t, 3> elements;  ///< of a block

    /// kMostBytes for more of them.
    std::int64_t total() const {
      return product_within_memory({tiles[0], tiles[1], tiles[2]}).value_or(kMostBytes);
    }
  };

  /// Throws as TunableKernel does.
  explicit ParsedSpec(const KernelSpec& described);
  ParsedSpec(const ParsedSpec&) = delete;
  ParsedSpec& operator=(const ParsedSpec&) = delete;

  Variables variables(const Policy& policy, const Extents& extents = {1, 1, 1}) const;
  /// Throws Error(invalid_argument) for an expression without a value, and where 64 bits cannot hold the elements.
  Grid grid(const Extents& extents, const Policy& policy) const;
  Unit unit_of(const Policy& policy) const;

  KernelSpec spec;  ///< with its name, source and entry filled in
  std::vector<SourceFile> headers;
  ParameterSpace space{{}};
  std::vector<std::string_view> extent_names, scalar_names, input_kinds;
  DType dtype = DType::f32;  ///< of the first array
  Policy default_policy;     ///< the first that `where` allows
  int version = 0;           ///< a digest of all that decides which code runs on what

  std::vector<Expression> where, block, elements_per_block, elements_per_thread;
  Expression dynamic_smem_bytes, cluster_blocks, dependent_launch;

  // Each has an entry per argument.
  std::vector<Expression> elements, below;
  std::vector<std::size_t> buffer_of, scalar_of;  ///< its place among the buffers, and among Problem::scalars

  /// The arguments that are outputs, in the order of the buffers: inputs that are updated come first.
  std::vector<std::size_t> written_arguments;

 private:
  [[noreturn]] void fail(std::string_view field, std::string_view item, const std::string& why) const;
  void read_source();
  void choose_entry();
  void check_names() const;
  void make_space();
  Expression expression(std::string_view field, std::string_view item, const std::string& text,
                        std::size_t known_names) const;
  Expression policy_expression(std::string_view field, const std::string& text, const std::string& usual) const;
  Expression call_expression(std::string_view field, std::string_view item, const std::string& text) const;
  void parse_launch();
  void parse_arguments();
  void check_parameters_are_used() const;
  void check_reference() const;
  struct EmptyLaunch {
    std::string_view field;
    std::string item, why;  ///< why: "" if there is none
  };
  EmptyLaunch empty_launch(const Policy& policy) const;
  void choose_default_policy();
  int digest() const;

  std::deque<std::string> names;                       ///< what views in `space` point into
  std::string file_name;                               ///< in messages of compilers
  std::vector<std::vector<std::int64_t>> seen_values;  ///< what expressions see of each value of each parameter
  std::vector<ExpressionName> expression_names;        ///< parameters, then the names of values, then extents
  std::size_t policy_names = 0;                        ///< how many of them are not extents
};

}  // namespace hone
