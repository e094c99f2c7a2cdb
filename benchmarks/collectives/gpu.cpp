#include "benchmarks/collectives/gpu.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <mutex>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/nccl_communicator.h>

#include "benchmarks/common/report.h"

namespace hone::benchmarks {
namespace {

constexpr std::int64_t kPattern = 1 << 20;
constexpr int kMostResults = 1 << 16;
constexpr int kCallsOfGraph = 100;
const ReduceSpec kSum{.op = ReduceOp::sum, .dtype = DType::f32};

RunOptions for_gpu(RunOptions options, int gpu) {
  options.device = fmt::format("cuda:{}", gpu);
  return options;
}

}  // namespace

struct Meeting::State {
  explicit State(int ranks) : barrier(ranks) {}
  std::barrier<> barrier;
  mutable std::mutex mutex;
  std::string failure;
};

Meeting::Meeting(int ranks) : state_(std::make_unique<State>(ranks)) {}
Meeting::~Meeting() = default;

void Meeting::arrive() {
  state_->barrier.arrive_and_wait();
  const std::string why = failure();
  state_->barrier.arrive_and_wait();  // so that all see the same
  if (!why.empty()) throw std::runtime_error(why);
}

void Meeting::fail(const std::string& why) {
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->failure.empty()) state_->failure = why;
  }
  state_->barrier.arrive_and_drop();
}

std::string Meeting::failure() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->failure;
}

Gpu::Gpu(int rank, const Nccl& nccl, ncclComm* communicator, const RunOptions& options, CommunicatorOptions exchange,
         std::int64_t elements)
    : rank_(rank),
      nccl_(nccl),
      communicator_(communicator),
      session_(make_session(for_gpu(options, rank))),
      device_(session_.device()),
      stream_(*device_),
      ranks_(nccl_communicator(communicator, exchange)),
      in_(device_, static_cast<std::size_t>(elements) * sizeof(float)),
      scratch_(device_, in_.size_bytes()),
      out_(device_, kMostResults * sizeof(float)) {
  std::mt19937 random(static_cast<unsigned>(rank));
  std::vector<float> pattern(static_cast<std::size_t>(std::min(elements, kPattern)));
  for (float& value : pattern) value = std::uniform_real_distribution<float>(-1, 1)(random);
  const Stream stream = stream_.get();
  device_->copy_to_device(in_.data(), pattern.data(), pattern.size() * sizeof(float), stream);
  for (std::int64_t at = kPattern; at < elements; at += kPattern)
    device_->copy_on_device(in_.as<float>() + at, in_.data(),
                            static_cast<std::size_t>(std::min(kPattern, elements - at)) * sizeof(float), stream);
  device_->copy_on_device(scratch_.data(), in_.data(), in_.size_bytes(), stream);
  device_->synchronize(stream);
}

void Gpu::enqueue(Contender contender, std::int64_t n, float* out, Stream stream) {
  const auto count = static_cast<std::size_t>(n);
  switch (contender) {
    case Contender::local: tuned_reduce(session_, kSum, in_.data(), n, out, stream); return;
    case Contender::hone: tuned_all_reduce(session_, *ranks_, kSum, in_.data(), n, out, stream); return;
    case Contender::nccl_of_one: nccl_.all_reduce(out, out, 1, communicator_, stream); return;
    case Contender::nccl_partials:
      tuned_reduce(session_, kSum, in_.data(), n, out, stream);
      nccl_.all_reduce(out, out, 1, communicator_, stream);
      return;
    case Contender::nccl_of_arrays: nccl_.all_reduce(in_.data(), scratch_.data(), count, communicator_, stream); return;
  }
}

double Gpu::time_us(Contender contender, std::int64_t n, LaunchContext context, int calls, int rounds,
                    Meeting& meeting) {
  const Stream stream = stream_.get();
  for (const LaunchContext each : {LaunchContext::stream, LaunchContext::graph})
    prepare_all_reduce(session_, *ranks_, kSum, n, kMaxAlignment, each);
  const auto work = [&] {
    for (int i = 0; i < calls; ++i) enqueue(contender, n, out_.as<float>(), stream);
  };
  meeting.arrive();
  work();  // allocates and connects
  device_->synchronize(stream);
  meeting.arrive();
  std::unique_ptr<CapturedWork> graph;
  if (context == LaunchContext::graph) graph = device_->capture(stream, work);
  std::vector<double> samples(static_cast<std::size_t>(rounds));
  for (double& sample : samples) {
    meeting.arrive();
    sample = device_->time_us(stream, [&] {
      if (graph) device_->replay(*graph, stream);
      else work();
    }) / calls;
  }
  meeting.arrive();
  return median(samples);
}

std::vector<float> Gpu::results(std::int64_t n, LaunchContext context, int repetitions, Meeting& meeting) {
  const Stream stream = stream_.get();
  const bool is_graph = context == LaunchContext::graph;
  const int batch = is_graph ? kCallsOfGraph : std::min(repetitions, kMostResults);
  prepare_all_reduce(session_, *ranks_, kSum, n, kMaxAlignment, context);
  const auto work = [&] {
    for (int i = 0; i < batch; ++i) enqueue(Contender::hone, n, out_.as<float>() + i, stream);
  };
  meeting.arrive();
  std::unique_ptr<CapturedWork> graph;
  if (is_graph) graph = device_->capture(stream, work);
  meeting.arrive();
  std::vector<float> found;
  while (static_cast<int>(found.size()) < repetitions) {
    std::vector<float> some(static_cast<std::size_t>(batch));
    device_->fill_bytes(out_.data(), 0xff, some.size() * sizeof(float), stream);
    if (graph) device_->replay(*graph, stream);
    else work();
    device_->copy_to_host(some.data(), out_.data(), some.size() * sizeof(float), stream);
    device_->synchronize(stream);
    found.insert(found.end(), some.begin(), some.end());
  }
  meeting.arrive();
  return found;
}

double Gpu::local_sum(std::int64_t n) {
  return tuned_reduce_and_wait(session_, sum, in_.as<float>(), n, stream_.get());
}

std::string Gpu::disagreement(std::int64_t n) {
  const std::unique_ptr<Communicator> checked = nccl_communicator(communicator_, {.checked = true});
  const ReduceSpec asked{.op = rank_ == 1 ? ReduceOp::max : ReduceOp::sum};
  try {
    tuned_all_reduce(session_, *checked, asked, in_.data(), n, out_.data(), stream_.get());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string Gpu::desertion(double& waited_ms) {
  const auto begin = std::chrono::steady_clock::now();
  std::string message;
  {
    // The exchange never ends, and so its memory cannot be freed before the abort.
    std::unique_ptr<Communicator> checked =
        nccl_communicator(communicator_, {.checked = true, .timeout = std::chrono::milliseconds(1000)});
    try {
      if (rank_ != 1) tuned_all_reduce(session_, *checked, kSum, in_.data(), 1024, out_.data(), stream_.get());
    } catch (const Error& error) {
      message = error.what();
    }
    waited_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    nccl_.abort(communicator_);
  }
  return message;
}

}  // namespace hone::benchmarks
