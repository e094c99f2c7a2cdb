// WinnerFilter: the winners that the options of a command name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/records.h"
#include "tuner/problems/shapes.h"

namespace hone::tuner {

/// The options as typed; empty ones name everything.
struct FilterOptions {
  std::string id;
  std::string device;
  std::string family;
  std::string ops;
  std::string dtypes;
  std::string size;
  std::string context;
  std::string numerics;
  std::string objective;
};

class WinnerFilter {
 public:
  /// `all`: whose families and operations may be named besides those that are built in. Throws CommandError(usage).
  WinnerFilter(const FilterOptions& options, const std::vector<cache::StoredWinner>& all);

  bool passes(const cache::StoredWinner& stored) const;

  /// The winners of `all` that pass.
  std::vector<cache::StoredWinner> matches(const std::vector<cache::StoredWinner>& all) const;

  /// True if the options name one problem.
  bool names_one_problem() const { return id_ || (shape_ && ops_.size() == 1 && dtypes_.size() == 1); }

 private:
  bool serves_numerics(const cache::ProblemRecord& problem) const;
  bool serves_shape(const cache::ProblemRecord& problem) const;

  std::optional<std::int64_t> id_;
  std::string device_;
  std::vector<std::string> ops_;
  std::vector<std::string> dtypes_;
  std::vector<std::string> contexts_;
  std::string family_;
  std::string_view numerics_;
  std::string_view objective_;
  std::optional<TypedShape> shape_;
};

}  // namespace hone::tuner
