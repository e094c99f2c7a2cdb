// Scenario: one thing that can be done to a cache, to be tried under every failure of the system.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/cache/faults/fast_folder.h"
#include "tests/cache/faults/ledger.h"

namespace hone::cache {

/// A folder with a cache in it that goes back to how it was.
class Checkpoint {
 public:
  explicit Checkpoint(std::filesystem::path folder);
  void restore() const;

 private:
  FastFolder saved_;
  std::filesystem::path folder_;
};

/// What a scenario was told.
struct Answers {
  std::vector<std::optional<Hit>> hits;  ///< one for each key of the ledger, until one was refused
  std::vector<StoredWinner> winners;
};

struct Scenario {
  std::string name;
  std::function<void(const Store&, Ledger&)> prepare;
  std::optional<Publication> publication;  ///< what `act` commits when it returns
  /// `queries` ask for each key of the ledger.
  std::function<void(const Store&, const std::vector<Query>& queries, Answers&)> act;
};

/// The first publication, others, lookups, inspection, and what undoes an interrupted write.
const std::vector<Scenario>& scenarios();

/// Acts with `failing` called just before and `healed` just after, then lets the next process look. StoreError and
/// std::bad_alloc are refusals: right, while something fails.
Outcome attempt(const Scenario& scenario, const Store& store, Ledger ledger, const std::function<void()>& failing,
                const std::function<void()>& healed, std::string& what);

}  // namespace hone::cache
