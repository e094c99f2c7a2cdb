#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include <fmt/format.h>

#include <hone/own_stream.h>
#include <hone/transpose.h>

#include "benchmarks/common/report.h"
#include "benchmarks/ladder/run.h"
#include "benchmarks/ladder/matrix_steps.h"

namespace hone::benchmarks {
namespace {

constexpr std::string_view kCopy = "copy";

/// Rows of an output that are compared with the input.
constexpr std::int64_t kComparedRows = 16;
constexpr std::int64_t kMostComparedElements = 4096;

/// What the transposed row `column` of the matrix at `in` is wrong in; "" if in nothing.
std::string fault_of_row(Device& device, const InputArena& arena, const float* in, const float* out, std::int64_t rows,
                         std::int64_t columns, std::int64_t column) {
  std::vector<float> found(static_cast<std::size_t>(std::min(rows, kMostComparedElements)));
  // The end of a row is where tiles are cut.
  const std::int64_t first = rows - static_cast<std::int64_t>(found.size());
  device.copy_to_host(found.data(), out + column * rows + first, found.size() * sizeof(float), nullptr);
  device.synchronize(nullptr);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::int64_t row = first + static_cast<std::int64_t>(i);
    const auto expected = static_cast<float>(arena.value_at(in + row * columns + column));
    if (found[i] != expected)
      return fmt::format("element {} of row {} is {:g} instead of {:g}", row, column, found[i], expected);
  }
  return "";
}

}  // namespace

std::vector<LadderRow> run_transpose_ladder(Session& session, const InputArena& arena, const CacheFlush& flush,
                                            std::int64_t rows, std::int64_t columns, LaunchContext context,
                                            const TimingOptions& options) {
  const std::shared_ptr<Device>& device = session.device();
  const std::size_t bytes = static_cast<std::size_t>(rows * columns) * sizeof(float);
  const InputLayout layout = arena.layout(DType::f32, rows * columns, 1, false, options.most_calls);
  const DeviceBuffer out(device, bytes);
  const OwnStream own_stream(*device);
  const Stream stream = own_stream.get();
  const auto in_of = [&](int turn) { return static_cast<const float*>(arena.at(layout, turn, 0)); };

  std::vector<Contestant> contestants{
      {std::string(kCopy), [&](int turn, Stream on) { device->copy_on_device(out.data(), in_of(turn), bytes, on); }}};
  std::vector<std::unique_ptr<Module>> modules;
  for (const TransposeStep& step : transpose_steps()) {
    const Unit unit = transpose_unit(step);
    const Module& module = *modules.emplace_back(device->load(device->compile(unit), unit.entries));
    contestants.push_back({std::string(step.name), [&](int turn, Stream on) {
                             device->launch(module.kernel(0),
                                            transpose_launch(in_of(turn), out.as<float>(), rows, columns), on);
                           }});
  }
  Problem problem = transpose_problem({.element_bytes = sizeof(float), .rows = rows, .columns = columns});
  problem.launch_context = context;
  session.prepare(problem);
  const Plan plan = session.make_plan(problem);
  contestants.push_back({std::string(kHone), [&](int turn, Stream on) {
                           void* const buffers[] = {arena.at(layout, turn, 0), out.data()};
                           plan.launch(problem, buffers, on);
                         }});

  std::vector<LadderRow> found;
  for (const Contestant& contestant : contestants) {
    LadderRow& row = found.emplace_back();
    row.step = contestant.name;
    row.size = fmt::format("{} × {}", rows, columns);
    row.bytes = static_cast<std::int64_t>(2 * bytes);
    row.launches = 1;
    device->fill_bytes(out.data(), 0, bytes, stream);
    contestant.enqueue(0, stream);
    device->synchronize(stream);
    for (std::int64_t i = 0; row.step != kCopy && row.fault.empty() && i < std::min(kComparedRows, columns); ++i)
      row.fault = fault_of_row(*device, arena, in_of(0), out.as<float>(), rows, columns,
                               columns - 1 - i * (columns - 1) / kComparedRows);
  }

  const std::function<void(Stream)> make_cold = [&](Stream on) {
    if (flush.is_needed_for(bytes)) flush.enqueue(on);
  };
  const std::vector<Timing> timings = time_interleaved(*device, stream, context, contestants, make_cold, options);
  for (std::size_t i = 0; i < found.size(); ++i) {
    found[i].timing = timings[i];
    found[i].ceiling_gbps = gbps(static_cast<double>(2 * bytes), timings[0].median_us);
  }
  return found;
}

std::string transpose_legend() {
  std::string text = "bytes read and written; % of the copy; gain: time of the step before / time of this one\n";
  text += fmt::format("  {:<15} the device's own copy of the matrix\n", kCopy);
  for (const TransposeStep& step : transpose_steps()) text += fmt::format("  {:<15} {}\n", step.name, step.teaches);
  return text + fmt::format("  {:<15} the policy that was tuned for this device and size\n", kHone);
}

}  // namespace hone::benchmarks
