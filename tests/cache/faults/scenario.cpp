#include "tests/cache/faults/scenario.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "tests/cache/support.h"

namespace hone::cache {

namespace fs = std::filesystem;

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

Trial::Trial(const Scenario& scenario) : scenario_(scenario) {
  scenario_.prepare(store_, ledger_);
  prepared_.emplace(folder_.path());
}

void Trial::act() const {
  Answers answers;
  scenario_.act(store_, ledger_.queries(), answers);
}

Outcome Trial::compare(const Ledger& ledger, std::string& what) const {
  return ledger.compare(store_, scenario_.was_usable ? Damage::none : Damage::refusal, what);
}

Outcome Trial::aftermath(std::string& what) const {
  Ledger ledger = ledger_;
  for (const Publication& publication : scenario_.publications) ledger.begin(publication);
  const Outcome outcome = compare(ledger, what);
  prepared_->restore();
  return outcome;
}

Outcome Trial::run(const std::function<void()>& failing, const std::function<void()>& healed,
                   std::string& what) const {
  Ledger ledger = ledger_;
  Answers answers;
  const std::vector<Query> queries = ledger.queries();
  answers.hits.reserve(queries.size());
  for (const Publication& publication : scenario_.publications) ledger.begin(publication);
  bool is_refused = false, is_committed = false;
  what = scenario_.name + ": ";
  failing();
  try {
    scenario_.act(store_, queries, answers);
    healed();
    is_committed = true;
    for (const Publication& publication : scenario_.publications) ledger.commit(publication);
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
    worst = std::max(worst, is_committed ? ledger.compare(store_, Damage::none, found) : compare(ledger, found));
    prepared_->restore();
  }
  what += found;
  return worst;
}

}  // namespace hone::cache
