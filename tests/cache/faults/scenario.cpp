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
  for (const int number : {1, 3}) publish(store, ledger, varied_publication(number));
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
  answers.hits.push_back(store.find(queries.front()));
}

void inspect(const Store& store, const std::vector<Query>&, Answers& answers) {
  answers.winners = store.winners();
  for (const StoredWinner& winner : answers.winners) {
    const std::optional<TuningRecord> tuning = store.tuning(winner.id);
    if (winner.winner.tuned != tuning.has_value()) throw std::logic_error("a tuning is gone");
  }
}

}  // namespace

Checkpoint::Checkpoint(fs::path folder) : folder_(std::move(folder)), files_(read(folder_)) {}

Checkpoint::Files Checkpoint::read(const fs::path& folder) {
  Files files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files.emplace(entry.path().filename(), read_bytes(entry.path()));
  }
  return files;
}

bool Checkpoint::is_unchanged() const { return read(folder_) == files_; }

void Checkpoint::restore() const {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) fs::remove_all(entry.path());
  for (const auto& [name, bytes] : files_) {
    write_bytes(folder_ / name, bytes);
    fs::permissions(folder_ / name, fs::perms(0600));
  }
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

Trial::Trial(const Scenario& scenario) : scenario_(scenario) {
  scenario_.prepare(store_, ledger_);
  prepared_.emplace(folder_.path());
}

Outcome Trial::run(const std::function<void()>& failing, const std::function<void()>& healed,
                   std::string& what) const {
  Ledger ledger = ledger_;
  Answers answers;
  const std::vector<Query> queries = ledger.queries();
  answers.hits.reserve(queries.size());
  if (scenario_.publication) ledger.begin(*scenario_.publication);
  bool is_refused = false, is_committed = false;
  what = scenario_.name + ": ";
  failing();
  try {
    scenario_.act(store_, queries, answers);
    healed();
    is_committed = scenario_.publication.has_value();
    if (is_committed) ledger.commit(*scenario_.publication);
  } catch (const StoreError&) {
    healed();
    is_refused = true;
  } catch (const std::bad_alloc&) {
    healed();
    is_refused = true;
  } catch (const std::exception& error) {
    healed();
    what += error.what();
    return Outcome::wrong;
  }
  Outcome worst = is_refused ? Outcome::refused : Outcome::right;
  std::string found;
  for (std::size_t key = 0; key < answers.hits.size(); ++key) {
    worst = std::max(worst, ledger.compare(key, answers.hits[key], Damage::none, found));
  }
  for (const StoredWinner& winner : answers.winners) worst = std::max(worst, ledger.compare(winner, found));
  if (is_committed || !prepared_->is_unchanged()) {
    worst = std::max(worst, ledger.compare(store_, Damage::none, found));
    prepared_->restore();
  }
  what += found;
  return worst;
}

}  // namespace hone::cache
