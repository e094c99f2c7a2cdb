// Ledger: what was ever committed, to compare with what a store returns.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cache/store.h"
#include "tests/cache/faults/campaign.h"

namespace hone::cache {

/// The damage that the fault may have done to the file.
enum class Damage {
  none,     ///< every committed row must be found, and no StoreError is excused
  refusal,  ///< the fault still lasts: a StoreError is an answer, but nobody may say that there is no such row
  any,      ///< rows may be gone; only what was never committed is wrong
};

class Ledger {
 public:
  /// From now on a lookup may return it.
  void begin(const Publication& publication);

  /// From now on a lookup must return it, or what begins later under the same key.
  void commit(const Publication& publication);

  /// Looks up every key.
  Outcome compare(const Store& store, Damage damage, std::string& what) const;

  /// Looks up one key, by its place in the order of their first mention.
  Outcome compare(const Store& store, std::size_t key, Damage damage, std::string& what) const;

  /// The same for an answer that was given.
  Outcome compare(std::size_t key, const std::optional<Hit>& hit, Damage damage, std::string& what) const;

  /// A query for each key.
  std::vector<Query> queries() const;

  /// Says whether a winner that inspection lists was ever committed.
  Outcome compare(const StoredWinner& stored, std::string& what) const;

  /// All that inspection lists.
  Outcome compare_listed(const Store& store, Damage damage, std::string& what) const;

  std::size_t size() const { return keys_.size(); }

 private:
  struct Key {
    std::vector<Publication> versions;
    std::size_t committed = 0;  ///< how many of them, from the first; 0: none must be there
  };

  Key& key_of(const Publication& publication);

  std::vector<Key> keys_;
  std::map<std::string, std::size_t> places_;
};

/// A publication that differs from every other number's in key, winner, size of the binary and number of trials. Odd
/// ones are tuned.
Publication varied_publication(int number);

/// A better one under the same key: what a second tuning publishes.
Publication retuned(const Publication& publication, int round);

/// Finds exactly its problem class.
Query query_of(const Publication& publication);

}  // namespace hone::cache
