// misfit_of(): why sessions do not use a stored winner whose row is intact.
#pragma once

#include <string>
#include <vector>

#include "cache/records.h"

namespace hone::tuner {

/// "'unroll=5 …' is no policy of reduce: …": what sessions report of the row when they come across it. "" where the
/// family has the policy, where sessions do not find the row since it is of another source of the family, and for
/// families that are not built in, which are not known here.
std::string misfit_of(const cache::StoredWinner& stored);

/// A winner that sessions do not use, and why.
struct Misfit {
  std::int64_t id;
  std::string why;
};
std::vector<Misfit> misfits_of(const std::vector<cache::StoredWinner>& winners);

}  // namespace hone::tuner
