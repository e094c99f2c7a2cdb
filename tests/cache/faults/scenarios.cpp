#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "cache/maintenance/exchange.h"
#include "cache/maintenance/merge.h"
#include "cache/maintenance/prune.h"
#include "cache/maintenance/repair.h"
#include "cache/maintenance/snapshot.h"
#include "tests/cache/faults/campaign.h"
#include "tests/cache/faults/fault_vfs.h"
#include "tests/cache/faults/scenario.h"
#include "tests/cache/support.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

void publish(const Store& store, Ledger& ledger, const Publication& publication) {
  ledger.begin(publication);
  store.publish(publication);
  ledger.commit(publication);
}

void prepare_rows(const Store& store, Ledger& ledger) {
  for (const int number : {1, 3}) publish(store, ledger, varied_publication(number));
}

/// A file as an earlier Hone left it, with every row that it has.
void prepare_old_file(const Store& store, Ledger& ledger) {
  make_fixture(store.path(), 1);
  for (const StoredWinner& stored : store.winners()) {
    Publication publication{stored.key, stored.winner, {}, store.tuning(stored.id)};
    const std::optional<Hit> hit = store.find(query_of(publication));
    if (!hit || hit->winner != stored.winner || !hit->binary) continue;
    publication.binary = *hit->binary;
    ledger.commit(publication);
  }
  if (ledger.size() < 3) throw std::logic_error("the fixture lacks rows");
}

/// A process that dies when the journal is complete and the file half written.
void interrupt(const Store& store, Ledger& ledger, const Publication& publication) {
  ledger.begin(publication);
  status_of_child([&] {
    int syncs = 0;
    const FaultVfs vfs([&](const Operation& operation) {
      if (operation.call == Call::sync && ++syncs == 3) ::_exit(0);
      return SQLITE_OK;
    });
    store.publish(publication);
    return 0;
  });
}

/// Under the key of a tuned winner, which stays.
Publication untuned() {
  Publication publication = varied_publication(3);
  publication.winner.tuned = false;
  publication.winner.candidate.registers = 7;
  publication.tuning.reset();
  return publication;
}

void nothing(const Store&, Ledger&) {}

Scenario publishing(std::string name, std::function<void(const Store&, Ledger&)> prepare, Publication publication) {
  const auto act = [publication](const Store& store, const std::vector<Query>&, Answers&) {
    store.publish(publication);
  };
  return {std::move(name), std::move(prepare), {publication}, act};
}

void look_up(const Store& store, const std::vector<Query>& queries, Answers& answers) {
  answers.hits.push_back(store.find(queries.front()));
}

void inspect(const Store& store, const std::vector<Query>&, Answers& answers) {
  answers.winners = store.winners();
  for (const StoredWinner& winner : answers.winners) {
    const std::optional<TuningRecord> tuning = store.tuning(winner.id);
    if (winner.winner.tuned != tuning.has_value()) throw std::logic_error("a tuning is gone");
  }
}

fs::path beside(const Store& store) { return store.path().parent_path() / "other.sqlite"; }

/// Two caches: what `act` brings over is publications 5 and 7.
void prepare_two_files(const Store& store, Ledger& ledger) {
  prepare_rows(store, ledger);
  const Store other(beside(store));
  for (const int number : {3, 5, 7}) other.publish(varied_publication(number));
}

void merge_other(const Store& store, const std::vector<Query>&, Answers&) {
  merge(store.path(), std::vector{beside(store)}, {});
}

void import_other(const Store& store, const std::vector<Query>&, Answers&) {
  Import import(store.path());
  export_entries(beside(store), {.binary = [&](const std::string&, const BinaryRecord& code) { import.add(code); },
                                 .entry = [&](const Entry& entry) { import.add(entry); }});
  import.merge_into(store.path(), {});
}

/// Not a cache any more to readers, though every row is there.
void prepare_changed_schema(const Store& store, Ledger& ledger) {
  prepare_rows(store, ledger);
  sql(store.path(), "CREATE TABLE extra (x)");
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all{
      publishing("the first publication", nothing, varied_publication(1)),
      publishing("a publication beside others", prepare_rows, varied_publication(4)),
      publishing("a publication that replaces another", prepare_rows, retuned(varied_publication(1), 1)),
      publishing("the first publication into an old file", prepare_old_file, varied_publication(1)),
      {"lookups in an old file", prepare_old_file, {}, look_up},
      {"a publication that must not replace another", prepare_rows, {},
       [publication = untuned()](const Store& store, const auto&, Answers&) { store.publish(publication); }},
      {"lookups", prepare_rows, {}, look_up},
      {"lookups that undo an interrupted publication",
       [](const Store& store, Ledger& ledger) {
         prepare_rows(store, ledger);
         interrupt(store, ledger, retuned(varied_publication(1), 1));
       },
       {}, look_up},
      {"inspection", prepare_rows, {}, inspect},
  };
  return all;
}

const std::vector<Scenario>& maintenance_scenarios() {
  static const std::vector<Scenario> all{
      {"a merge", prepare_two_files, {varied_publication(5), varied_publication(7)}, merge_other},
      {"an import", prepare_two_files, {varied_publication(5), varied_publication(7)}, import_other},
      {"a repair", prepare_changed_schema, {}, [](const Store& store, const auto&, Answers&) { repair(store.path()); },
       false},
      {"pruning", prepare_rows, {},
       [](const Store& store, const auto&, Answers&) {
         PruneRules rules;
         rules.limit_bytes = kDefaultMaxBytes;  // where nothing changes, nothing is written
         prune(store.path(), rules);
       }},
      {"a snapshot", prepare_rows, {},
       [](const Store& store, const auto&, Answers&) { snapshot(store.path(), beside(store), {}); }},
  };
  return all;
}

const Scenario& scenario(std::string_view name) {
  for (const Scenario& candidate : scenarios()) {
    if (candidate.name == name) return candidate;
  }
  throw std::logic_error("there is no such scenario");
}

}  // namespace hone::cache
