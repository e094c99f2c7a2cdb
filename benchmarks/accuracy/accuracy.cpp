#include "benchmarks/accuracy/accuracy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/error.h>
#include <hone/own_stream.h>
#include <hone/tuned_reduce.h>

#include "benchmarks/common/embedded.h"
#include "benchmarks/common/numbers.h"

namespace hone::benchmarks {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 30;
constexpr std::int64_t kConstantElements = 100'000'000;  // the experiment that tutorials show

std::uint32_t hash(std::uint32_t i) {
  i ^= i >> 16;
  i *= 0x7feb352du;
  i ^= i >> 15;
  i *= 0x846ca68bu;
  return i ^ i >> 16;
}

/// Σ term(i) for i below n, modulo 2^64, on all processors.
std::uint64_t parallel_sum(std::int64_t n, const std::function<std::uint64_t(std::uint32_t)>& term) {
  const auto workers = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(workers));
  std::vector<std::thread> threads;
  for (std::int64_t worker = 0; worker < workers; ++worker)
    threads.emplace_back([&, worker] {
      std::uint64_t sum = 0;
      for (std::int64_t i = worker * n / workers; i < (worker + 1) * n / workers; ++i)
        sum += term(static_cast<std::uint32_t>(i));
      sums[static_cast<std::size_t>(worker)] = sum;
    });
  for (std::thread& thread : threads) thread.join();
  std::uint64_t sum = 0;
  for (std::uint64_t part : sums) sum += part;
  return sum;
}

/// An input, and what is known of it.
struct Experiment {
  std::string name;
  DType dtype;
  int kind;  ///< kKind of fill.cu
  std::int64_t n;
  long double exact;
  long double magnitude;  ///< Σ|x|; 0 for integers
};

Experiment uniform(std::int64_t n) {
  const long double sum =
      static_cast<long double>(parallel_sum(n, [](std::uint32_t i) { return hash(i) >> 8; })) / 16777216;
  return {"uniform in [0, 1)", DType::f32, 0, n, sum, sum};
}

Experiment constant(std::int64_t n) {
  const long double sum = static_cast<long double>(1.23f) * static_cast<long double>(n);
  return {"1.23, over and over", DType::f32, 1, n, sum, sum};
}

Experiment cancelling(std::int64_t most) {
  const std::int64_t n = most % 2 == 1 ? most : most - 1;
  const auto half = parallel_sum(n / 2, [](std::uint32_t i) { return hash(i) >> 8; });
  return {"cancelling, 1 left over", DType::f32, 2, n, 1, 2 * static_cast<long double>(half) / 4096 + 1};
}

Experiment swamped(std::int64_t most) {
  const std::int64_t n = most / 4 * 4;
  return {"2^26, 1, -2^26, 0", DType::f32, 3, n, static_cast<long double>(n / 4),
          static_cast<long double>(n / 4) * (2 * 67108864.0L + 1)};
}

/// Random bits; modulo 2^64, as Hone's 64-bit sums are.
Experiment integers(DType dtype, bool is_signed, std::int64_t n) {
  const std::size_t bits = 8 * info(dtype).size_bytes;
  const std::uint64_t sum = parallel_sum(n, [&](std::uint32_t i) -> std::uint64_t {
    const std::uint64_t value = std::uint64_t{hash(~i)} << 32 | hash(i);
    if (bits == 64) return value;
    const std::uint64_t kept = value & ((std::uint64_t{1} << bits) - 1);
    return is_signed && kept >> (bits - 1) ? kept - (std::uint64_t{1} << bits) : kept;
  });
  return {fmt::format("random {}", info(dtype).name), dtype, 4, n,
          is_signed ? static_cast<long double>(static_cast<std::int64_t>(sum)) : static_cast<long double>(sum), 0};
}

std::vector<Experiment> experiments_in(std::size_t bytes) {
  const auto fitting = [&](DType dtype) {
    return std::min(kMostElements, static_cast<std::int64_t>(bytes / info(dtype).size_bytes));
  };
  const std::int64_t floats = fitting(DType::f32);
  std::vector<Experiment> experiments{uniform(floats), constant(std::min(floats, kConstantElements)),
                                      cancelling(floats), swamped(floats)};
  for (const DTypeInfo& dtype : kDTypes) {
    const bool is_signed = dtype.kind == DTypeKind::signed_integer,
               is_unsigned = dtype.kind == DTypeKind::unsigned_integer;
    if (is_signed || is_unsigned) experiments.push_back(integers(dtype.dtype, is_signed, fitting(dtype.dtype)));
  }
  return experiments;
}

void fill(Device& device, const Experiment& experiment, void* memory, Stream stream) {
  const SourceFile& file = embedded::accuracy_kernels().front();
  const Unit unit{.name = "fill " + experiment.name,
                  .source = fmt::format("using Element = {};\nconstexpr int kKind = {};\n#include \"{}\"\n",
                                        info(experiment.dtype).cuda_name, experiment.kind, file.name),
                  .headers = {file},
                  .entries = {"fill"}};
  const auto module = device.load(device.compile(unit), unit.entries);
  Launch launch;
  launch.grid.x = static_cast<unsigned>(8 * device.facts().sm_count);
  launch.block.x = 256;
  launch.arguments.push(memory);
  launch.arguments.push(static_cast<unsigned long long>(experiment.n));
  device.launch(module->kernel(0), launch, stream);
  device.synchronize(stream);
}

}  // namespace

long double AccuracyRow::error() const { return std::fabs(found - exact); }

bool is_accurate(const AccuracyRow& row) { return row.error() <= kAllowedBounds * row.bound; }

long double pairwise_bound(std::int64_t n, long double sum_of_magnitudes) {
  constexpr long double kUnit = 1.0L / 16777216;  // u = 2^−24
  const long double k = std::ceil(std::log2(static_cast<long double>(std::max<std::int64_t>(n, 1))));
  return k * kUnit / (1 - k * kUnit) * sum_of_magnitudes;
}

std::vector<AccuracyRow> measure_accuracy(Session& session, const std::vector<std::unique_ptr<Peer>>& peers,
                                          void* memory, std::size_t bytes) {
  Device& device = *session.device();
  const OwnStream stream(device);
  std::vector<AccuracyRow> rows;
  for (const Experiment& experiment : experiments_in(bytes)) {
    const Problem problem = reduce_problem(ReduceOp::sum, experiment.dtype, experiment.n);
    if (!refusal_of(problem).empty()) continue;
    fill(device, experiment, memory, stream.get());

    const BufferSpec out_spec = problem.family->buffers(problem).back();
    const DeviceBuffer out(session.device(), out_spec.size_bytes());
    void* const buffers[] = {memory, out.data()};
    session.launch(problem, buffers, stream.get());
    std::vector<std::byte> result(out_spec.size_bytes());
    device.copy_to_host(result.data(), out.data(), result.size(), stream.get());
    device.synchronize(stream.get());

    AccuracyRow row{.experiment = experiment.name,
                    .by = "Hone",
                    .n = experiment.n,
                    .found = decode(out_spec.dtype, result).front(),
                    .exact = experiment.exact,
                    .bound = pairwise_bound(experiment.n, experiment.magnitude)};
    rows.push_back(row);
    for (const auto& peer : peers) {
      const std::unique_ptr<PeerCall> call = peer->plan({"sum", experiment.dtype, out_spec.dtype, experiment.n});
      if (!call) continue;
      const void* const inputs[] = {memory};
      call->enqueue(inputs, stream.get());
      row.by = peer->name();
      row.found = call->result(stream.get()).front();
      rows.push_back(row);
    }
  }
  return rows;
}

std::string accuracy_table(const std::vector<AccuracyRow>& rows) {
  std::string text = fmt::format(
      "Accuracy of sums; bound: pairwise summation, γ(⌈log2 n⌉) Σ|x|, u = 2^-24 (Higham, 2nd ed., eq. 4.6)\n"
      "{:<26}{:>11}  {:<8}{:>20}{:>20}{:>12}{:>12}{:>14}\n",
      "input", "n", "by", "found", "exact", "error", "bound", "error/bound");
  for (const AccuracyRow& row : rows)
    text += fmt::format("{:<26}{:>11}  {:<8}{:>20.10g}{:>20.10g}{:>12.3g}{:>12.3g}{:>14}\n", row.experiment, row.n,
                        row.by, row.found, row.exact, row.error(), row.bound,
                        row.bound > 0 ? fmt::format("{:.4f}", static_cast<double>(row.error() / row.bound))
                                      : std::string(row.error() == 0 ? "exact" : "NOT EXACT"));
  return text;
}

nlohmann::ordered_json to_json(const std::vector<AccuracyRow>& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const AccuracyRow& row : rows)
    json.push_back({{"input", row.experiment},
                    {"n", row.n},
                    {"by", row.by},
                    {"found", static_cast<double>(row.found)},
                    {"exact", static_cast<double>(row.exact)},
                    {"error", static_cast<double>(row.error())},
                    {"bound", static_cast<double>(row.bound)}});
  return json;
}

}  // namespace hone::benchmarks
