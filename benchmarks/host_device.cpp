// Measures the cost of the host device: a meeting of threads, and the sum of n floats with a tuned policy. In a build
// with sanitizers the same figures say how much slower the checks make it (host_device_slowdown makes the table).
//
// Every figure is the smallest of several, since other work on the machine only adds.
#include <hone/device.h>
#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/kernel_family.h>
#include <hone/session.h>
#include <hone/tuned_reduce.h>

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

/// Long enough to outlast what others do on the machine.
constexpr int kLeastRepeats = 15;
constexpr std::chrono::milliseconds kLeastTime(500);

/// Processor time of the calling thread or of the whole process, in nanoseconds: what other processes do does not
/// count. A launch of one block runs on the calling thread.
double cpu_ns(clockid_t whose) {
  timespec time{};
  clock_gettime(whose, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

template <class Work>
double least(const Work& work) {
  double best = std::numeric_limits<double>::infinity();
  const Clock::time_point end = Clock::now() + kLeastTime;
  for (int i = 0; i < kLeastRepeats || Clock::now() < end; ++i) best = std::min(best, work());
  return best;
}

/// A line that host_device_slowdown reads: name, value, unit.
void print_figure(const std::string& name, double value, std::string_view unit) {
  fmt::print("{:<16} {:>10.2f} {}\n", name, value, unit);
}

/// Nanoseconds per thread of a block and meeting.
double meeting_ns(hone::Device& device, const std::string& meeting, unsigned threads) {
  constexpr int kMeetings = 200;
  const hone::Unit unit{"meetings",
                        "extern \"C\" __global__ void meet(int* out, int count) {\n  unsigned v = threadIdx.x;\n"
                        "  for (int i = 0; i < count; ++i) " + meeting + ";\n  out[threadIdx.x] = v;\n}\n",
                        {}, {"meet"}};
  const auto module = device.load(device.compile(unit), unit.entries);
  std::vector<int> out(threads);
  const auto time = [&](int count) {
    hone::Launch launch;
    launch.block.x = threads;
    launch.arguments.push(out.data());
    launch.arguments.push(count);
    const double begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    device.launch(module->kernel(0), launch, nullptr);
    return cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
  };
  // The difference of two counts leaves out what a launch costs.
  const double few = least([&] { return time(kMeetings / 4); }), many = least([&] { return time(kMeetings); });
  return (many - few) / (kMeetings - kMeetings / 4) / threads;
}

void print_meetings(hone::Device& device) {
  const std::pair<const char*, const char*> meetings[] = {{"barrier", "__syncthreads()"},
                                                          {"shuffle", "v += __shfl_xor_sync(0xffffffffu, v, 1)"}};
  for (const auto& [name, meeting] : meetings) {
    for (const unsigned threads : {32u, 256u, 1024u})
      print_figure(fmt::format("{}_{}", name, threads), meeting_ns(device, meeting, threads),
                   "ns per thread, in blocks of so many");
  }
}

/// The sum of n floats: what tuning chooses for it, or what the command line says.
hone::Candidate candidate_for(const std::shared_ptr<hone::Device>& device, const hone::DeviceBuffer& in, std::int64_t n,
                              const std::string& policy, std::int64_t max_blocks) {
  if (!policy.empty()) {
    const auto parsed = hone::reduce_family().space().parse(policy);
    if (!parsed) throw hone::Error(hone::ErrorCode::invalid_argument, "'" + policy + "' is no policy of reduce");
    return {*parsed, {max_blocks}};
  }
  hone::SessionOptions options;
  options.on_miss = hone::MissPolicy::tune;
  options.tune_budget = std::chrono::seconds(30);
  hone::Session session(device, options);
  const hone::DeviceBuffer out(device, sizeof(float));
  return hone::tuned_reduce(session, hone::sum, in.as<const float>(), n, out.as<float>(), nullptr).winner->candidate;
}

void print_sum(const std::shared_ptr<hone::Device>& device, std::int64_t n, const std::string& policy,
               std::int64_t max_blocks) {
  const hone::KernelFamily& family = hone::reduce_family();
  hone::DeviceBuffer in(device, static_cast<std::size_t>(n) * sizeof(float)), out(device, sizeof(float));
  std::fill_n(in.as<float>(), n, 1.0f);
  const hone::Candidate candidate = candidate_for(device, in, n, policy, max_blocks);
  const hone::Problem problem = hone::reduce_problem(hone::ReduceOp::sum, hone::DType::f32, n);
  hone::Unit unit = family.unit(problem, candidate.policy);
  unit.headers.assign(family.sources().begin(), family.sources().end());
  const auto module = device->load(device->compile(unit), unit.entries);
  const std::size_t workspace_bytes = std::max<std::size_t>(1, family.workspace_bytes(problem, candidate));
  const hone::DeviceBuffer workspace(device, workspace_bytes);
  std::fill_n(workspace.as<char>(), workspace_bytes, '\0');
  void* const buffers[] = {in.data(), out.data()};
  const auto call = [&] {
    hone::LaunchList launches;
    family.encode(problem, candidate, buffers, workspace.data(), launches);
    for (const hone::Launch& launch : launches) device->launch(module->kernel(launch.entry), launch, nullptr);
  };
  call();
  if (*out.as<float>() != static_cast<float>(n)) throw hone::Error(hone::ErrorCode::device_failed, "the sum is wrong");
  const double wall_us = least([&] { return device->time_us(nullptr, call); });
  const double processor_us = least([&] {
    const double begin_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    call();
    return (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / 1e3;
  });
  const int sms = device->facts().sm_count;
  const double elements = static_cast<double>(n);
  print_figure("sum", processor_us * 1e3 / elements, "ns of processor time per element");
  print_figure("sum_wall", elements / wall_us, fmt::format("M elements/s on {} SMs", sms));
  print_figure("sum_processor", elements / (processor_us / sms),
               fmt::format("M elements/s, were {} processors ours", sms));
  fmt::print("sum of {} f32 by: {}\n", n, family.space().to_string(candidate.policy));
  fmt::print("blocks: {}\n", candidate.geometry.max_blocks);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int log2_n = argc > 1 ? std::atoi(argv[1]) : 24;
    const std::int64_t max_blocks = argc > 3 ? std::atoll(argv[3]) : 0;
    if (argc == 3 || argc > 4 || log2_n < 1 || log2_n > 24 || (argc == 4 && max_blocks < 1)) {
      fmt::print(stderr,
                 "usage: host_device_figures [LOG2_N [POLICY BLOCKS]]    LOG2_N is 1 to 24, 24 when left out;\n"
                 "  POLICY is as hone inspect shows it; when left out, the sum is tuned first\n");
      return 2;
    }
    const auto device = hone::Device::open("host");
    print_meetings(*device);
    print_sum(device, std::int64_t{1} << log2_n, argc > 2 ? argv[2] : "", max_blocks);
  } catch (const hone::Error& error) {
    fmt::print(stderr, "host_device_figures: {}\n", error.what());
    return 1;
  }
}
