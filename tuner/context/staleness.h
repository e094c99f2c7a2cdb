// Staleness: whether a stored winner still belongs to what is installed here.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cache/records.h"

namespace hone::tuner {

enum class Currency {
  current,  ///< found and served by programs of today
  stale,    ///< kernel templates, options of the compiler or driver are others now: not found any more, or due for a
            ///< new tuning
  unknown,  ///< of a device that is not in this machine
};

/// A device of this machine would store winners under this today.
struct CurrentToolchain {
  std::string kind;
  std::string architecture;
  std::string identity;
  std::string compiler;  ///< only its options count (cache::same_options())
  std::string driver;
  std::vector<std::pair<std::string, std::string>> family_digests = {};  ///< of the families built in

  cache::DeviceRecord record() const {
    return {.kind = kind, .name = {}, .architecture = architecture, .identity = identity};
  }
};

/// Opens every device of this machine; those that cannot be opened are left out.
std::vector<CurrentToolchain> current_toolchains();

Currency currency(const cache::KeyRecord& key, const std::vector<CurrentToolchain>& current);

}  // namespace hone::tuner
