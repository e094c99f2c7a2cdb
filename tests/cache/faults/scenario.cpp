#include "tests/cache/faults/scenario.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "tests/cache/faults/campaign.h"
#include "tests/cache/faults/fault_vfs.h"
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
  for (const int number : {0, 1, 3}) publish(store, ledger, varied_publication(number));
}

/// A file as an earlier Hone left it, with every row that it has.
void prepare_old_file(const Store& store, Ledger& ledger) {
  make_fixture(store.path(), 1);
  for (const StoredWinner& stored : store.winners()) {
    Publication publication{stored.key, stored.winner, {}, store.tuning(stored.id)};
    const std::optional<Hit> hit = store.find(query_of(publication));
    if (!hit || hit->winner != stored.winner) continue;
    publication.binary = hit->binary;
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
  const auto act = [publication](const Store& store, const std::vector<Query>&, Answers&) { store.publish(publication); };
  return {std::move(name), std::move(prepare), publication, act};
}

void look_up(const Store& store, const std::vector<Query>& queries, Answers& answers) {
  for (const Query& query : queries) answers.hits.push_back(store.find(query));
}

void inspect(const Store& store, const std::vector<Query>&, Answers& answers) {
  answers.winners = store.winners();
  for (const StoredWinner& winner : answers.winners) {
    const std::optional<TuningRecord> tuning = store.tuning(winner.id);
    if (winner.winner.tuned != tuning.has_value()) throw std::logic_error("a tuning is gone");
  }
}

}  // namespace

Checkpoint::Checkpoint(fs::path folder) : folder_(std::move(folder)) {
  fs::copy(folder_, saved_.path(), fs::copy_options::recursive);
}

void Checkpoint::restore() const {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) fs::remove_all(entry.path());
  fs::copy(saved_.path(), folder_, fs::copy_options::recursive);
}

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all{
      publishing("the first publication", nothing, varied_publication(1)),
      publishing("a publication beside others", prepare_rows, varied_publication(4)),
      publishing("a publication that replaces another", prepare_rows, retuned(varied_publication(1), 1)),
      publishing("the first publication into an old file", prepare_old_file, varied_publication(1)),
      {"lookups in an old file", prepare_old_file, std::nullopt, look_up},
      {"a publication that must not replace another", prepare_rows, std::nullopt,
       [publication = untuned()](const Store& store, const auto&, Answers&) { store.publish(publication); }},
      {"lookups", prepare_rows, std::nullopt, look_up},
      {"lookups that undo an interrupted publication",
       [](const Store& store, Ledger& ledger) {
         prepare_rows(store, ledger);
         interrupt(store, ledger, retuned(varied_publication(1), 1));
       },
       std::nullopt, look_up},
      {"inspection", prepare_rows, std::nullopt, inspect},
  };
  return all;
}

Outcome attempt(const Scenario& scenario, const Store& store, Ledger ledger, const std::function<void()>& failing,
                const std::function<void()>& healed, std::string& what) {
  Answers answers;
  const std::vector<Query> queries = ledger.queries();
  answers.hits.reserve(queries.size());
  if (scenario.publication) ledger.begin(*scenario.publication);
  bool is_refused = false;
  failing();
  try {
    scenario.act(store, queries, answers);
    healed();
    if (scenario.publication) ledger.commit(*scenario.publication);
  } catch (const StoreError&) {
    healed();
    is_refused = true;
  } catch (const std::bad_alloc&) {
    healed();
    is_refused = true;
  } catch (const std::exception& error) {
    healed();
    what = error.what();
    return Outcome::wrong;
  }
  Outcome worst = ledger.compare(store, Damage::none, what);
  for (std::size_t key = 0; key < answers.hits.size(); ++key) {
    worst = std::max(worst, ledger.compare(key, answers.hits[key], Damage::none, what));
  }
  for (const StoredWinner& winner : answers.winners) worst = std::max(worst, ledger.compare(winner, what));
  return std::max(worst, is_refused ? Outcome::refused : Outcome::right);
}

}  // namespace hone::cache
