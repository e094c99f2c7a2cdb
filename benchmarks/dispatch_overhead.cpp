// Measures what tuned_reduce() adds to a launch: CPU time per call on a hit, next to a bare launch of the same kernel
// with the same arguments and attributes, in one run: cudaLaunchKernelExC, or Device::launch() of the host device,
// which runs the kernel. "added" is the median of the differences between neighbouring batches. Rows differ in n, in
// the plans that the session has in memory, and in the threads that call it at once, each with its own stream and
// arrays.
#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>
#include <hone/kernel_family.h>

#include "benchmarks/common/figures.h"
#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"

namespace {

using Clock = std::chrono::steady_clock;
using hone::benchmarks::cuda_version;
using hone::benchmarks::median;
using hone::benchmarks::quantile;
using hone::benchmarks::Timing;
using hone::benchmarks::today;

constexpr int kCallsPerBatch = 20;  // so few that no call waits for room in the queue
constexpr std::int64_t kMiddle = 1 << 16;  ///< elements of the rows that differ in plans or threads

/// "last_block": what a policy has for a parameter of its space.
std::string value_of(const hone::ParameterSpace& space, const hone::Policy& policy, std::string_view name) {
  for (std::size_t i = 0; i < space.parameters().size(); ++i)
    if (space.parameters()[i].name == name) return space.parameters()[i].spell(policy[static_cast<int>(i)]);
  return "";
}

/// Nanoseconds of CPU time per call; the queue is empty before and after.
template <class Call>
double time_batch(hone::Device& device, hone::Stream stream, Call call) {
  device.synchronize(stream);
  const auto start = Clock::now();
  for (int i = 0; i < kCallsPerBatch; ++i) call();
  const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
  device.synchronize(stream);
  return elapsed.count() / kCallsPerBatch;
}

/// The launches of a problem's winner as CUDA takes them, prepared once.
class BareCall {
 public:
  BareCall(hone::Device& device, const hone::Problem& problem, const hone::Candidate& candidate,
           std::vector<void*> buffers, void* workspace, hone::Stream stream)
      : device_(device), is_cuda_(device.facts().kind == "cuda"), stream_(stream) {
    hone::Unit unit = problem.family->unit(problem, candidate.policy);
    unit.headers.assign(problem.family->sources().begin(), problem.family->sources().end());
    module_ = device.load(device.compile(unit), unit.entries);
    problem.family->encode(problem, candidate, buffers, workspace, launches_);
    for (const hone::Launch& launch : launches_) {
      Prepared prepared{.kernel = module_->kernel(launch.entry).handle, .config = {}, .arguments = {}};
      prepared.config.gridDim = {launch.grid.x, launch.grid.y, launch.grid.z};
      prepared.config.blockDim = {launch.block.x, launch.block.y, launch.block.z};
      prepared.config.dynamicSmemBytes = launch.dynamic_smem_bytes;
      prepared.config.stream = stream;
      add_attributes(prepared, launch, device.facts());
      for (int i = 0; i < launch.arguments.count(); ++i)
        prepared.arguments.push_back(const_cast<void*>(launch.arguments.value(i)));
      prepared_.push_back(std::move(prepared));
    }
    for (Prepared& prepared : prepared_) prepared.config.attrs = prepared.attributes.data();
  }

  void operator()() {
    if (is_cuda_)
      for (Prepared& prepared : prepared_)
        cudaLaunchKernelExC(&prepared.config, prepared.kernel, prepared.arguments.data());
    else
      for (const hone::Launch& launch : launches_) device_.launch(module_->kernel(launch.entry), launch, stream_);
  }

 private:
  struct Prepared {
    const void* kernel;
    cudaLaunchConfig_t config;
    std::vector<void*> arguments;
    std::array<cudaLaunchAttribute, 2> attributes{};
  };

  static void add_attributes(Prepared& prepared, const hone::Launch& launch, const hone::DeviceFacts& facts) {
    if (launch.dependent_launch && facts.has_dependent_launch) {
      cudaLaunchAttribute& attribute = prepared.attributes[prepared.config.numAttrs++];
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
    }
    if (launch.cluster_blocks > 1) {
      cudaLaunchAttribute& attribute = prepared.attributes[prepared.config.numAttrs++];
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {launch.cluster_blocks, 1, 1};
    }
  }

  hone::Device& device_;
  bool is_cuda_;
  hone::Stream stream_;
  std::unique_ptr<hone::Module> module_;
  hone::LaunchList launches_;
  std::vector<Prepared> prepared_;
};

/// A thread of the benchmark: it sums n floats in a stream of its own, both ways.
class Caller {
 public:
  Caller(hone::Session& session, std::int64_t n)
      : session_(session),
        device_(session.device()),
        n_(n),
        stream_(*device_),
        in_(device_, static_cast<std::size_t>(n) * sizeof(float)),
        out_(device_, sizeof(float)),
        workspace_(device_, hone::kWorkspaceBytes),
        problem_(hone::reduce_problem(hone::ReduceOp::sum, hone::DType::f32, n)),
        winner_(*session.prepare(problem_).winner),
        bare_(*device_, problem_, winner_.candidate, {in_.data(), out_.data()}, workspace_.data(), stream_.get()) {
    device_->fill_bytes(in_.data(), 0, in_.size_bytes(), stream_.get());
    device_->fill_bytes(workspace_.data(), 0, workspace_.size_bytes(), stream_.get());
  }

  std::string finish() const { return value_of(problem_.family->space(), winner_.candidate.policy, "finish"); }

  /// Nanoseconds of a call.
  double time_bare() { return time_batch(*device_, stream_.get(), [&] { bare_(); }); }
  double time_tuned() {
    return time_batch(*device_, stream_.get(), [&] {
      hone::tuned_reduce(session_, hone::sum, in_.as<float>(), n_, out_.as<float>(), stream_.get());
    });
  }

 private:
  hone::Session& session_;
  std::shared_ptr<hone::Device> device_;
  std::int64_t n_;
  hone::OwnStream stream_;
  hone::DeviceBuffer in_, out_, workspace_;
  hone::Problem problem_;
  hone::Winner winner_;
  BareCall bare_;
};

/// Plans of a kernel with three extents, each of a class of its own: there are 22³ classes of extents up to 2^21. One
/// tuning's winner serves them all, so that none of them is compiled, measured or verified for itself.
class ManyPlans {
 public:
  explicit ManyPlans(hone::Session& session) : session_(session) {}

  /// Installs plans until there are `count`, that of the sum included.
  void grow_to(int count) {
    std::vector<hone::Problem> served;
    for (; made_ + 1 < count; ++made_) served.push_back(problem(made_ + 1));
    if (served.empty()) return;
    if (!tuning_.winner) tuning_ = session_.tune(problem(0), {.budget = std::chrono::milliseconds(50)});
    session_.adopt(tuning_, served);
  }

 private:
  static constexpr int kSizes = 22;

  hone::Problem problem(int number) const {
    const auto power = [](int exponent) { return std::int64_t{1} << exponent; };
    return kernel_.problem(
        {power(number % kSizes), power(number / kSizes % kSizes), power(number / (kSizes * kSizes))});
  }

  hone::Session& session_;
  hone::TunableKernel kernel_{{
      .source = "extern \"C\" __global__ void touch(float* y, int a, int b, int c) {\n"
                "  if (a + b + c < 0) y[block_threads] = 0;\n}\n",
      .parameters = {hone::ordinal("block_threads", {64})},
      .extents = {"a", "b", "c"},
      .arguments = {hone::out<float>("y", "64"), hone::extent<int>("a"), hone::extent<int>("b"),
                    hone::extent<int>("c")},
      .elements_per_block = {"a", "b", "c"},  // one block, whatever they are
  }};
  hone::Tuning tuning_;
  int made_ = 0;
};

struct Row {
  std::int64_t n;
  int plans, threads;
};

/// Returns the median and spread of times in nanoseconds.
Timing timing_of(const std::vector<double>& ns) {
  return {.median_us = median(ns) / 1000,
          .spread_us = (quantile(ns, 0.75) - quantile(ns, 0.25)) / 2000,
          .batches = static_cast<int>(ns.size())};
}

nlohmann::ordered_json measure(hone::Session& session, const Row& row, int batches) {
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < row.threads; ++i) callers.push_back(std::make_unique<Caller>(session, row.n));
  std::vector<std::vector<double>> bare_ns(callers.size()), tuned_ns(callers.size()), added_ns(callers.size());
  std::barrier together(row.threads);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < callers.size(); ++i)
    threads.emplace_back([&, i] {
      for (int batch = 0; batch < std::max(1, batches / row.threads); ++batch) {
        together.arrive_and_wait();
        bare_ns[i].push_back(callers[i]->time_bare());
        together.arrive_and_wait();
        tuned_ns[i].push_back(callers[i]->time_tuned());
        added_ns[i].push_back(tuned_ns[i].back() - bare_ns[i].back());
      }
    });
  threads.clear();
  const auto of_all = [](const std::vector<std::vector<double>>& of_threads) {
    std::vector<double> all;
    for (const std::vector<double>& each : of_threads) all.insert(all.end(), each.begin(), each.end());
    return all;
  };
  const Timing bare = timing_of(of_all(bare_ns)), tuned = timing_of(of_all(tuned_ns));
  const double added = median(of_all(added_ns));
  const std::string finish = callers.front()->finish();
  fmt::print("{:>10}  {:<14} {:>7} {:>8} {:>10.0f} {:>14.0f} {:>10.0f}\n", row.n, finish, row.plans, row.threads,
             1000 * bare.median_us, 1000 * tuned.median_us, added);
  std::fflush(stdout);
  nlohmann::ordered_json json{
      {"n", row.n}, {"finish", finish}, {"plans", row.plans}, {"threads", row.threads}, {"added_ns", added}};
  hone::benchmarks::add_timings(json, {}, tuned, {{"bare launch", bare}});
  return json;
}

struct Options {
  std::string device = "cuda:0", json;
  int most_plans = 10'000, batches = 2000;
};

bool run(const Options& options) {
  const auto device = hone::Device::open(options.device);
  hone::SessionOptions session_options;  // without a cache file
  session_options.on_miss = hone::MissPolicy::heuristic;
  hone::Session session(device, session_options);

  fmt::print("{}, CUDA {}, {}: CPU time of one call on a hit, median of {} batches of {}\n\n",
             device->facts().name, cuda_version(), today(), options.batches, kCallsPerBatch);
  fmt::print("{:>10}  {:<14} {:>7} {:>8} {:>10} {:>14} {:>10}\n", "n", "finish", "plans", "threads", "bare ns",
             "tuned_reduce", "added ns");

  ManyPlans plans(session);
  nlohmann::ordered_json json =
      hone::benchmarks::run_json(device->facts(), 0, {"n", "plans", "threads", "context", "company"});
  for (const Row& row : {Row{1 << 10, 1, 1}, Row{kMiddle, 1, 1}, Row{1 << 20, 1, 1}, Row{kMiddle, 1, 4},
                         Row{kMiddle, 1, 16}, Row{kMiddle, 1000, 1}, Row{kMiddle, 10'000, 1},
                         Row{kMiddle, 10'000, 16}}) {
    if (row.plans > options.most_plans) continue;
    const auto start = Clock::now();
    plans.grow_to(row.plans);
    json["plans_seconds"].emplace(std::to_string(row.plans),
                                  std::chrono::duration<double>(Clock::now() - start).count());
    json["rows"].push_back(measure(session, row, options.batches));
    hone::benchmarks::write_json(options.json, json);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto set_up = [&](hone::benchmarks::CommandLine& command_line) {
    command_line.describe("CPU time of a call of tuned_reduce() on a hit, next to a bare launch of the same kernel");
    command_line.add("--device", options.device,
                     "cuda:0, …; on the host device, calls run the kernel (default: cuda:0)");
    command_line.add("--plans", options.most_plans, "no row with more plans in memory (default: 10000)");
    command_line.add("--batches", options.batches, "of each row, for all threads together (default: 2000)");
    command_line.add("--json", options.json, "write the figures to this file");
  };
  return hone::benchmarks::run_program("dispatch_overhead", argc, argv, set_up, [&] { return run(options); });
}
