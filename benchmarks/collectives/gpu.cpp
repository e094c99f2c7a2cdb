#include "benchmarks/collectives/gpu.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <hone/error.h>
#include <hone/nccl_communicator.h>
#include <hone/softmax.h>

#include "benchmarks/common/report.h"

namespace hone::benchmarks {
namespace {

constexpr std::int64_t kPattern = 1 << 20;
constexpr int kMostResults = 1 << 16;
constexpr int kCallsOfGraph = 100;

/// NCCL takes the current GPU. Rank 0 makes the id.
ncclComm* connect(int rank, const Nccl& nccl, Meeting& meeting) {
  if (cudaSetDevice(rank) != cudaSuccess) throw std::runtime_error("this GPU cannot be made the current one");
  if (rank == 0) meeting.nccl_id = nccl.unique_id().bytes;
  meeting.arrive();
  return nccl.init_rank(meeting.ranks(), {meeting.nccl_id}, rank);
}

RunOptions for_gpu(RunOptions options, int gpu) {
  options.device = fmt::format("cuda:{}", gpu);
  return options;
}

}  // namespace

Gpu::Gpu(int rank, const Nccl& nccl, Meeting& meeting, const RunOptions& options, CommunicatorOptions exchange,
         Numerics numerics, std::int64_t elements)
    : sum_{.op = ReduceOp::sum, .dtype = DType::f32, .numerics = numerics},
      softmax_{.dtype = DType::f32, .numerics = numerics},
      rank_(rank),
      nccl_(nccl),
      meeting_(meeting),
      session_(make_session(for_gpu(options, rank))),
      device_(session_.device()),
      communicator_(connect(rank, nccl, meeting)),
      stream_(*device_),
      ranks_(nccl_communicator(communicator_, exchange)),
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
    case Contender::local: tuned_reduce(session_, sum_, in_.data(), n, out, stream); return;
    case Contender::hone: tuned_all_reduce(session_, *ranks_, sum_, in_.data(), n, out, stream); return;
    case Contender::nccl_of_one: nccl_.all_reduce(out, out, 1, communicator_, stream); return;
    case Contender::nccl_partials:
      tuned_reduce(session_, sum_, in_.data(), n, out, stream);
      nccl_.all_reduce(out, out, 1, communicator_, stream);
      return;
    case Contender::nccl_of_arrays: nccl_.all_reduce(in_.data(), scratch_.data(), count, communicator_, stream); return;
  }
}

double Gpu::time_us(const std::function<void()>& call, const Batches& batches) {
  const Stream stream = stream_.get();
  const auto work = [&] {
    for (int i = 0; i < batches.calls; ++i) call();
  };
  meeting_.arrive();
  work();  // allocates and connects
  device_->synchronize(stream);
  meeting_.arrive();
  std::unique_ptr<CapturedWork> graph;
  if (batches.context == LaunchContext::graph) graph = device_->capture(stream, work);
  std::vector<double> samples(static_cast<std::size_t>(batches.rounds));
  for (double& sample : samples) {
    meeting_.arrive();
    sample = device_->time_us(stream, [&] {
      if (graph) device_->replay(*graph, stream);
      else work();
    }) / batches.calls;
  }
  meeting_.arrive();
  return median(samples);
}

double Gpu::time_us(Contender contender, std::int64_t n, const Batches& batches) {
  for (const LaunchContext each : {LaunchContext::stream, LaunchContext::graph})
    prepare_all_reduce(session_, *ranks_, sum_, n, kMaxAlignment, each);
  return time_us([&] { enqueue(contender, n, out_.as<float>(), stream_.get()); }, batches);
}

double Gpu::softmax_us(bool is_whole, const SoftmaxShape& shape, const Batches& batches) {
  for (const LaunchContext each : {LaunchContext::stream, LaunchContext::graph}) {
    prepare_all_softmax(session_, *ranks_, softmax_, shape, kMaxAlignment, each);
    Problem problem = softmax_problem(softmax_, shape);
    problem.launch_context = each;
    session_.prepare(problem);
  }
  return time_us(
      [&] {
        if (is_whole)
          tuned_all_softmax(session_, *ranks_, softmax_, in_.data(), shape, scratch_.data(), stream_.get());
        else tuned_softmax(session_, softmax_, in_.data(), shape, scratch_.data(), stream_.get());
      },
      batches);
}

std::vector<float> Gpu::results(std::int64_t n, LaunchContext context, int repetitions) {
  const Stream stream = stream_.get();
  const bool is_graph = context == LaunchContext::graph;
  const int batch = is_graph ? kCallsOfGraph : std::min(repetitions, kMostResults);
  prepare_all_reduce(session_, *ranks_, sum_, n, kMaxAlignment, context);
  const auto work = [&] {
    for (int i = 0; i < batch; ++i) enqueue(Contender::hone, n, out_.as<float>() + i, stream);
  };
  meeting_.arrive();
  std::unique_ptr<CapturedWork> graph;
  if (is_graph) graph = device_->capture(stream, work);
  meeting_.arrive();
  std::vector<float> found;
  while (static_cast<int>(found.size()) < repetitions) {
    device_->fill_bytes(out_.data(), 0xff, static_cast<std::size_t>(batch) * sizeof(float), stream);
    if (graph) device_->replay(*graph, stream);
    else work();
    const std::vector<float> some = fetch(out_, batch);
    found.insert(found.end(), some.begin(), some.end());
  }
  meeting_.arrive();
  return found;
}

std::vector<float> Gpu::softmax(const SoftmaxShape& shape) {
  const std::int64_t n = shape.extents[0] * shape.extents[1];
  device_->fill_bytes(scratch_.data(), 0xff, static_cast<std::size_t>(n) * sizeof(float), stream_.get());
  tuned_all_softmax(session_, *ranks_, softmax_, in_.data(), shape, scratch_.data(), stream_.get());
  return fetch(scratch_, n);
}

std::vector<float> Gpu::elements(std::int64_t n) { return fetch(in_, n); }

std::vector<float> Gpu::fetch(const DeviceBuffer& from, std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  device_->copy_to_host(values.data(), from.data(), values.size() * sizeof(float), stream_.get());
  device_->synchronize(stream_.get());
  return values;
}

double Gpu::local_sum(std::int64_t n) {
  return tuned_reduce_and_wait(session_, sum, in_.as<float>(), n, stream_.get());
}

std::string Gpu::disagreement(std::int64_t n) {
  const std::unique_ptr<Communicator> checked = nccl_communicator(communicator_, {.checked = true});
  ReduceSpec asked = sum_;
  if (rank_ == 1) asked.op = ReduceOp::max;
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
      if (rank_ != 1) tuned_all_reduce(session_, *checked, sum_, in_.data(), 1024, out_.data(), stream_.get());
    } catch (const Error& error) {
      message = error.what();
    }
    waited_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    nccl_.abort(communicator_);
  }
  return message;
}

}  // namespace hone::benchmarks
