// What tuned_reduce() adds to a launch: CPU time per call on a hit, next to a bare cudaLaunchKernelExC of the same
// kernel with the same arguments, in one run. "added" is the median of the differences between neighbouring batches.
//
// Then the first call of a fresh Session that finds its winner in the cache file: lookup, verification, loading the
// binary and one launch, until the result is there.
//
// usage: dispatch_overhead [FILE.json]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/hone.h>
#include <hone/kernel_family.h>

#include "benchmarks/common/cuda_version.h"
#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"

namespace {

using Clock = std::chrono::steady_clock;
using hone::benchmarks::cuda_version;
using hone::benchmarks::median;
using hone::benchmarks::today;

constexpr int kCallsPerBatch = 20;  // so few that no call waits for room in the queue
constexpr int kBatches = 2000;
constexpr int kFreshSessions = 10;

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

/// A Session that has seen nothing yet; the cache file holds the winner.
double time_first_call_ms(const std::shared_ptr<hone::Device>& device, const float* in, std::int64_t n, float* out,
                          hone::Stream stream) {
  hone::SessionOptions options = hone::SessionOptions::from_environment();
  options.on_miss = hone::MissPolicy::error;
  hone::Session session(device, options);
  const auto start = Clock::now();
  hone::tuned_reduce(session, hone::sum, in, n, out, stream);
  device->synchronize(stream);
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// The launches of a problem's winner as CUDA takes them, prepared once.
class BareCall {
 public:
  BareCall(hone::Device& device, const hone::Problem& problem, const hone::Candidate& candidate,
           std::vector<void*> buffers, void* workspace, hone::Stream stream) {
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
      for (int i = 0; i < launch.arguments.count(); ++i)
        prepared.arguments.push_back(const_cast<void*>(launch.arguments.value(i)));
      prepared_.push_back(std::move(prepared));
    }
  }

  void operator()() {
    for (Prepared& prepared : prepared_)
      cudaLaunchKernelExC(&prepared.config, prepared.kernel, prepared.arguments.data());
  }

 private:
  struct Prepared {
    const void* kernel;
    cudaLaunchConfig_t config;
    std::vector<void*> arguments;
  };
  std::unique_ptr<hone::Module> module_;
  hone::LaunchList launches_;
  std::vector<Prepared> prepared_;
};

bool run(const std::string& json_path) {
  const auto device = hone::Device::open("cuda:0");
  hone::Session session(device);
  const hone::OwnStream own_stream(*device);
  const hone::Stream stream = own_stream.get();

  fmt::print("{}, CUDA {}, {}: CPU time of one call on a hit, median of {} batches of {}\n\n",
             device->facts().name, cuda_version(), today(), kBatches, kCallsPerBatch);
  fmt::print("{:>10}  {:<14} {:>10} {:>14} {:>10}\n", "n", "finish", "bare ns", "tuned_reduce", "added ns");

  nlohmann::ordered_json rows;
  std::vector<double> first_call_ms;
  for (const std::int64_t n : {std::int64_t{1} << 10, std::int64_t{1} << 16, std::int64_t{1} << 20}) {
    const hone::DeviceBuffer in(device, static_cast<std::size_t>(n) * sizeof(float));
    const hone::DeviceBuffer out(device, sizeof(float));
    const hone::DeviceBuffer workspace(device, hone::kWorkspaceBytes);
    device->fill_bytes(in.data(), 0, in.size_bytes(), stream);
    device->fill_bytes(workspace.data(), 0, workspace.size_bytes(), stream);

    const hone::Problem problem = hone::reduce_problem(hone::ReduceOp::sum, hone::DType::f32, n);
    const hone::Winner& winner = *session.prepare(problem).winner;
    BareCall bare(*device, problem, winner.candidate, {in.data(), out.data()}, workspace.data(), stream);
    const auto tuned = [&] { hone::tuned_reduce(session, hone::sum, in.as<float>(), n, out.as<float>(), stream); };

    std::vector<double> bare_ns, tuned_ns, added_ns;
    for (int batch = 0; batch < kBatches; ++batch) {
      bare_ns.push_back(time_batch(*device, stream, [&] { bare(); }));
      tuned_ns.push_back(time_batch(*device, stream, tuned));
      added_ns.push_back(tuned_ns.back() - bare_ns.back());
    }
    for (int fresh = 0; fresh < kFreshSessions; ++fresh)
      first_call_ms.push_back(time_first_call_ms(device, in.as<float>(), n, out.as<float>(), stream));
    const auto& space = problem.family->space();
    const hone::Policy& policy = winner.candidate.policy;
    const std::string finish = value_of(space, policy, "finish");
    const double added = median(added_ns);
    fmt::print("{:>10}  {:<14} {:>10.0f} {:>14.0f} {:>10.0f}\n", n, finish, median(bare_ns), median(tuned_ns), added);
    rows.push_back({{"n", n},
                    {"finish", finish},
                    {"bare_ns", median(bare_ns)},
                    {"tuned_reduce_ns", median(tuned_ns)},
                    {"added_ns", added}});
  }
  fmt::print("\nfirst call of a fresh session, winner from the cache file: {:.2f} ms\n", median(first_call_ms));

  hone::benchmarks::write_json(json_path, {{"device", device->facts().name},
                                           {"cuda", cuda_version()},
                                           {"date", today()},
                                           {"first_call_ms", median(first_call_ms)},
                                           {"rows", rows}});
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::string json_path;
  const auto set_up = [&](hone::benchmarks::CommandLine& command_line) {
    command_line.describe("CPU time of a call of tuned_reduce() on a hit, next to a bare launch of the same kernel");
    command_line.add("FILE", json_path, "write the figures to this JSON file");
  };
  return hone::benchmarks::run_program("dispatch_overhead", argc, argv, set_up, [&] { return run(json_path); });
}
