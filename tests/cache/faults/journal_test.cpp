// The journal of a publication that was killed, tampered with before the next process looks.
#include <gmock/gmock.h>
#include <unistd.h>

#include <random>

#include "tests/cache/faults/fault_vfs.h"
#include "tests/cache/faults/scenario.h"
#include "tests/cache/support.h"

namespace hone::cache {
namespace {

using Bytes = std::vector<std::byte>;

class CacheJournal : public testing::Test {
 protected:
  CacheJournal() {
    for (const int number : {0, 1}) {
      const Publication publication = varied_publication(number);
      store_.publish(publication);
      ledger_.commit(publication);
    }
    ledger_.begin(next_);
    before_.emplace(folder_.path());
  }

  /// Publishes in a process that dies at this change; whether it did, and left a journal with something in it.
  bool leave_journal(int change, bool& died) const {
    died = status_of_child([&] {
             int changes = 0;
             const FaultVfs vfs([&](const Operation& operation) {
               if (operation.is_change() && changes++ == change) ::_exit(0);
               return SQLITE_OK;
             });
             store_.publish(next_);
             return 1;
           }) == 0;
    std::error_code error;
    return died && std::filesystem::file_size(journal_, error) > 0 && !error;
  }

  /// For every journal that a publication can leave: changes it with `tamper`, and looks.
  void try_each(Campaign& campaign, Damage damage, const std::function<void(int)>& tamper) {
    bool died = true;
    for (int change = 0; died; ++change) {
      if (leave_journal(change, died)) {
        campaign.run(change, change + 1, [&](int) {
          tamper(change);
          std::string what;
          const Outcome outcome = ledger_.compare(store_, damage, what);
          campaign.count(outcome, what);
        });
      }
      before_->restore();
    }
    EXPECT_GT(campaign.cases(), 20);
  }

  FastFolder folder_;
  std::filesystem::path file_ = folder_ / "winners.sqlite";
  std::filesystem::path journal_ = folder_ / "winners.sqlite-journal";
  Store store_{file_};
  Ledger ledger_;
  Publication next_ = retuned(varied_publication(1), 1);
  std::optional<Checkpoint> before_;
};

TEST_F(CacheJournal, DeletedOneServesNothingWrong) {
  Campaign campaign("journal of a killed publication deleted");
  try_each(campaign, Damage::any, [&](int) { std::filesystem::remove(journal_); });
}

TEST_F(CacheJournal, TruncatedOneServesNothingWrong) {
  Campaign campaign("journal of a killed publication truncated");
  const int rounds = scaled(5);
  for (int round = 0; round < rounds; ++round) {
    try_each(campaign, Damage::any, [&](int change) {
      std::mt19937 random(random_seed(change + 1000 * round, 1000 * rounds));
      std::filesystem::resize_file(journal_, random() % std::filesystem::file_size(journal_));
    });
  }
}

TEST_F(CacheJournal, DamagedOneServesNothingWrong) {
  Campaign campaign("journal of a killed publication with random damage");
  const int rounds = scaled(5);
  for (int round = 0; round < rounds; ++round) {
    try_each(campaign, Damage::any, [&](int change) {
      std::mt19937 random(random_seed(change + 1000 * round, 1000 * rounds));
      Bytes bytes = read_bytes(journal_);
      for (int flips = 1 + static_cast<int>(random() % 8); flips > 0; --flips) {
        bytes[random() % (flips % 2 == 0 ? bytes.size() : 512)] = static_cast<std::byte>(random());
      }
      write_bytes(journal_, bytes);
    });
  }
}

TEST_F(CacheJournal, OneOfAnotherCacheServesNothingWrong) {
  Campaign campaign("journal of a killed publication swapped with that of another cache");
  const FastFolder other_folder;
  const Store other(other_folder / "winners.sqlite");
  for (const int number : {7, 9, 11}) {
    other.publish(varied_publication(number));
    ledger_.begin(varied_publication(number));
  }
  std::vector<Bytes> journals;
  ledger_.begin(retuned(varied_publication(9), 2));
  for (int sync = 1; sync < 4; ++sync) {
    status_of_child([&] {
      int syncs = 0;
      const FaultVfs vfs([&](const Operation& operation) {
        if (operation.call == Call::sync && ++syncs == sync) ::_exit(0);
        return SQLITE_OK;
      });
      other.publish(retuned(varied_publication(9), 2));
      return 0;
    });
    journals.push_back(read_bytes(other_folder / "winners.sqlite-journal"));
    ASSERT_TRUE(other.find(query_of(varied_publication(7))));
  }
  try_each(campaign, Damage::any, [&](int change) {
    write_bytes(journal_, journals[static_cast<std::size_t>(change) % journals.size()]);
  });
}

}  // namespace
}  // namespace hone::cache
