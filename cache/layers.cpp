#include "cache/layers.h"

#include <unistd.h>

#include <memory>
#include <tuple>
#include <utility>

#include "cache/transact.h"

namespace hone::cache {
namespace {

constexpr std::chrono::seconds kPauseAfterFailure(1);
constexpr std::chrono::seconds kPauseAfterVainWait(30);
constexpr std::chrono::milliseconds kBetweenNotes(100);
constexpr std::chrono::milliseconds kNotePatience(100);

/// While the file is locked, which may be for ever.
constexpr std::size_t kMostMissesKept = 1000;

/// Loads are noted once a day: enough to tell what is not used any more.
constexpr std::int64_t kSecondsBetweenLoads = 24 * 60 * 60;

/// True if a file with this fault will be no better in a while.
bool is_lasting(StoreFault fault) {
  switch (fault) {
    case StoreFault::unopenable:
    case StoreFault::not_a_database:
    case StoreFault::foreign:
    case StoreFault::newer:
    case StoreFault::read_only:
    case StoreFault::corrupt:
    case StoreFault::untrusted:
    case StoreFault::unlocked:
      return true;
    default:
      return false;
  }
}

bool is_better(const Hit& a, const std::optional<Hit>& b) {
  const auto rank = [](const Hit& hit) { return std::tuple(hit.winner.tuned, !hit.stale_driver); };
  return !b || rank(a) > rank(*b);
}

}  // namespace

Layers::Layers(std::vector<LayerPlace> places, Report report, std::vector<std::filesystem::path> shipped)
    : report_(std::move(report)), process_(::getpid()) {
  for (LayerPlace& place : places)
    layers_.push_back({.store = Store(std::move(place.path), place.max_bytes), .is_writable = place.is_writable});
  for (std::filesystem::path& path : shipped)
    shipped_.push_back({.winners = std::make_unique<ShippedWinners>(std::move(path))});
}

Layers::~Layers() {
  try {
    if (::getpid() == process_) write_notes();
  } catch (const std::exception&) {
    // Out of memory, or the report's own: there is nobody left to tell.
  }
}

bool Layers::can_ask(const Layer& layer) const {
  const std::scoped_lock lock(mutex_);
  return !layer.unreadable && Clock::now() >= layer.not_before;
}

Layers::Layer* Layers::writable() {
  return !layers_.empty() && layers_.front().is_writable ? &layers_.front() : nullptr;
}

bool Layers::can_write() {
  const Layer* const layer = writable();
  if (layer == nullptr || refusal(*layer)) return false;
  try {
    return !find_place(absolute_path(layer->store.path())).is_read_only;
  } catch (const StoreError&) {
    return false;
  }
}

/// Why it is no use to write to it.
std::optional<StoreError> Layers::refusal(const Layer& layer) const {
  const std::scoped_lock lock(mutex_);
  return layer.unreadable ? layer.unreadable : layer.unwritable;
}

void Layers::fail(Layer& layer, Access access, const StoreError& error, Loss loss) {
  LayerFailure failure{.message = error.what(), .is_winner_lost = loss == Loss::winner};
  {
    const std::scoped_lock lock(mutex_);
    if (error.fault() == StoreFault::busy) {
      const Clock::time_point now = Clock::now();
      layer.not_before = now + kPauseAfterFailure;
      if (!layer.locked_since) layer.locked_since = now;
      if (loss == Loss::nothing && now - *layer.locked_since < kPauseAfterFailure) return;
    }
    if (is_lasting(error.fault())) (access == Access::read ? layer.unreadable : layer.unwritable) = error;
    // A file that is only read is as good as any other until it loses a winner.
    if (loss == Loss::nothing && error.fault() == StoreFault::read_only) return;
    failure.is_first = !layer.is_reported;
    if (failure.is_first) ++left_out_;
    layer.is_reported = true;
  }
  if (report_) report_(failure);
}

bool Layers::attempt(Layer& layer, Access access, const std::function<void(const Store&)>& work, Loss loss) {
  try {
    work(layer.store);
  } catch (const StoreError& error) {
    fail(layer, access, error, loss);
    return false;
  }
  const std::scoped_lock lock(mutex_);
  layer.locked_since.reset();
  return true;
}

std::optional<Hit> Layers::find(const Query& query) {
  std::optional<Hit> best;
  bool is_from_writable = false;
  for (Layer& layer : layers_) {
    if (best && best->winner.tuned && !best->stale_driver) break;
    if (!can_ask(layer)) continue;
    std::uint64_t damaged = 0;
    std::optional<Hit> hit;
    attempt(layer, Access::read, [&](const Store& store) { hit = store.find(query, &damaged); });
    if (damaged > 0) {
      const std::scoped_lock lock(mutex_);
      damaged_ += damaged;
    }
    if (!hit || !is_better(*hit, best)) continue;
    is_from_writable = layer.is_writable;
    best = std::move(hit);
  }
  if (!best || !best->winner.tuned) {
    if (std::optional<Hit> hit = find_shipped(query)) return hit;
  }
  if (best && is_from_writable) note_load(*best);
  return best;
}

std::optional<Hit> Layers::find_shipped(const Query& query) {
  for (ShippedLayer& layer : shipped_)
    if (std::optional<Hit> hit = layer.winners->find(query, report_of(layer))) return hit;
  return std::nullopt;
}

ShippedWinners::Report Layers::report_of(ShippedLayer& layer) {
  return [this, &layer](const std::string& message) {
    LayerFailure failure{.message = message};
    {
      const std::scoped_lock lock(mutex_);
      failure.is_first = !std::exchange(layer.is_reported, true);
      if (failure.is_first) ++left_out_;
    }
    if (report_) report_(failure);
  };
}

std::vector<NearWinner> Layers::find_near(std::span<const Query> queries, const std::array<RangeRecord, 3>& extents) {
  std::vector<NearWinner> all;
  for (Layer& layer : layers_) {
    if (!can_ask(layer)) continue;
    attempt(layer, Access::read, [&](const Store& store) {
      for (NearWinner& winner : store.find_near(queries, extents)) all.push_back(std::move(winner));
    });
  }
  for (ShippedLayer& layer : shipped_)
    for (NearWinner& winner : layer.winners->find_near(queries, extents, report_of(layer)))
      all.push_back(std::move(winner));
  return all;
}

std::optional<std::pair<Hit, TuningRecord>> Layers::find_tuning(const Query& query) {
  std::optional<std::pair<Hit, TuningRecord>> found;
  for (Layer& layer : layers_) {
    if (found || !can_ask(layer)) continue;
    attempt(layer, Access::read, [&](const Store& store) {
      std::optional<Hit> hit = store.find(query);
      if (!hit) return;
      if (std::optional<TuningRecord> tuning = store.tuning(hit->winner_id))
        found.emplace(std::move(*hit), std::move(*tuning));
    });
  }
  return found;
}

std::optional<LimitsRecord> Layers::limits(const LimitsRecord& key) {
  std::optional<LimitsRecord> found;
  for (Layer& layer : layers_)
    if (!found && can_ask(layer))
      attempt(layer, Access::read, [&](const Store& store) { found = store.limits(key); });
  return found;
}

LimitsRecord Layers::publish(const LimitsRecord& limits) {
  LimitsRecord stored = limits;
  if (can_write())
    attempt(*writable(), Access::write, [&](const Store& store) { stored = store.publish(limits); });
  return stored;
}

void Layers::publish(std::span<const Publication> publications) {
  Layer* const layer = writable();
  if (layer == nullptr) return;
  if (const std::optional<StoreError> known = refusal(*layer)) {
    fail(*layer, Access::write, *known, Loss::winner);
    return;
  }
  const Milliseconds patience = patience_after(layer->no_publish_before, kWritePatience);
  bool is_busy = false;
  const auto publish_now = [&](const Store& store) {
    try {
      store.publish(publications, patience);
    } catch (const StoreError& error) {
      is_busy = error.fault() == StoreFault::busy;
      throw;
    }
  };
  const bool is_stored = attempt(*layer, Access::write, publish_now, Loss::winner);
  remember_wait(*layer, layer->no_publish_before, is_busy);
  if (is_stored) write_notes();
}

Layers::Milliseconds Layers::patience_after(const Clock::time_point& not_before, Milliseconds patience) const {
  const std::scoped_lock lock(mutex_);
  return Clock::now() < not_before ? Milliseconds::zero() : patience;
}

void Layers::remember_wait(Layer& layer, Clock::time_point& not_before, bool was_in_vain) {
  const std::scoped_lock lock(mutex_);
  not_before = was_in_vain ? Clock::now() + kPauseAfterVainWait : Clock::time_point{};
  if (!was_in_vain) layer.not_before = {};  // whoever kept it locked has let it go
}

std::optional<ClaimState> Layers::claim(const KeyRecord& key, const Need* need, const std::string& owner,
                                        Milliseconds lease, Milliseconds patience) {
  Layer* const layer = writable();
  if (layer == nullptr || refusal(*layer)) return std::nullopt;
  std::optional<ClaimState> state;
  const auto claim_now = [&](const Store& store) {
    try {
      state = store.claim(key, need, owner, lease, patience_after(layer->no_claim_before, patience));
    } catch (const StoreError& error) {
      if (error.fault() == StoreFault::busy) state = ClaimState::locked;
      throw;
    }
  };
  attempt(*layer, Access::write, claim_now);
  if (state) remember_wait(*layer, layer->no_claim_before, state == ClaimState::locked);
  return state;
}

bool Layers::is_claimed(const KeyRecord& key) {
  Layer* const layer = writable();
  if (layer == nullptr || refusal(*layer)) return false;
  try {
    return layer->store.is_claimed(key);
  } catch (const StoreError& error) {
    if (error.fault() == StoreFault::busy) return true;
    fail(*layer, Access::read, error, Loss::nothing);
    return false;
  }
}

void Layers::renew(const KeyRecord& key, const std::string& owner, Milliseconds lease) {
  Layer* const layer = writable();
  if (layer == nullptr || refusal(*layer)) return;
  try {
    layer->store.renew(key, owner, lease);
  } catch (const StoreError& error) {
    // There is time until the next renewal.
    if (error.fault() != StoreFault::busy) fail(*layer, Access::write, error, Loss::nothing);
  }
}

void Layers::release(const KeyRecord& key, const std::string& owner) {
  Layer* const layer = writable();
  if (layer == nullptr || refusal(*layer)) return;
  attempt(*layer, Access::write, [&](const Store& store) { store.release(key, owner); });
}

void Layers::note_load(const Hit& hit) {
  const std::int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  // A time in the future was written by a wrong clock.
  if (hit.used_at <= now && now - hit.used_at < kSecondsBetweenLoads) return;
  const std::scoped_lock lock(mutex_);
  ++notes_.loads[hit.winner_id];
}

void Layers::note(MissRecord miss) {
  {
    const std::scoped_lock lock(mutex_);
    notes_.misses.push_back(std::move(miss));
    if (Clock::now() - notes_written_ < kBetweenNotes) return;
  }
  write_notes();
}

void Layers::write_notes() {
  Layer* const layer = writable();
  Notes notes;
  {
    const std::scoped_lock lock(mutex_);
    notes = std::exchange(notes_, {});
    notes_written_ = Clock::now();
  }
  if (notes.empty() || layer == nullptr || refusal(*layer)) return;
  if (!can_ask(*layer) ||
      !attempt(*layer, Access::write, [&](const Store& store) { store.note(notes, kNotePatience); }))
    keep(std::move(notes));
}

/// For the next time: the file was locked.
void Layers::keep(Notes notes) {
  const std::scoped_lock lock(mutex_);
  for (MissRecord& miss : notes.misses)
    if (notes_.misses.size() < kMostMissesKept) notes_.misses.push_back(std::move(miss));
  for (const auto& [winner, loads] : notes.loads) notes_.loads[winner] += loads;
}

std::uint64_t Layers::damaged() const {
  const std::scoped_lock lock(mutex_);
  return damaged_;
}

std::uint64_t Layers::left_out() const {
  const std::scoped_lock lock(mutex_);
  return left_out_;
}

}  // namespace hone::cache
