// Scenario: one thing that can be done to a cache, to be tried under every failure of the system.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cache/faults/campaign.h"
#include "tests/cache/faults/fast_folder.h"
#include "tests/cache/faults/ledger.h"

namespace hone::cache {

/// The files of a folder as they are now, to go back to.
class Checkpoint {
 public:
  explicit Checkpoint(std::filesystem::path folder);

  bool is_unchanged() const;
  void restore() const;

 private:
  using Files = std::map<std::string, std::vector<std::byte>>;

  static Files read(const std::filesystem::path& folder);

  std::filesystem::path folder_;
  Files files_;
};

/// The answers that a scenario got.
struct Answers {
  std::vector<std::optional<Hit>> hits;  ///< of the first keys of the ledger
  std::vector<StoredWinner> winners;
};

struct Scenario {
  std::string name;
  std::function<void(const Store&, Ledger&)> prepare;
  std::vector<Publication> publications;  ///< what `act` commits when it returns
  /// `queries` ask for each key of the ledger.
  std::function<void(const Store&, const std::vector<Query>& queries, Answers&)> act;
  bool was_usable = true;  ///< false: until `act` has happened, the file cannot be read as a cache
};

/// The first publication, others, lookups, inspection, and what undoes an interrupted write.
const std::vector<Scenario>& scenarios();

/// The scenarios of the maintenance commands: merge, import, repair, prune, snapshot.
const std::vector<Scenario>& maintenance_scenarios();

/// One of scenarios() by its name.
const Scenario& scenario(std::string_view name);

/// A scenario that is prepared, to be tried as often as wanted.
class Trial {
 public:
  explicit Trial(const Scenario& scenario);

  const Store& store() const { return store_; }

  /// Acts, and nothing else.
  void act() const;

  /// Says what the next process sees after the act happened, or did not, or died on the way. Goes back to
  /// what was prepared.
  Outcome aftermath(std::string& what) const;

  /// Acts with `failing` called just before and `healed` just after, lets the next process look, and goes back to what
  /// was prepared. StoreError and std::bad_alloc are refusals: right, while something fails.
  Outcome run(const std::function<void()>& failing, const std::function<void()>& healed, std::string& what) const;

 private:
  Outcome compare(const Ledger& ledger, std::string& what) const;

  const Scenario& scenario_;
  FastFolder folder_;
  Store store_{folder_ / "winners.sqlite"};
  Ledger ledger_;
  std::optional<Checkpoint> prepared_;
};

}  // namespace hone::cache
