// Hone's reductions for Python's ctypes: names and numbers in, error texts out. Used by reduce_vs_torch.py.
//
// Every function may be called from any thread. Those that return int return −1 (and those that return pointers null) when
// they fail; hone_error() then says why, to the thread that called.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <hone/hone.h>
#include <hone/kernel_family.h>

namespace {

using namespace hone;

thread_local std::string last_error;

/// A problem that calls refer to by its number. In a graph it has a Plan, whose workspace the graph keeps.
struct Prepared {
  Problem problem;
  std::unique_ptr<Plan> plan;
  std::string variant;
  BufferSpec result;
  int inputs = 1;
};

struct Bridge {
  Session session;
  std::mutex mutex;
  std::vector<std::unique_ptr<Prepared>> prepared;

  Bridge(std::shared_ptr<Device> device, const SessionOptions& options) : session(std::move(device), options) {}

  Prepared& at(int problem) {
    const std::lock_guard lock(mutex);
    return *prepared.at(static_cast<std::size_t>(problem));
  }
};

template <class Work>
auto guarded(const Work& work, decltype(work()) failure) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    last_error = error.what();
    return failure;
  }
}

std::uint8_t operation_called(std::string_view name) {
  const auto operations = reduce_family().operations();
  const auto found = std::find(operations.begin(), operations.end(), name);
  if (found == operations.end()) throw Error(ErrorCode::not_found, "Hone has no reduction '" + std::string(name) + "'");
  return static_cast<std::uint8_t>(found - operations.begin());
}

}  // namespace

extern "C" {

const char* hone_error() { return last_error.c_str(); }

/// A session that tunes for `budget_ms` what is neither known nor in the cache file (none if empty). Owned by the caller.
void* hone_open(const char* device, const char* cache, int budget_ms) {
  return guarded(
      [&]() -> void* {
        SessionOptions options;
        options.on_miss = MissPolicy::tune;
        options.tune_budget = std::chrono::milliseconds(budget_ms);
        options.cache_path = cache;
        return new Bridge(Device::open(device), options);
      },
      nullptr);
}

/// No launch may be pending.
void hone_close(void* session) { delete static_cast<Bridge*>(session); }

/// Tunes, or finds the winner of, a problem; returns its number. `alignment` is that of all inputs, in bytes.
int hone_prepare(void* session, const char* operation, const char* dtype, std::int64_t n, unsigned alignment, int in_graph) {
  return guarded(
      [&] {
        Bridge& bridge = *static_cast<Bridge*>(session);
        auto one = std::make_unique<Prepared>();
        one->problem = reduce_problem(static_cast<ReduceOp>(operation_called(operation)), parse_dtype(dtype), n, alignment);
        if (in_graph) one->problem.launch_context = LaunchContext::graph;
        const Winner& winner = *bridge.session.prepare(one->problem).winner;
        one->variant = one->problem.family->space().to_string(winner.candidate.variant);
        if (in_graph) one->plan = std::make_unique<Plan>(bridge.session.make_plan(one->problem));
        const std::vector<BufferSpec> buffers = one->problem.family->buffers(one->problem);
        one->result = buffers.back();
        one->inputs = static_cast<int>(
            std::count_if(buffers.begin(), buffers.end(), [](const BufferSpec& buffer) { return buffer.is_input; }));
        const std::lock_guard lock(bridge.mutex);
        bridge.prepared.push_back(std::move(one));
        return static_cast<int>(bridge.prepared.size()) - 1;
      },
      -1);
}

/// "f32", "i64", …: the dtype of the result; valid as long as the session.
const char* hone_result_dtype(void* session, int problem) {
  return guarded([&] { return info(static_cast<Bridge*>(session)->at(problem).result.dtype).name.data(); },
                 static_cast<const char*>(nullptr));
}

/// How many values the result has.
int hone_result_values(void* session, int problem) {
  return guarded([&] { return static_cast<int>(static_cast<Bridge*>(session)->at(problem).result.elements); }, -1);
}

/// The winner's parameters; valid as long as the session.
const char* hone_variant(void* session, int problem) {
  return guarded([&] { return static_cast<Bridge*>(session)->at(problem).variant.c_str(); },
                 static_cast<const char*>(nullptr));
}

/// Enqueues one call. `second` is read by operations on two arrays alone. Returns 0.
int hone_launch(void* session, int problem, const void* first, const void* second, void* out, void* stream) {
  return guarded(
      [&] {
        Bridge& bridge = *static_cast<Bridge*>(session);
        const Prepared& one = bridge.at(problem);
        void* const buffers[] = {const_cast<void*>(first), one.inputs == 2 ? const_cast<void*>(second) : out, out};
        const std::span<void* const> used(buffers, static_cast<std::size_t>(one.inputs) + 1);
        if (one.plan) one.plan->launch(one.problem, used, static_cast<Stream>(stream));
        else bridge.session.launch(one.problem, used, static_cast<Stream>(stream));
        return 0;
      },
      -1);
}

}  // extern "C"
