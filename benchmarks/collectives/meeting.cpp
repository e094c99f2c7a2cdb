#include "benchmarks/collectives/meeting.h"

#include <sched.h>
#include <sys/mman.h>

#include <new>
#include <stdexcept>

#include <fmt/format.h>

namespace hone::benchmarks {

Meeting& Meeting::make(int ranks) {
  if (ranks > kMostRanks) throw std::runtime_error(fmt::format("{} ranks are more than {}", ranks, kMostRanks));
  void* const memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("there is no memory that processes share");
  return *new (memory) Meeting(ranks);
}

void Meeting::arrive() {
  const int generation = generation_;
  if (++arrived_ == ranks_) {
    arrived_ = 0;
    ++generation_;
  }
  while (generation_ == generation && has_failed_ == 0) sched_yield();
  if (const std::string why = failure(); !why.empty()) throw std::runtime_error(why);
}

void Meeting::fail(const std::string& why) {
  if (failing_.exchange(1) != 0) return;
  why.copy(why_.data(), why_.size() - 1);
  has_failed_ = 1;
}

std::string Meeting::failure() const { return has_failed_ != 0 ? std::string(why_.data()) : ""; }

}  // namespace hone::benchmarks
