// tuned_reduce() next to CUB on the same buffers, in one run.
//
// Both take device-resident inputs and results; CUB's temporary storage is allocated beforehand, Hone's winner tuned
// beforehand. Inputs rotate through twice the L2, so that no call finds its data there. Batches of the two alternate; a
// cell is the median over batches of back-to-back calls in a stream. The ceiling is a device-to-device copy of 1 GiB,
// bytes read and written.
//
// usage: reduce_vs_peers [FILE.json [FIRST_EXPONENT LAST_EXPONENT [OP]]]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <hone/hone.h>
#include <hone/kernel_family.h>

#include "peers.h"
#include "report.h"

namespace {

using namespace hone;

constexpr int kBatches = 15;
constexpr double kBatchUs = 300;
constexpr std::size_t kCopyBytes = std::size_t{1} << 30;

/// Input memory that is handed out piece by piece.
class Rotation {
 public:
  Rotation(const std::shared_ptr<Device>& device, std::size_t bytes)
      : stride_((bytes + 255) / 256 * 256),
        copies_(2 * static_cast<std::size_t>(device->facts().l2_bytes) / stride_ + 1),
        memory_(device, copies_ * stride_) {}

  const std::byte* next() {
    turn_ = (turn_ + 1) % copies_;
    return memory_.as<std::byte>() + turn_ * stride_;
  }
  std::byte* data() const { return memory_.as<std::byte>(); }
  std::size_t size_bytes() const { return memory_.size_bytes(); }

 private:
  std::size_t stride_;
  std::size_t copies_;
  std::size_t turn_ = 0;
  DeviceBuffer memory_;
};

/// Random bits in every byte but the top ones of each word, so that all dtypes get ordinary finite numbers.
void fill(Device& device, const Rotation& rotation, Stream stream) {
  std::vector<std::uint32_t> pattern(1 << 20);
  std::uint32_t state = 12345;
  for (std::uint32_t& word : pattern) {
    state = state * 1664525u + 1013904223u;
    word = 0x3f000000u | (state >> 9);
  }
  const std::size_t bytes = pattern.size() * sizeof(std::uint32_t);
  for (std::size_t at = 0; at < rotation.size_bytes(); at += bytes)
    device.copy_to_device(rotation.data() + at, pattern.data(), std::min(bytes, rotation.size_bytes() - at), stream);
  device.synchronize(stream);
}

/// Microseconds per call of each competitor: medians over alternating batches.
std::vector<double> race(Device& device, Stream stream, const std::vector<std::function<void()>>& competitors) {
  std::vector<std::vector<double>> samples(competitors.size());
  std::vector<int> calls;
  for (const auto& call : competitors) {
    device.time_us(stream, call);
    calls.push_back(static_cast<int>(std::clamp(kBatchUs / device.time_us(stream, call), 1.0, 100.0)));
  }
  for (int batch = 0; batch < kBatches; ++batch) {
    for (std::size_t i = 0; i < competitors.size(); ++i) {
      samples[i].push_back(device.time_us(stream, [&] {
        for (int call = 0; call < calls[i]; ++call) competitors[i]();
      }) / calls[i]);
    }
  }
  std::vector<double> medians;
  for (const auto& of_one : samples) medians.push_back(benchmarks::median(of_one));
  return medians;
}

double copy_gbps(const std::shared_ptr<Device>& device, Stream stream) {
  const DeviceBuffer from(device, kCopyBytes);
  const DeviceBuffer to(device, kCopyBytes);
  const auto copy = [&] { device->copy_on_device(to.data(), from.data(), kCopyBytes, stream); };
  return 2.0 * kCopyBytes / race(*device, stream, {copy}).front() * 1e-3;
}

struct Row {
  ReduceOp op;
  DType dtype;
  std::int64_t n;
  double hone_us;
  double cub_us;
};

Row compare(Session& session, Stream stream, ReduceOp op, DType dtype, std::int64_t n) {
  const auto& device = session.device();
  Rotation in(device, static_cast<std::size_t>(n) * info(dtype).size_bytes);
  fill(*device, in, stream);
  const DeviceBuffer out(device, 8);
  std::size_t temp_bytes = 0;
  benchmarks::cub_reduce(op, dtype, nullptr, temp_bytes, in.data(), n, out.data(), stream);
  const DeviceBuffer temp(device, temp_bytes);

  session.prepare(reduce_problem(op, dtype, n));
  const std::vector<double> us = race(
      *device, stream, {[&] { tuned_reduce(session, op, dtype, in.next(), n, out.data(), stream); },
                        [&] {
                          if (benchmarks::cub_reduce(op, dtype, temp.data(), temp_bytes, in.next(), n, out.data(),
                                                     stream) != cudaSuccess)
                            throw Error(ErrorCode::device_failed, "CUB failed");
                        }});
  return {op, dtype, n, us[0], us[1]};
}

void write_json(const char* path, const DeviceFacts& facts, double ceiling_gbps, const std::vector<Row>& rows) {
  std::FILE* file = std::fopen(path, "w");
  if (!file) throw Error(ErrorCode::io_failed, fmt::format("cannot write {}", path));
  fmt::print(file, "{{\n  \"device\": \"{}\",\n  \"cuda\": \"{}\",\n  \"cub\": {},\n  \"date\": \"{}\",\n"
                   "  \"copy_gbps\": {:.0f},\n  \"rows\": [",
             facts.name, benchmarks::cuda_version(), benchmarks::cub_version(), benchmarks::today(), ceiling_gbps);
  for (std::size_t i = 0; i < rows.size(); ++i)
    fmt::print(file, "{}\n    {{\"op\": \"{}\", \"dtype\": \"{}\", \"n\": {}, \"hone_us\": {:.3f}, \"cub_us\": {:.3f}}}",
               i == 0 ? "" : ",", name(rows[i].op), info(rows[i].dtype).name, rows[i].n, rows[i].hone_us,
               rows[i].cub_us);
  fmt::print(file, "\n  ]\n}}\n");
  std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) try {
  const int first = argc > 3 ? std::atoi(argv[2]) : 8;
  const int last = argc > 3 ? std::atoi(argv[3]) : 30;
  const std::vector<ReduceOp> ops = argc > 4 ? std::vector{parse_reduce_op(argv[4])}
                                             : std::vector{ReduceOp::sum, ReduceOp::min, ReduceOp::max};
  const auto device = Device::open("cuda:0");
  Session session(device);
  const Stream stream = device->create_stream();
  const double ceiling = copy_gbps(device, stream);
  fmt::print("{}, CUDA {}, CUB {}, {}; copy {:.0f} GB/s\n\n{:<4} {:<5} {:>11} {:>9} {:>9} {:>7} {:>7} {:>7}\n",
             device->facts().name, benchmarks::cuda_version(), benchmarks::cub_version(), benchmarks::today(), ceiling,
             "op", "dtype", "n", "Hone µs", "CUB µs", "ratio", "GB/s", "% copy");

  std::vector<Row> rows;
  for (const ReduceOp op : ops) {
    for (const DTypeInfo& dtype : kDTypes) {
      double log_ratios = 0;
      std::size_t cells = 0;
      for (int exponent = first; exponent <= last; exponent += 2) {
        // Sizes off the powers of two that tuning measures: half of them odd, between two classes' centres.
        const std::int64_t power = std::int64_t{1} << exponent;
        const std::int64_t n = exponent % 4 == 0 ? power : power + power / 5 + 1;
        const Row row = compare(session, stream, op, dtype.dtype, n);
        const double gbps = static_cast<double>(n) * static_cast<double>(dtype.size_bytes) / row.hone_us * 1e-3;
        fmt::print("{:<4} {:<5} {:>11} {:>9.2f} {:>9.2f} {:>7.2f} {:>7.0f} {:>7.1f}\n", name(op), dtype.name, n,
                   row.hone_us, row.cub_us, row.cub_us / row.hone_us, gbps, 100 * gbps / ceiling);
        std::fflush(stdout);
        log_ratios += std::log(row.cub_us / row.hone_us);
        ++cells;
        rows.push_back(row);
      }
      fmt::print("{:<4} {:<5} geometric mean of the ratios: {:.2f}\n", name(op), dtype.name,
                 std::exp(log_ratios / static_cast<double>(cells)));
    }
  }
  device->destroy_stream(stream);
  if (argc > 1) write_json(argv[1], device->facts(), ceiling, rows);
} catch (const hone::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
