// in_share(): which of their cases long tests run.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string_view>

namespace hone::test {

/// The environment variable HONE_TEST_SHARE, which scripts/test sets and explains: 0.125 lets a long test run an
/// eighth of its cases. Without it, a test runs all of them. Tests of random faults run more of them beyond 1.
inline double share() {
  const char* const text = std::getenv("HONE_TEST_SHARE");
  return text != nullptr ? std::strtod(text, nullptr) : 1;
}

/// The environment variable HONE_TEST_SEED, which says which cases of the share run; 0 without it.
inline std::size_t seed() {
  const char* const text = std::getenv("HONE_TEST_SEED");
  return text != nullptr ? std::strtoul(text, nullptr, 10) : 0;
}

/// Returns true for every `step`-th turn, or those of them that belong to the share. As many values of HONE_TEST_SEED
/// in a row as the share goes into 1 meet all of them.
inline bool in_share(std::size_t turn, std::size_t step = 1) {
  if (turn % step != 0) return false;
  const long shares = share() > 0 ? std::lround(1 / share()) : 1;
  return shares <= 1 || (turn / step + seed()) % static_cast<std::size_t>(shares) == 0;
}

/// The same for cases that have names instead of turns, such as the instances of a test, which are skipped otherwise.
inline bool in_share(std::string_view name) { return in_share(std::hash<std::string_view>()(name)); }

/// Why an instance was skipped.
inline constexpr const char* kNotInShare = "left to another HONE_TEST_SEED by HONE_TEST_SHARE";

}  // namespace hone::test
