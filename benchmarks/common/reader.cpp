#include "benchmarks/common/reader.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "benchmarks/common/embedded.h"
#include "benchmarks/common/report.h"

namespace hone::benchmarks {
namespace {

constexpr int kRounds = 5;

struct ReaderShape {
  int threads, unroll, blocks_per_sm;
};
constexpr ReaderShape kShapes[] = {{256, 4, 8}, {256, 8, 4}, {256, 8, 8}, {512, 4, 4},
                                   {512, 8, 2}, {512, 8, 4}, {1024, 4, 2}, {1024, 8, 2}};

}  // namespace

Reader::Reader(std::shared_ptr<Device> device, int threads, int unroll, int blocks_per_sm)
    : device_(device),
      threads_(threads),
      unroll_(unroll),
      blocks_(blocks_per_sm * device->facts().sm_count),
      unexpected_(device, sizeof(unsigned)) {
  const SourceFile& file = embedded::benchmark_kernels().front();
  const Unit unit{.name = "read_all",
                  .source = fmt::format("constexpr unsigned kThreads = {}, kUnroll = {};\n#include \"{}\"\n", threads,
                                        unroll, file.name),
                  .headers = {file},
                  .entries = {"read_all"}};
  module_ = device_->load(device_->compile(unit), unit.entries);
}

void Reader::enqueue(const void* memory, std::size_t bytes, Stream stream) const {
  Launch launch;
  launch.grid.x = static_cast<unsigned>(blocks_);
  launch.block.x = static_cast<unsigned>(threads_);
  launch.arguments.push(memory);
  launch.arguments.push(static_cast<unsigned long long>(bytes / kPackBytes));
  launch.arguments.push(unexpected_.data());
  device_->launch(module_->kernel(0), launch, stream);
}

std::string Reader::describe(std::size_t bytes) const {
  return fmt::format("xor of {} MiB, {} blocks of {} threads, {} 16-byte loads in flight each", bytes >> 20, blocks_,
                     threads_, unroll_);
}

std::size_t cache_bytes(const DeviceFacts& facts) {
  constexpr std::int64_t kLeast = 1 << 20, kHost = 8 << 20;
  return static_cast<std::size_t>(facts.kind == "host" ? kHost : std::max(facts.l2_bytes, kLeast));
}

ReadCeiling measure_read_ceiling(const std::shared_ptr<Device>& device, const void* memory, std::size_t bytes,
                                 Stream stream) {
  ReadCeiling best;
  for (const ReaderShape& shape : kShapes) {
    const auto reader = std::make_shared<const Reader>(device, shape.threads, shape.unroll, shape.blocks_per_sm);
    std::vector<double> samples;
    for (int round = 0; round <= kRounds; ++round) {
      const double us = device->time_us(stream, [&] { reader->enqueue(memory, bytes, stream); });
      if (round > 0) samples.push_back(us);  // the first may load code
    }
    const double found = gbps(static_cast<double>(bytes), median(samples));
    if (found > best.gbps) best = {found, reader->describe(bytes), reader};
  }
  return best;
}

CacheFlush::CacheFlush(std::shared_ptr<Device> device)
    : device_(device), memory_(device, 2 * cache_bytes(device->facts())) {
  device_->fill_bytes(memory_.data(), 0, memory_.size_bytes(), nullptr);
  device_->synchronize(nullptr);
  if (device_->facts().kind != "host") reader_ = std::make_unique<Reader>(device_, 512, 4, 4);
}

void CacheFlush::enqueue(Stream stream) const {
  if (reader_) reader_->enqueue(memory_.data(), memory_.size_bytes(), stream);
  else device_->fill_bytes(memory_.data(), 0, memory_.size_bytes(), stream);
}

OtherKernel::OtherKernel(const std::shared_ptr<Device>& device)
    : memory_(device, std::min<std::size_t>(8 << 20, cache_bytes(device->facts()) / 4)), reader_(device, 256, 4, 1) {}

void OtherKernel::enqueue(Stream stream) const { reader_.enqueue(memory_.data(), memory_.size_bytes(), stream); }

}  // namespace hone::benchmarks
