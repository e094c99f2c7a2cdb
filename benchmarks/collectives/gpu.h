// Gpu: one GPU of the benchmark, with everything that its thread measures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hone/all_reduce.h>
#include <hone/own_stream.h>

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

/// All ranks come here before and after each step; a rank that fails says so, and all end.
class Meeting {
 public:
  explicit Meeting(int ranks);
  ~Meeting();

  void arrive();
  void fail(const std::string& why);
  std::string failure() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Gpu {
 public:
  /// `elements`: of the largest array.
  Gpu(int rank, const Nccl& nccl, ncclComm* communicator, const RunOptions& options, CommunicatorOptions exchange,
      std::int64_t elements);

  /// The time of a call in µs: the median of `rounds` batches of `calls`. All ranks measure at once. A graph is
  /// captured once and replayed.
  double time_us(Contender contender, std::int64_t n, LaunchContext context, int calls, int rounds, Meeting& meeting);

  /// The results of `repetitions` calls in a row, in a stream or replayed from a graph of as many as 100.
  std::vector<float> results(std::int64_t n, LaunchContext context, int repetitions, Meeting& meeting);

  /// The sum of this rank's first n elements, for comparison with the results.
  double local_sum(std::int64_t n);

  /// Ranks that ask for different things, in checked mode: the message; "": none.
  std::string disagreement(std::int64_t n);

  /// The error that a rank gets when others do not call, and how long it waited; "" if there was none.
  std::string desertion(double& waited_ms);

  Session& session() { return session_; }

 private:
  void enqueue(Contender contender, std::int64_t n, float* out, Stream stream);

  int rank_;
  const Nccl& nccl_;
  ncclComm* communicator_;
  Session session_;
  std::shared_ptr<Device> device_;
  OwnStream stream_;
  std::unique_ptr<Communicator> ranks_;
  DeviceBuffer in_, scratch_, out_;
};

}  // namespace hone::benchmarks
