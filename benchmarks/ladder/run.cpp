#include "benchmarks/ladder/run.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include <hone/own_stream.h>
#include <hone/tuned_reduce.h>

#include "benchmarks/common/numbers.h"
#include "benchmarks/common/report.h"
#include "benchmarks/ladder/code_lines.h"
#include "benchmarks/ladder/steps.h"

namespace hone::benchmarks {
namespace {

constexpr long double kTolerance = 1e-5L;

/// One step's loaded kernels and its launches for every copy of the input, made beforehand.
class LoadedStep {
 public:
  LoadedStep(std::shared_ptr<Device> device, const LadderStep& step, std::span<const float* const> inputs,
             std::int64_t n, float* out)
      : device_(std::move(device)),
        fills_(step.finish == LadderFinish::atomic),
        start_byte_(ladder_start_byte(step)),
        out_(out),
        scratch_(device_, ladder_scratch_bytes(step, n)) {
    const Unit unit = ladder_unit(step);
    module_ = device_->load(device_->compile(unit), unit.entries);
    device_->fill_bytes(scratch_.data(), 0, scratch_.size_bytes(), nullptr);
    device_->synchronize(nullptr);
    const int resident = device_->resident_blocks(module_->kernel(0), kLadderBlockThreads, 0);
    const std::int64_t most_blocks = std::int64_t{std::max(resident, 1)} * device_->facts().sm_count;
    for (const float* const in : inputs)
      launches_.push_back(ladder_launches(step, {in, out, scratch_.as<std::byte>()}, n, most_blocks));
  }

  void enqueue(int turn, Stream stream) const {
    if (fills_) device_->fill_bytes(out_, start_byte_, sizeof(float), stream);
    for (const Launch& launch : launches_[static_cast<std::size_t>(turn) % launches_.size()])
      device_->launch(module_->kernel(launch.entry), launch, stream);
  }

  int launches() const { return static_cast<int>(launches_.front().size()) + (fills_ ? 1 : 0); }

 private:
  std::shared_ptr<Device> device_;
  bool fills_;
  int start_byte_;
  float* out_;
  DeviceBuffer scratch_;
  std::unique_ptr<Module> module_;
  std::vector<std::vector<Launch>> launches_;
};

}  // namespace

std::vector<LadderRow> run_ladder(Session& session, const InputArena& arena, const RaceTrack& track,
                                  Ceilings& ceilings, std::int64_t n, LaunchContext context,
                                  const TimingOptions& options) {
  const std::shared_ptr<Device>& device = session.device();
  const InputLayout layout = arena.layout(DType::f32, n, 1, 0, options.most_calls);
  const DeviceBuffer out(device, sizeof(float));
  const OwnStream own_stream(*device);
  const Stream stream = own_stream.get();

  const std::string size = fmt::format("n = {}", n);
  const std::int64_t bytes = n * std::int64_t{sizeof(float)};
  std::vector<LoadedStep> steps;
  std::vector<Contestant> contestants;
  std::vector<LadderRow> rows;
  std::vector<long double> expected;
  const std::vector<LadderStep> here = ladder_steps_on(device->facts());
  steps.reserve(here.size());
  std::vector<const float*> inputs;
  for (int copy = 0; copy < layout.copies; ++copy)
    inputs.push_back(static_cast<const float*>(arena.at(layout, copy, 0)));
  for (const LadderStep& step : here) {
    const LoadedStep& loaded = steps.emplace_back(device, step, inputs, n, out.as<float>());
    contestants.push_back({std::string(step.name), [&loaded](int turn, Stream on) { loaded.enqueue(turn, on); }});
    rows.push_back({.step = std::string(step.name),
                    .size = size,
                    .bytes = bytes,
                    .launches = loaded.launches(),
                    .lines = code_lines(ladder_unit(step))});
    expected.push_back(step.is_max ? arena.max_of_first(n) : arena.sum_of_first(n));
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
  expected.push_back(arena.sum_of_first(n));

  for (std::size_t i = 0; i < rows.size(); ++i) {
    contestants[i].enqueue(0, stream);
    std::vector<std::byte> result(sizeof(float));
    device->copy_to_host(result.data(), out.data(), result.size(), stream);
    device->synchronize(stream);
    const long double found = decode(DType::f32, result).front();
    if (!(std::fabs(found - expected[i]) <= kTolerance * std::fabs(expected[i])))
      rows[i].fault = fmt::format("{:g} instead of {:g}", found, expected[i]);
  }

  const PlainMove& read = ceilings.fastest(arena.inputs(layout), nullptr, static_cast<std::size_t>(bytes));
  contestants.push_back(
      {read.name, [&](int turn, Stream on) { read.enqueue(arena.at(layout, turn, 0), nullptr, on); }});
  const std::vector<Timing> timings =
      track.time(stream, {context}, contestants, static_cast<std::size_t>(bytes), options);
  add_timings_to(rows, timings);
  return rows;
}

void add_timings_to(std::vector<LadderRow>& rows, const std::vector<Timing>& timings) {
  double least_us = timings.back().median_us;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].timing = timings[i];
    if (rows[i].fault.empty()) least_us = std::min(least_us, timings[i].median_us);
  }
  for (LadderRow& row : rows) row.ceiling_us = least_us;
}

std::vector<LadderError> ladder_errors(Session& session, std::int64_t n) {
  constexpr float kValue = 1.23f;
  constexpr std::int64_t kPiece = 1 << 20;
  const std::shared_ptr<Device>& device = session.device();
  const DeviceBuffer in(device, static_cast<std::size_t>(n) * sizeof(float)), out(device, sizeof(float));
  const std::vector<float> piece(static_cast<std::size_t>(std::min(n, kPiece)), kValue);
  for (std::int64_t first = 0; first < n; first += kPiece)
    device->copy_to_device(in.as<float>() + first, piece.data(),
                           static_cast<std::size_t>(std::min(kPiece, n - first)) * sizeof(float), nullptr);
  device->synchronize(nullptr);
  const long double exact = static_cast<long double>(kValue) * static_cast<long double>(n);
  std::vector<LadderError> errors;
  const auto take = [&](std::string_view step) {
    float found = 0;
    device->copy_to_host(&found, out.data(), sizeof(found), nullptr);
    device->synchronize(nullptr);
    errors.push_back({std::string(step), found, static_cast<double>(std::fabs(found - exact) / exact)});
  };
  const float* const input = in.as<float>();
  for (const LadderStep& step : ladder_steps_on(device->facts())) {
    if (step.is_max) continue;
    const LoadedStep loaded(device, step, std::span(&input, 1), n, out.as<float>());
    loaded.enqueue(0, nullptr);
    take(step.name);
  }
  const Problem problem = reduce_problem(ReduceOp::sum, DType::f32, n);
  void* const buffers[] = {in.data(), out.data()};
  session.launch(problem, buffers, nullptr);
  take(kHone);
  return errors;
}

std::string error_table(const std::vector<LadderError>& errors, std::int64_t n) {
  std::string text = fmt::format("sum of {} × 1.23f\n{:<16}{:>16}{:>10}\n", n, "step", "found", "error");
  for (const LadderError& error : errors)
    text += fmt::format("{:<16}{:>16.0f}{:>10.1e}\n", error.step, error.found, error.error);
  return text;
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

  std::string text = fmt::format("{:<22}{:>6}", "", "");
  for (const std::string& size : sizes) text += fmt::format("|{:^28}", size);
  text += fmt::format("\n{:<22}{:>6}", "step", "lines");
  for (std::size_t i = 0; i < sizes.size(); ++i)
    text += fmt::format("|{:>10}{:>6}{:>5}{:>7}", "us", "GB/s", "%", "gain");
  text += "\n";
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const int lines = row_of(steps[s], sizes.front()).lines;
    text += fmt::format("{:<22}{:>6}", steps[s], lines > 0 ? fmt::format("{}", lines) : "-");
    for (const std::string& size : sizes) {
      const LadderRow& row = row_of(steps[s], size);
      const double found = gbps(static_cast<double>(row.bytes), row.timing.median_us);
      text += fmt::format("|{:>10.2f}{:>6.0f}{:>5.0f}", row.timing.median_us, found, row.percent_of_ceiling());
      text += s == 0 ? fmt::format("{:>7}", "")
                     : fmt::format("{:>7.2f}", row_of(steps[s - 1], size).timing.median_us / row.timing.median_us);
    }
    text += "\n";
  }
  return text;
}

std::string sum_legend() {
  std::string text =
      "% of the fastest that anyone read the array, a plain read included; gain: time of the step before / time of "
      "this one\n";
  for (const LadderStep& step : ladder_steps()) text += fmt::format("  {:<21} {}\n", step.name, step.teaches);
  return text + fmt::format("  {:<21} the policy that was tuned for this device and size\n", kHone);
}

}  // namespace hone::benchmarks
