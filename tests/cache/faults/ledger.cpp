#include "tests/cache/faults/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "cache/fields.h"
#include "tests/cache/support.h"

namespace hone::cache {
namespace {

std::string key_text(const KeyRecord& key) {
  std::string text;
  const auto append = [&](std::string_view name, const auto& value) { text += fmt::format("{}={};", name, value); };
  each_key_field(key.device, append);
  each_key_field(key.toolchain, append);
  each_field(key.problem, append);
  return text;
}

/// A winner may be there without its code, but not with another's.
bool is_equal(const Hit& hit, const Publication& publication) {
  return hit.winner == publication.winner && hit.sizes == publication.key.problem.sizes && !hit.stale_driver &&
         (!hit.binary || *hit.binary == publication.binary);
}

std::vector<std::byte> random_code(int number, std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(number) + 1);
  std::vector<std::byte> code(size);
  for (std::byte& byte : code) byte = static_cast<std::byte>(random());
  return code;
}

}  // namespace

Ledger::Key& Ledger::key_of(const Publication& publication) {
  const auto [position, is_new] = places_.emplace(key_text(publication.key), keys_.size());
  if (is_new) keys_.emplace_back();
  return keys_[position->second];
}

void Ledger::begin(const Publication& publication) { key_of(publication).versions.push_back(publication); }

void Ledger::commit(const Publication& publication) {
  Key& key = key_of(publication);
  const bool has_begun = !key.versions.empty() && key.versions.back().winner == publication.winner &&
                         key.versions.back().binary == publication.binary;
  if (!has_begun) key.versions.push_back(publication);
  key.committed = key.versions.size();
}

Outcome Ledger::compare(std::size_t place, const std::optional<Hit>& hit, Damage damage, std::string& what) const {
  const Key& key = keys_[place];
  if (!hit) {
    if (key.committed == 0) return Outcome::right;
    what = "miss of " + key_text(key.versions.back().key);
    return damage == Damage::any ? Outcome::missed : Outcome::lost;
  }
  std::size_t version = key.versions.size();
  while (version > 0 && !is_equal(*hit, key.versions[version - 1])) --version;
  const bool is_right = version > 0 && version >= key.committed && hit->binary;
  if (is_right) return Outcome::right;  // most often, and with nothing to say: the text would take longer than the rest
  what = fmt::format("version {} of {} ({} committed) of {}, {} code, stale {}", version, key.versions.size(),
                     key.committed, key_text(key.versions.back().key), hit->binary ? "with" : "without",
                     hit->stale_driver);
  if (version == 0) return Outcome::wrong;
  return damage == Damage::any ? Outcome::missed : Outcome::lost;
}

Outcome Ledger::compare(const Store& store, std::size_t place, Damage damage, std::string& what) const {
  try {
    return compare(place, store.find(query_of(keys_[place].versions.back())), damage, what);
  } catch (const StoreError& error) {
    what = error.what();
    return damage == Damage::none ? Outcome::lost : Outcome::refused;
  } catch (const std::exception& error) {
    what = fmt::format("not a StoreError: {}", error.what());
    return Outcome::wrong;
  }
}

Outcome Ledger::compare(const Store& store, Damage damage, std::string& what) const {
  Outcome worst = Outcome::right;
  for (std::size_t place = 0; place < keys_.size(); ++place) {
    std::string of_key;
    const Outcome outcome = compare(store, place, damage, of_key);
    if (outcome <= worst) continue;
    worst = outcome;
    what = of_key;
  }
  return worst;
}

std::vector<Query> Ledger::queries() const {
  std::vector<Query> queries;
  for (const Key& key : keys_) queries.push_back(query_of(key.versions.back()));
  return queries;
}

Outcome Ledger::compare(const StoredWinner& stored, std::string& what) const {
  const auto place = places_.find(key_text(stored.key));
  const auto is_this = [&](const Publication& version) { return version.winner == stored.winner; };
  if (place != places_.end() && std::ranges::any_of(keys_[place->second].versions, is_this)) return Outcome::right;
  what = "listed: " + key_text(stored.key);
  return Outcome::wrong;
}

Outcome Ledger::compare_listed(const Store& store, Damage damage, std::string& what) const {
  try {
    const std::vector<StoredWinner> winners = store.winners();
    for (const StoredWinner& stored : winners) {
      if (compare(stored, what) == Outcome::wrong) return Outcome::wrong;
    }
    const auto must_be_there = std::ranges::count_if(keys_, [](const Key& key) { return key.committed > 0; });
    if (winners.size() >= static_cast<std::size_t>(must_be_there)) return Outcome::right;
    what = fmt::format("{} of {} winners are listed", winners.size(), must_be_there);
    return damage == Damage::any ? Outcome::missed : Outcome::lost;
  } catch (const StoreError& error) {
    what = error.what();
    return damage == Damage::none ? Outcome::lost : Outcome::refused;
  }
}

Publication varied_publication(int number) {
  constexpr std::array<std::size_t, 6> kCodeSizes{4, 3000, 40'000, 500, 9000, 20'000};
  constexpr std::array<std::size_t, 4> kTrialCounts{2, 0, 12, 5};
  const auto index = static_cast<std::size_t>(number);
  Publication publication = sample_publication();
  ProblemRecord& problem = publication.key.problem;
  problem.operation = fmt::format("operation_{}", number);
  problem.sizes[0] = {number + 1, number + 1000};
  publication.winner.candidate.block_threads = 32 + number;
  publication.winner.median_us = 1 + number / 8.0;
  publication.binary.code = random_code(number, kCodeSizes[index % kCodeSizes.size()]);
  publication.winner.tuned = number % 2 == 1;
  if (!publication.winner.tuned) {
    publication.tuning.reset();
    return publication;
  }
  const TrialRecord trial = publication.tuning->trials.front();
  publication.tuning->trials.assign(kTrialCounts[index / 2 % kTrialCounts.size()], trial);
  return publication;
}

Publication retuned(const Publication& publication, int round) {
  Publication better = publication;
  better.winner.tuned = true;
  better.winner.candidate.registers = 100 + round;
  better.binary.code = random_code(1000 + round, publication.binary.code.size() + 700 * static_cast<unsigned>(round));
  better.tuning = sample_publication().tuning;
  return better;
}

Query query_of(const Publication& publication) {
  Query query = matching_query(publication);
  for (std::size_t axis = 0; axis < query.extents.size(); ++axis) {
    query.extents[axis] = publication.key.problem.sizes[axis].first;
  }
  return query;
}

}  // namespace hone::cache
