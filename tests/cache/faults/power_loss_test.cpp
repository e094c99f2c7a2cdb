#include <gmock/gmock.h>

#include "tests/cache/faults/campaign.h"
#include "tests/cache/faults/fast_folder.h"
#include "tests/cache/faults/ledger.h"
#include "tests/cache/faults/simulated_disk.h"
#include "tests/cache/support.h"
#include "tests/support/share.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

/// Publishes to a simulated disk, and cuts the power before each of its changes, with several outcomes each.
class PowerLoss {
 public:
  void publish(const Publication& publication, int outcomes) {
    ledger_.begin(publication);
    {
      const FaultVfs vfs([&](const Operation& operation) {
        if (operation.is_change()) cut(outcomes);
        disk_.apply(operation);
        return SQLITE_OK;
      });
      store_.publish(publication);
    }
    ledger_.commit(publication);
    cut(outcomes);
  }

  /// Lets the next process look at what each cut left.
  void look(Campaign& campaign) {
    const FastFolder aftermath;
    const Store store(aftermath / "winners.sqlite");
    campaign.run(0, static_cast<int>(cuts_.size()), [&](int number) {
      const Cut& cut = cuts_[static_cast<std::size_t>(number)];
      aftermath.clear();
      for (const auto& [name, bytes] : cut.files) write_bytes(aftermath / name, bytes);
      std::string what;
      const Outcome outcome = cut.ledger.compare(store, Damage::none, what);
      campaign.count(outcome, what);
    });
    cuts_.clear();
  }

 private:
  struct Cut {
    std::map<std::string, SimulatedDisk::Bytes> files;
    Ledger ledger;
  };

  void cut(int outcomes) {
    for (int outcome = 0; outcome < outcomes; ++outcome)
      if (test::in_share(met_++)) cuts_.push_back({disk_.after_power_loss(random_), ledger_});
  }

  FastFolder folder_;
  SimulatedDisk disk_{folder_.path()};
  Store store_{folder_ / "winners.sqlite"};
  Ledger ledger_;
  std::mt19937 random_{random_seed(7, 1)};
  std::size_t met_ = 0;
  std::vector<Cut> cuts_;
};

TEST(CachePowerLoss, CommittedRowsSurviveIt) {
  Campaign campaign("power lost at each change: writes since the last sync lost, reordered or torn");
  PowerLoss disk;
  const int outcomes = scaled(4);
  for (int number = 0; number < 8; ++number) {
    disk.publish(varied_publication(number), outcomes);
    disk.look(campaign);
  }
  for (int number = 0; number < 3; ++number) {
    disk.publish(retuned(varied_publication(number), number), outcomes);
    disk.look(campaign);
  }
}

}  // namespace
}  // namespace hone::cache
