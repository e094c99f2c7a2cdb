#include "benchmarks/common/ceilings.h"

#include <algorithm>
#include <future>
#include <set>

#include <fmt/format.h>

namespace hone::benchmarks {
namespace {

constexpr MoverPolicy kThroughRegisters[] = {
    {.threads = 128, .unroll = 4}, {.threads = 256, .unroll = 1}, {.threads = 256, .unroll = 4},
    {.threads = 256, .unroll = 8}, {.threads = 512, .unroll = 2}, {.threads = 512, .unroll = 4},
    {.threads = 512, .unroll = 8}, {.threads = 1024, .unroll = 2}, {.threads = 1024, .unroll = 4}};
constexpr MoverPolicy kInBulk[] = {{.unroll = 12, .chunk_bytes = 16 << 10}, {.unroll = 6, .chunk_bytes = 32 << 10},
                                   {.unroll = 6, .chunk_bytes = 16 << 10},  {.unroll = 12, .chunk_bytes = 8 << 10},
                                   {.unroll = 8, .chunk_bytes = 4 << 10},   {.unroll = 8, .chunk_bytes = 2 << 10}};
/// The host device has neither caches to pass by nor bulk copies, and takes long to try.
constexpr MoverPolicy kOnHost[] = {{.threads = 256, .unroll = 4}};

}  // namespace

std::vector<MoverPolicy> mover_policies(const DeviceFacts& facts, bool copies) {
  std::vector<MoverPolicy> policies;
  const auto add = [&](MoverPolicy policy) {
    policy.copies = copies;
    policies.push_back(policy);
  };
  if (facts.kind == "host") {
    for (const MoverPolicy& policy : kOnHost) add(policy);
    return policies;
  }
  for (MoverPolicy policy : kThroughRegisters) {
    for (const bool past_l1 : {false, true}) {
      policy.past_l1 = past_l1;
      add(policy);
    }
  }
  for (const MoverPolicy& policy : kInBulk)
    if (facts.compute_capability >= 90 && static_cast<int>(policy.tile_bytes()) < facts.smem_bytes_per_block_optin)
      add(policy);
  return policies;
}

Ceilings::Ceilings(std::shared_ptr<Device> device, const RaceTrack& track)
    : device_(std::move(device)), track_(track), stream_(*device_) {}

const std::vector<std::unique_ptr<Mover>>& Ceilings::movers(bool copies) {
  std::vector<std::unique_ptr<Mover>>& movers = copies ? copiers_ : readers_;
  if (!movers.empty()) return movers;
  std::vector<std::future<std::unique_ptr<Mover>>> compiled;
  for (const MoverPolicy& policy : mover_policies(device_->facts(), copies))
    compiled.push_back(
        std::async(std::launch::async, [this, policy] { return std::make_unique<Mover>(device_, policy); }));
  for (auto& mover : compiled) movers.push_back(mover.get());
  return movers;
}

std::vector<PlainMove> Ceilings::moves_of(bool copies, std::size_t bytes) {
  std::vector<PlainMove> moves;
  for (const auto& owned : movers(copies)) {
    const Mover* const mover = owned.get();
    const int resident = std::max(1, mover->resident_blocks());
    std::set<int> grids;
    for (const int blocks_per_sm : {0, resident, resident / 2})  // 0: a block for each tile
      if (!mover->policy().in_bulk() || blocks_per_sm > 0) grids.insert(mover->blocks_for(bytes, blocks_per_sm));
    for (const int blocks : grids)
      moves.push_back({fmt::format("{}, {} blocks", mover->policy().describe(), blocks),
                       [mover, bytes, blocks](const void* in, void* out, Stream stream) {
                         mover->enqueue(in, out, bytes, blocks, stream);
                       }});
  }
  if (copies)
    moves.push_back({"the device's own copy",
                     [device = device_.get(), bytes](const void* in, void* out, Stream stream) {
                       device->copy_on_device(out, in, bytes, stream);
                     }});
  return moves;
}

const PlainMove& Ceilings::fastest(std::span<const void* const> inputs, void* out, std::size_t bytes) {
  const std::pair<bool, std::size_t> key(out != nullptr, bytes);
  if (const auto found = fastest_.find(key); found != fastest_.end()) return found->second;
  std::vector<PlainMove> moves = moves_of(out != nullptr, bytes);
  std::vector<Contestant> contestants;
  for (const PlainMove& move : moves)
    contestants.push_back({move.name, [&](int turn, Stream stream) {
                             move.enqueue(inputs[static_cast<std::size_t>(turn) % inputs.size()], out, stream);
                           }});
  const std::vector<Timing> timings = track_.time(stream_.get(), {LaunchContext::graph}, contestants, bytes,
                                                  {.rounds = 3, .least_rounds = 3, .cap_ms = 0});
  const auto least = std::min_element(timings.begin(), timings.end(), [](const Timing& a, const Timing& b) {
    return a.median_us < b.median_us;
  });
  return fastest_.emplace(key, std::move(moves[static_cast<std::size_t>(least - timings.begin())])).first->second;
}

}  // namespace hone::benchmarks
