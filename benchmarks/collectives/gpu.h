// Gpu: one GPU of the benchmark, with everything that its rank measures.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hone/all_reduce.h>
#include <hone/all_softmax.h>
#include <hone/own_stream.h>

#include "benchmarks/collectives/meeting.h"
#include "benchmarks/collectives/nccl.h"
#include "benchmarks/common/program.h"

namespace hone::benchmarks {

/// The calls that are timed for each size.
enum class Contender : int {
  local,           ///< tuned_reduce() of this rank's array alone
  hone,            ///< tuned_all_reduce()
  nccl_of_one,     ///< ncclAllReduce() of one element
  nccl_partials,   ///< tuned_reduce(), then ncclAllReduce() of its result
  nccl_of_arrays,  ///< ncclAllReduce() of whole arrays: another result, element by element
};
inline constexpr std::array<std::string_view, 5> kContenderNames{"local", "Hone", "NCCL of 1", "local + NCCL of 1",
                                                                 "NCCL of arrays"};

/// How calls are timed.
struct Batches {
  LaunchContext context = LaunchContext::stream;
  int calls = 1;   ///< in a batch
  int rounds = 1;  ///< batches
};

class Gpu {
 public:
  /// `numerics`: of all calls. `elements`: of the largest array. All ranks make theirs at once.
  Gpu(int rank, const Nccl& nccl, Meeting& meeting, const RunOptions& options, CommunicatorOptions exchange,
      Numerics numerics, std::int64_t elements);

  /// The time of a call in µs: the median of the batches. All ranks measure at once. A graph is captured once and
  /// replayed.
  double time_us(Contender contender, std::int64_t n, const Batches& batches);

  /// The same for the softmax of the rows of this rank's part of a matrix; `is_whole`: of the rows of all ranks' parts.
  double softmax_us(bool is_whole, const SoftmaxShape& shape, const Batches& batches);

  /// The results of `repetitions` calls in a row, in a stream or replayed from a graph of as many as 100.
  std::vector<float> results(std::int64_t n, LaunchContext context, int repetitions);

  /// This rank's part of the softmax.
  std::vector<float> softmax(const SoftmaxShape& shape);

  /// The first n elements of the array.
  std::vector<float> elements(std::int64_t n);

  /// The sum of this rank's first n elements, for comparison with the results.
  double local_sum(std::int64_t n);

  /// Ranks that ask for different things, in checked mode: the message; "": none.
  std::string disagreement(std::int64_t n);

  /// The error that a rank gets when others do not call, and how long it waited; "" if there was none. The communicator
  /// is gone afterwards.
  std::string desertion(double& waited_ms);

  /// Ends the communicator.
  void destroy() { nccl_.destroy(communicator_); }

  Session& session() { return session_; }

 private:
  double time_us(const std::function<void()>& call, const Batches& batches);
  void enqueue(Contender contender, std::int64_t n, float* out, Stream stream);
  std::vector<float> fetch(const DeviceBuffer& from, std::int64_t n);

  ReduceSpec sum_;
  SoftmaxSpec softmax_;
  int rank_;
  const Nccl& nccl_;
  Meeting& meeting_;
  Session session_;
  std::shared_ptr<Device> device_;
  ncclComm* communicator_;
  OwnStream stream_;
  std::unique_ptr<Communicator> ranks_;
  DeviceBuffer in_, scratch_, out_;
};

}  // namespace hone::benchmarks
