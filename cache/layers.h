// Layers: the cache files of a session, in the order in which they are asked.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/connection.h"
#include "cache/shipped_winners.h"
#include "cache/store.h"

namespace hone::cache {

/// One file, and whether it may be written to.
struct LayerPlace {
  std::filesystem::path path;
  bool is_writable = false;
  std::int64_t max_bytes = kDefaultMaxBytes;  ///< see Store; 0: no limit
};

/// A LayerFailure says what could not be done without a file. `is_first`: nothing was reported of this file before.
struct LayerFailure {
  std::string message;  ///< names the path, what was found and what to do
  bool is_first = false;
  bool is_winner_lost = false;  ///< a winner could not be stored
};

/// Asks one file after the other. Only the first one may be writable. A file that cannot serve never fails a call: it
/// is reported and left out, for good when it is of the wrong kind, damaged, newer or not trusted, and for a second
/// when it is locked; that is reported when it still is a second later, or when it has lost a winner. So it costs a
/// lookup at most the 40 ms for a lock, once. Thread-safe, and safe across fork, as Store.
class Layers {
 public:
  using Report = std::function<void(const LayerFailure&)>;
  using Milliseconds = std::chrono::milliseconds;

  /// `report` is called from the thread that met the failure, also from the destructor's. `shipped`: files of shipped
  /// winners, which are asked last, in this order.
  Layers(std::vector<LayerPlace> places, Report report, std::vector<std::filesystem::path> shipped = {});

  /// Writes the notes that are left.
  ~Layers();
  Layers(const Layers&) = delete;
  Layers& operator=(const Layers&) = delete;

  /// A tuned winner of any layer before an untuned one, the same driver before another, an earlier layer before a
  /// later; a shipped one where no layer has a tuned one.
  std::optional<Hit> find(const Query& query);

  /// As Store::find_near, of all layers, an earlier layer's first, then of the shipped winners.
  std::vector<NearWinner> find_near(std::span<const Query> queries, const std::array<RangeRecord, 3>& extents);

  /// The winner that serves the query with the tuning behind it, of the first layer that has both.
  std::optional<std::pair<Hit, TuningRecord>> find_tuning(const Query& query);

  /// The limits of the first file that has some for this device and machine.
  std::optional<LimitsRecord> limits(const LimitsRecord& key);

  /// Stores limits in the writable layer, and returns them merged with those that were there; as they are without a
  /// writable layer or where it fails.
  LimitsRecord publish(const LimitsRecord& limits);

  /// Stores all or none in the writable layer. A failure is reported every time; without a writable layer nothing
  /// happens. A publication or a claim that waited in vain for a lock, whose holder was stopped perhaps, is remembered:
  /// for half a minute the next ones are tried once, until one succeeds.
  void publish(std::span<const Publication> publications);
  void publish(const Publication& publication) { publish(std::span(&publication, 1)); }

  /// As the methods of Store, on the writable layer; nullopt and false when there is none that can be used. `locked`
  /// when others kept it locked for `patience`; then it is tried once for half a minute, until it is free.
  std::optional<ClaimState> claim(const KeyRecord& key, const Need* need, const std::string& owner, Milliseconds lease,
                                  Milliseconds patience);
  /// Also while the file is locked: whoever waits for a claim goes on waiting. That is no failure to report.
  bool is_claimed(const KeyRecord& key);
  void renew(const KeyRecord& key, const std::string& owner, Milliseconds lease);
  void release(const KeyRecord& key, const std::string& owner);

  /// Writes it to the writable layer, at once if no note was written in the last tenth of a second, and else with the
  /// next one.
  void note(MissRecord miss);

  /// False where the notes, and winners, have no file to go to: none is writable, or it cannot be used.
  bool can_write();

  std::uint64_t damaged() const;   ///< rows and binaries that would have served, had their digest held
  std::uint64_t left_out() const;  ///< files that were reported

 private:
  using Clock = std::chrono::steady_clock;

  /// Loss says what a locked file costs: a winner, or nothing that others, or another try, do not have.
  enum class Loss { nothing, winner };

  struct Layer {
    Store store;
    bool is_writable = false;
    bool is_reported = false;
    std::optional<StoreError> unreadable = {};   ///< found while reading; not asked again
    std::optional<StoreError> unwritable = {};   ///< found while writing; not tried again
    Clock::time_point not_before = {};           ///< while it is locked
    std::optional<Clock::time_point> locked_since = {};  ///< as far as is known
    Clock::time_point no_claim_before = {};      ///< after a claim has waited for a lock in vain: no waiting
    Clock::time_point no_publish_before = {};    ///< after a publication has
  };

  struct ShippedLayer {
    std::unique_ptr<ShippedWinners> winners;
    bool is_reported = false;
  };

  std::optional<Hit> find_shipped(const Query& query);
  ShippedWinners::Report report_of(ShippedLayer& layer);
  bool can_ask(const Layer& layer) const;
  Layer* writable();
  std::optional<StoreError> refusal(const Layer& layer) const;
  void fail(Layer& layer, Access access, const StoreError& error, Loss loss);
  void note_load(const Hit& hit);
  void write_notes();
  void keep(Notes notes);

  /// How long to wait for a lock where nobody is to wait before `not_before`.
  Milliseconds patience_after(const Clock::time_point& not_before, Milliseconds patience) const;
  void remember_wait(Layer& layer, Clock::time_point& not_before, bool was_in_vain);

  /// Calls `work` without the lock; reports what it throws, and returns whether it threw nothing.
  bool attempt(Layer& layer, Access access, const std::function<void(const Store&)>& work, Loss loss = Loss::nothing);

  const Report report_;
  mutable std::mutex mutex_;  ///< not held while a file is open
  std::vector<Layer> layers_;
  std::vector<ShippedLayer> shipped_;
  Notes notes_;
  Clock::time_point notes_written_{};
  std::int64_t process_;  ///< a forked child writes no notes of its parent's
  std::uint64_t damaged_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace hone::cache
