#include "benchmarks/ladder/run.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include <hone/own_stream.h>
#include <hone/tuned_reduce.h>

#include "benchmarks/common/numbers.h"
#include "benchmarks/common/report.h"
#include "benchmarks/ladder/steps.h"

namespace hone::benchmarks {
namespace {

constexpr long double kTolerance = 1e-5L;

/// One step's loaded kernels and its launches for every copy of the input, made beforehand.
class LoadedStep {
 public:
  LoadedStep(std::shared_ptr<Device> device, const LadderStep& step, const InputArena& arena, const InputLayout& layout,
             std::int64_t n, float* out)
      : device_(std::move(device)), zeroes_(step.finish == LadderFinish::atomic), out_(out),
        scratch_(device_, ladder_scratch_bytes(step, n)) {
    const Unit unit = ladder_unit(step);
    module_ = device_->load(device_->compile(unit), unit.entries);
    device_->fill_bytes(scratch_.data(), 0, scratch_.size_bytes(), nullptr);
    device_->synchronize(nullptr);
    const int resident = device_->resident_blocks(module_->kernel(0), kLadderBlockThreads, 0);
    const std::int64_t most_blocks = std::int64_t{std::max(resident, 1)} * device_->facts().sm_count;
    for (int copy = 0; copy < layout.copies; ++copy) {
      const LadderBuffers buffers{static_cast<const float*>(arena.at(layout, copy, 0)), out, scratch_.as<std::byte>()};
      launches_.push_back(ladder_launches(step, buffers, n, most_blocks));
    }
  }

  void enqueue(int turn, Stream stream) const {
    if (zeroes_) device_->fill_bytes(out_, 0, sizeof(float), stream);
    for (const Launch& launch : launches_[static_cast<std::size_t>(turn) % launches_.size()])
      device_->launch(module_->kernel(launch.entry), launch, stream);
  }

  int launches() const { return static_cast<int>(launches_.front().size()) + (zeroes_ ? 1 : 0); }

 private:
  std::shared_ptr<Device> device_;
  bool zeroes_;
  float* out_;
  DeviceBuffer scratch_;
  std::unique_ptr<Module> module_;
  std::vector<std::vector<Launch>> launches_;
};

}  // namespace

std::vector<LadderRow> run_ladder(Session& session, const InputArena& arena, const CacheFlush& flush, std::int64_t n,
                                  LaunchContext context, const TimingOptions& options) {
  const std::shared_ptr<Device>& device = session.device();
  const InputLayout layout = arena.layout(DType::f32, n, 1, false, options.most_calls);
  const DeviceBuffer out(device, sizeof(float));
  const OwnStream own_stream(*device);
  const Stream stream = own_stream.get();

  const std::string size = fmt::format("n = {}", n);
  const std::int64_t bytes = n * std::int64_t{sizeof(float)};
  std::vector<LoadedStep> steps;
  std::vector<Contestant> contestants;
  std::vector<LadderRow> rows;
  steps.reserve(ladder_steps().size());
  for (const LadderStep& step : ladder_steps()) {
    const LoadedStep& loaded = steps.emplace_back(device, step, arena, layout, n, out.as<float>());
    contestants.push_back({std::string(step.name), [&loaded](int turn, Stream on) { loaded.enqueue(turn, on); }});
    rows.push_back({.step = std::string(step.name), .size = size, .bytes = bytes, .launches = loaded.launches()});
  }
  Problem problem = reduce_problem(ReduceOp::sum, DType::f32, n);
  problem.launch_context = context;
  session.prepare(problem);
  const Plan plan = session.make_plan(problem);
  contestants.push_back({std::string(kHone), [&](int turn, Stream on) {
                           void* const buffers[] = {arena.at(layout, turn, 0), out.data()};
                           plan.launch(problem, buffers, on);
                         }});
  rows.push_back({.step = std::string(kHone), .size = size, .bytes = bytes});

  for (std::size_t i = 0; i < rows.size(); ++i) {
    contestants[i].enqueue(0, stream);
    std::vector<std::byte> result(sizeof(float));
    device->copy_to_host(result.data(), out.data(), result.size(), stream);
    device->synchronize(stream);
    const long double found = decode(DType::f32, result).front(), expected = arena.sum_of_first(n);
    if (std::fabs(found - expected) > kTolerance * std::fabs(expected))
      rows[i].fault = fmt::format("{:g} instead of {:g}", found, expected);
  }

  const std::function<void(Stream)> make_cold = [&](Stream on) {
    if (flush.is_needed_for(static_cast<std::size_t>(n) * sizeof(float))) flush.enqueue(on);
  };
  const std::vector<Timing> timings = time_interleaved(*device, stream, context, contestants, make_cold, options);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].timing = timings[i];
  return rows;
}

std::string ladder_table(const std::vector<LadderRow>& rows) {
  std::vector<std::string> sizes, steps;
  for (const LadderRow& row : rows) {
    if (std::find(sizes.begin(), sizes.end(), row.size) == sizes.end()) sizes.push_back(row.size);
    if (std::find(steps.begin(), steps.end(), row.step) == steps.end()) steps.push_back(row.step);
  }
  const auto row_of = [&](const std::string& step, const std::string& size) -> const LadderRow& {
    return *std::find_if(rows.begin(), rows.end(),
                         [&](const LadderRow& row) { return row.step == step && row.size == size; });
  };

  std::string text = fmt::format("{:<16}", "");
  for (const std::string& size : sizes) text += fmt::format("|{:^28}", size);
  text += fmt::format("\n{:<16}", "step");
  for (std::size_t i = 0; i < sizes.size(); ++i)
    text += fmt::format("|{:>10}{:>6}{:>5}{:>7}", "us", "GB/s", "%", "gain");
  text += "\n";
  for (std::size_t s = 0; s < steps.size(); ++s) {
    text += fmt::format("{:<16}", steps[s]);
    for (const std::string& size : sizes) {
      const LadderRow& row = row_of(steps[s], size);
      const double found = gbps(static_cast<double>(row.bytes), row.timing.median_us);
      text += fmt::format("|{:>10.2f}{:>6.0f}{:>5.0f}", row.timing.median_us, found, 100 * found / row.ceiling_gbps);
      text += s == 0 ? fmt::format("{:>7}", "")
                     : fmt::format("{:>7.2f}", row_of(steps[s - 1], size).timing.median_us / row.timing.median_us);
    }
    text += "\n";
  }
  return text;
}

std::string sum_legend() {
  std::string text = "% of the read ceiling; gain: time of the step before / time of this one\n";
  for (const LadderStep& step : ladder_steps()) text += fmt::format("  {:<15} {}\n", step.name, step.teaches);
  return text + fmt::format("  {:<15} the policy that was tuned for this device and size\n", kHone);
}

}  // namespace hone::benchmarks
