#include "benchmarks/common/mover.h"

#include <algorithm>

#include <fmt/format.h>

#include "benchmarks/common/embedded.h"

namespace hone::benchmarks {
namespace {

/// CacheFlush and OtherKernel overlap with nothing.
constexpr MoverPolicy kFlush{.threads = 512, .unroll = 4, .dependent = false};
constexpr MoverPolicy kOther{.threads = 256, .unroll = 4, .dependent = false};
constexpr int kFlushBlocksPerSm = 4, kOtherBlocksPerSm = 1;

Unit unit_of(const MoverPolicy& policy) {
  const std::string name = policy.in_bulk() ? "move_in_bulk" : "move_all";
  const std::string constants =
      policy.in_bulk()
          ? fmt::format("constexpr unsigned kStages = {}, kChunkPacks = {};\nconstexpr bool kCopies = {};\n",
                        policy.unroll, policy.chunk_bytes / static_cast<int>(kPackBytes), policy.copies)
          : fmt::format("constexpr unsigned kThreads = {}, kUnroll = {};\n"
                        "constexpr bool kCopies = {}, kPastL1 = {}, kDependent = {};\n",
                        policy.threads, policy.unroll, policy.copies, policy.past_l1, policy.dependent);
  const std::span<const SourceFile> files = embedded::benchmark_kernels();
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const SourceFile& one) { return one.name == name + ".cu"; });
  return {.name = name,
          .source = fmt::format("{}#include \"{}\"\n", constants, file->name),
          .headers = {*file},
          .entries = {name}};
}

}  // namespace

std::size_t MoverPolicy::tile_bytes() const {
  return static_cast<std::size_t>(unroll) *
         (in_bulk() ? static_cast<std::size_t>(chunk_bytes) : static_cast<std::size_t>(threads) * kPackBytes);
}

std::string MoverPolicy::describe() const {
  const std::string_view what = copies ? "copy" : "read";
  if (in_bulk()) return fmt::format("bulk {}, {} chunks of {} KiB", what, unroll, chunk_bytes >> 10);
  return fmt::format("{}, {} threads x {} loads{}", what, threads, unroll, past_l1 ? " past L1" : "");
}

Mover::Mover(std::shared_ptr<Device> device, const MoverPolicy& policy)
    : device_(std::move(device)), policy_(policy), unexpected_(device_, kPackBytes) {
  const Unit unit = unit_of(policy);
  module_ = device_->load(device_->compile(unit), unit.entries);
}

int Mover::blocks_for(std::size_t bytes, int blocks_per_sm) const {
  const std::size_t tile = policy_.in_bulk() ? static_cast<std::size_t>(policy_.chunk_bytes) : policy_.tile_bytes();
  const std::size_t tiles = std::max<std::size_t>(1, (bytes + tile - 1) / tile);
  const auto most = static_cast<std::size_t>(blocks_per_sm) * static_cast<std::size_t>(device_->facts().sm_count);
  return static_cast<int>(std::min(tiles, most == 0 ? std::size_t{1} << 30 : most));
}

int Mover::resident_blocks() const {
  return device_->resident_blocks(module_->kernel(0), policy_.in_bulk() ? 32 : policy_.threads,
                                  policy_.in_bulk() ? policy_.tile_bytes() : 0);
}

void Mover::enqueue(const void* in, void* out, std::size_t bytes, int blocks, Stream stream) const {
  Launch launch;
  launch.grid.x = static_cast<unsigned>(blocks);
  launch.block.x = static_cast<unsigned>(policy_.in_bulk() ? 32 : policy_.threads);
  launch.dynamic_smem_bytes = static_cast<std::uint32_t>(policy_.in_bulk() ? policy_.tile_bytes() : 0);
  launch.dependent_launch = policy_.dependent;
  launch.arguments.push(in);
  launch.arguments.push(policy_.copies ? out : unexpected_.data());
  launch.arguments.push(static_cast<unsigned long long>(bytes / kPackBytes));
  device_->launch(module_->kernel(0), launch, stream);
}

std::size_t cache_bytes(const DeviceFacts& facts) {
  constexpr std::int64_t kLeast = 1 << 20, kHost = 8 << 20;
  return static_cast<std::size_t>(facts.kind == "host" ? kHost : std::max(facts.l2_bytes, kLeast));
}

CacheFlush::CacheFlush(std::shared_ptr<Device> device)
    : device_(device), memory_(device, 2 * cache_bytes(device->facts())) {
  device_->fill_bytes(memory_.data(), 0, memory_.size_bytes(), nullptr);
  device_->synchronize(nullptr);
  if (device_->facts().kind != "host") reader_ = std::make_unique<Mover>(device_, kFlush);
}

void CacheFlush::enqueue(Stream stream) const {
  const std::size_t bytes = memory_.size_bytes();
  if (reader_)
    reader_->enqueue(memory_.data(), nullptr, bytes, reader_->blocks_for(bytes, kFlushBlocksPerSm), stream);
  else device_->fill_bytes(memory_.data(), 0, bytes, stream);
}

OtherKernel::OtherKernel(const std::shared_ptr<Device>& device)
    : memory_(device, std::min<std::size_t>(8 << 20, cache_bytes(device->facts()) / 4)), reader_(device, kOther) {}

void OtherKernel::enqueue(Stream stream) const {
  const std::size_t bytes = memory_.size_bytes();
  reader_.enqueue(memory_.data(), nullptr, bytes, reader_.blocks_for(bytes, kOtherBlocksPerSm), stream);
}

}  // namespace hone::benchmarks
