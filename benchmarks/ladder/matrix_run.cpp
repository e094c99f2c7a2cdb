#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <hone/own_stream.h>
#include <hone/softmax.h>
#include <hone/transpose.h>

#include "benchmarks/common/report.h"
#include "benchmarks/ladder/code_lines.h"
#include "benchmarks/ladder/matrix_steps.h"
#include "benchmarks/ladder/run.h"

namespace hone::benchmarks {
namespace {

constexpr std::string_view kCopy = "copy";

/// Rows of the output that are compared with what the input says, and the most elements of each: the last ones, since
/// there tiles are cut.
constexpr std::int64_t kComparedRows = 16;
constexpr std::int64_t kMostComparedElements = 4096;

/// Elements of a step of the access ladder are moved, and of softmax computed with other roundings.
constexpr double kSoftmaxTolerance = 1e-5;

/// The matrix as a ladder's outputs have it: transposed or not.
struct Shape {
  std::int64_t rows = 0, columns = 0;
};

/// The right value of an element. The orders of the access ladder, except for in_order, are checked by the tests of
/// their kernels only.
using Expected = std::function<double(std::int64_t row, std::int64_t column)>;

std::string fault_of_row(Device& device, const float* out, const Shape& shape, std::int64_t row,
                         const Expected& expected, double tolerance) {
  std::vector<float> found(static_cast<std::size_t>(std::min(shape.columns, kMostComparedElements)));
  const std::int64_t first = shape.columns - static_cast<std::int64_t>(found.size());
  device.copy_to_host(found.data(), out + row * shape.columns + first, found.size() * sizeof(float), nullptr);
  device.synchronize(nullptr);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double right = expected(row, first + static_cast<std::int64_t>(i));
    if (std::fabs(found[i] - right) > tolerance * std::fabs(right))
      return fmt::format("element {} of row {} is {:g} instead of {:g}", first + static_cast<std::int64_t>(i), row,
                         found[i], right);
  }
  return "";
}

/// Softmax of a row, with the largest and the sum of the row that was asked for last.
class ExpectedSoftmax {
 public:
  ExpectedSoftmax(const InputArena& arena, const float* in, std::int64_t columns)
      : arena_(arena), in_(in), columns_(columns) {}

  double operator()(std::int64_t row, std::int64_t column) {
    if (row != row_) {
      row_ = row, most_ = value(0), sum_ = 0;
      for (std::int64_t i = 1; i < columns_; ++i) most_ = std::max(most_, value(i));
      for (std::int64_t i = 0; i < columns_; ++i) sum_ += std::exp(value(i) - most_);
    }
    return std::exp(value(column) - most_) / sum_;
  }

 private:
  double value(std::int64_t column) const {
    return static_cast<double>(arena_.value_at(in_ + row_ * columns_ + column));
  }

  const InputArena& arena_;
  const float* in_;
  std::int64_t columns_, row_ = -1;
  double most_ = 0, sum_ = 0;
};

/// Hone's problem for the ladder; none for copies in another order.
std::optional<Problem> hone_problem(MatrixLadder ladder, std::int64_t rows, std::int64_t columns) {
  if (ladder == MatrixLadder::transpose)
    return transpose_problem({.element_bytes = sizeof(float), .rows = rows, .columns = columns});
  if (ladder == MatrixLadder::softmax) return softmax_problem({}, SoftmaxShape::rows(rows, columns));
  return std::nullopt;
}

}  // namespace

std::vector<LadderRow> run_matrix_ladder(MatrixLadder ladder, Session& session, const InputArena& arena,
                                         const RaceTrack& track, Ceilings& ceilings, std::int64_t rows,
                                         std::int64_t columns, LaunchContext context, const TimingOptions& options) {
  const std::shared_ptr<Device>& device = session.device();
  const std::size_t bytes = static_cast<std::size_t>(rows * columns) * sizeof(float);
  const InputLayout layout = arena.layout(DType::f32, rows * columns, 1, 0, options.most_calls);
  const DeviceBuffer out(device, bytes);
  const OwnStream own_stream(*device);
  const Stream stream = own_stream.get();
  const auto in_of = [&](int turn) { return static_cast<const float*>(arena.at(layout, turn, 0)); };

  std::vector<Contestant> contestants{
      {std::string(kCopy), [&](int turn, Stream on) { device->copy_on_device(out.data(), in_of(turn), bytes, on); }}};
  std::vector<std::unique_ptr<Module>> modules;
  std::vector<int> lines{0};
  const DeviceBuffer scratch(device, matrix_scratch_bytes(matrix_steps(ladder).front(), rows));
  for (const MatrixStep& step : matrix_steps(ladder)) {
    const Unit unit = matrix_unit(step);
    lines.push_back(code_lines(unit));
    const Module& module = *modules.emplace_back(device->load(device->compile(unit), unit.entries));
    contestants.push_back({std::string(step.name), [&](int turn, Stream on) {
                             const MatrixBuffers buffers{in_of(turn), out.as<float>(), scratch.as<float>()};
                             for (const Launch& launch : matrix_launches(step, buffers, rows, columns))
                               device->launch(module.kernel(launch.entry), launch, on);
                           }});
  }
  std::optional<Problem> problem = hone_problem(ladder, rows, columns);
  std::optional<Plan> plan;
  if (problem) {
    problem->launch_context = context;
    session.prepare(*problem);
    plan = session.make_plan(*problem);
    contestants.push_back({std::string(kHone), [&](int turn, Stream on) {
                             void* const buffers[] = {arena.at(layout, turn, 0), out.data()};
                             plan->launch(*problem, buffers, on);
                           }});
    lines.push_back(0);
  }

  const bool is_transposed = ladder == MatrixLadder::transpose;
  const auto input = [&](std::int64_t row, std::int64_t column) {
    return static_cast<double>(arena.value_at(in_of(0) + row * columns + column));
  };
  const Expected same = input;
  Expected expected = same;
  if (is_transposed) expected = [&](std::int64_t row, std::int64_t column) { return input(column, row); };
  if (ladder == MatrixLadder::softmax) expected = ExpectedSoftmax(arena, in_of(0), columns);
  const double tolerance = ladder == MatrixLadder::softmax ? kSoftmaxTolerance : 0;

  std::vector<LadderRow> found;
  for (const Contestant& contestant : contestants) {
    LadderRow& row = found.emplace_back();
    const Shape shape = is_transposed && contestant.name != kCopy ? Shape{columns, rows} : Shape{rows, columns};
    row.step = contestant.name;
    row.size = fmt::format("{} × {}", rows, columns);
    row.bytes = static_cast<std::int64_t>(2 * bytes);
    row.lines = lines[found.size() - 1];
    row.launches = contestant.name == "softmax_three_kernels" ? 3 : 1;
    device->fill_bytes(out.data(), 0, bytes, stream);
    contestant.enqueue(0, stream);
    device->synchronize(stream);
    const bool is_exact = row.step == kCopy || row.step == "in_order" || ladder != MatrixLadder::access;
    for (std::int64_t i = 0; is_exact && row.fault.empty() && i < std::min(kComparedRows, shape.rows); ++i)
      row.fault = fault_of_row(*device, out.as<float>(), shape, shape.rows - 1 - i * (shape.rows - 1) / kComparedRows,
                               row.step == kCopy ? same : expected, row.step == kCopy ? 0 : tolerance);
  }

  const PlainMove& copy = ceilings.fastest(arena.inputs(layout), out.data(), bytes);
  contestants.push_back({copy.name, [&](int turn, Stream on) { copy.enqueue(in_of(turn), out.data(), on); }});
  add_timings_to(found, track.time(stream, {context}, contestants, bytes, options));
  return found;
}

std::string matrix_legend(MatrixLadder ladder) {
  std::string text =
      "bytes read and written once; % of the fastest that anyone moved them, a plain copy included; gain: time of the "
      "step before / time of this one\n";
  text += fmt::format("  {:<21} the device's own copy of the matrix\n", kCopy);
  for (const MatrixStep& step : matrix_steps(ladder)) text += fmt::format("  {:<21} {}\n", step.name, step.teaches);
  if (ladder == MatrixLadder::access) return text;
  return text + fmt::format("  {:<21} the policy that was tuned for this device and size\n", kHone);
}

}  // namespace hone::benchmarks
