// What the host device costs: a meeting of threads, and the reduction of 2^24 floats. In a build with sanitizers the
// same figures say how much slower the checks make it.
//
// Every figure is the smallest of several, since other work on the machine only adds.
#include <hone/device.h>
#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/session.h>
#include <hone/tuned_reduce.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

namespace {

constexpr int kRepeats = 15;

/// Processor time of the calling thread or of the whole process, in nanoseconds: what other processes do does not count.
/// A launch of one block runs on the calling thread.
double cpu_ns(clockid_t whose) {
  timespec time{};
  clock_gettime(whose, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

template <class Work>
double least(const Work& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepeats; ++i) best = std::min(best, work());
  return best;
}

/// Nanoseconds per thread of a block and meeting.
double meeting_ns(hone::Device& device, const std::string& meeting, unsigned threads) {
  constexpr int kMeetings = 200;
  const hone::Unit unit{"meetings",
                        "extern \"C\" __global__ void meet(int* out, int count) {\n  int v = threadIdx.x;\n"
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
  fmt::print("{:<28}{:>12}{:>12}{:>12}\n", "ns per thread and meeting", 32, 256, 1024);
  for (const char* meeting : {"__syncthreads()", "v += __shfl_xor_sync(0xffffffffu, v, 1)"}) {
    fmt::print("{:<28}", std::string(meeting).substr(0, 27));
    for (const unsigned threads : {32u, 256u, 1024u}) fmt::print("{:>12.1f}", meeting_ns(device, meeting, threads));
    fmt::print("\n");
  }
}

/// Tunes the sum of n floats, then times the winner.
void print_reduce(const std::shared_ptr<hone::Device>& device, std::int64_t n) {
  hone::SessionOptions options;
  options.on_miss = hone::MissPolicy::tune;
  options.tune_budget = std::chrono::seconds(30);
  hone::Session session(device, options);
  hone::DeviceBuffer in(device, static_cast<std::size_t>(n) * sizeof(float)), out(device, sizeof(float));
  std::fill_n(in.as<float>(), n, 1.0f);
  const auto call = [&] {
    return hone::tuned_reduce(session, hone::sum, in.as<const float>(), n, out.as<float>(), nullptr);
  };
  const hone::Choice choice = call();
  double us = std::numeric_limits<double>::infinity(), cpu_us = us;
  for (int i = 0; i < kRepeats; ++i) {
    const double begin_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    us = std::min(us, device->time_us(nullptr, [&] { call(); }));
    cpu_us = std::min(cpu_us, (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / 1e3);
  }
  const int sms = device->facts().sm_count;
  const double elements = static_cast<double>(n);
  fmt::print("sum of {} f32 on {} SMs: {:.0f} µs, {:.0f} M elements/s; by processor time {:.0f} M elements/s\n"
             "  {}, up to {} blocks\n", n, sms, us, elements / us, elements / (cpu_us / sms),
             hone::reduce_family().space().to_string(choice.winner->candidate.variant),
             choice.winner->candidate.geometry.max_blocks);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int log2_n = argc > 1 ? std::atoi(argv[1]) : 24;
    if (argc > 2 || log2_n < 1 || log2_n > 34) {
      fmt::print(stderr, "usage: host_device_figures [LOG2_N]    (1 to 34, default 24)\n");
      return 2;
    }
    const auto device = hone::Device::open("host");
    print_meetings(*device);
    print_reduce(device, std::int64_t{1} << log2_n);
  } catch (const hone::Error& error) {
    fmt::print(stderr, "host_device: {}\n", error.what());
    return 1;
  }
}
