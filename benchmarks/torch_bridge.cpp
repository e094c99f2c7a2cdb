// Hone's calls for Python's ctypes: names and numbers in, error texts out. Used by reduce_vs_torch.py,
// shapes_vs_torch.py and profile_winners.py.
//
// Every function may be called from any thread. Those that return int return −1 (and those that return pointers null)
// when they fail; hone_error() then says why, to the thread that called.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <hone/hone.h>
#include <hone/kernel_family.h>
#if __has_include(<hone/reduce_axis.h>)
#include <hone/reduce_axis.h>
#define HONE_HAS_AXES
#endif
#if __has_include(<hone/rms_norm.h>)
#include <hone/rms_norm.h>
#define HONE_HAS_RMS_NORM
#endif
#if __has_include(<hone/softmax.h>)
#include <hone/softmax.h>
#define HONE_HAS_SOFTMAX
#endif

#include "benchmarks/common/ceilings.h"

namespace {

using namespace hone;

thread_local std::string last_error;

/// A problem that calls refer to by its number. In a graph it has a Plan, whose workspace the graph keeps.
struct Prepared {
  Problem problem;
  std::unique_ptr<Plan> plan;
  std::string policy;
  BufferSpec result;
  int inputs = 1;
};

/// The plain reads and copies, and the memory that drives their inputs out of the cache.
struct Plain {
  benchmarks::RaceTrack track;
  benchmarks::Ceilings ceilings;

  explicit Plain(const std::shared_ptr<Device>& device) : track(device), ceilings(device, track) {}
};

struct Bridge {
  Session session;
  std::mutex mutex;
  std::vector<std::unique_ptr<Prepared>> prepared;
  std::optional<Plain> plain;  ///< made when it is first asked for
  std::unique_ptr<const benchmarks::OtherKernel> other;

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

/// A matrix of rows × columns elements, side by side; a lone array has one row.
struct Matrix {
  DType dtype;
  std::int64_t rows, columns;
  std::uint32_t alignment;
};

/// A call by its name, and the Problem that it asks for.
struct Kind {
  std::string_view name;
  Problem (*make)(std::string_view operation, const Matrix& matrix);
};

ReduceSpec reduction(std::string_view operation, const Matrix& matrix) {
  return {.op = parse_reduce_op(operation), .dtype = matrix.dtype};
}

constexpr Kind kKinds[] = {
    {"reduce",
     [](std::string_view operation, const Matrix& matrix) {
       return reduce_problem(reduction(operation, matrix), matrix.rows * matrix.columns, matrix.alignment);
     }},
#ifdef HONE_HAS_AXES
    {"reduce_rows",
     [](std::string_view operation, const Matrix& matrix) {
       return reduce_rows_problem(reduction(operation, matrix), {.rows = matrix.rows, .columns = matrix.columns},
                                  matrix.alignment);
     }},
    {"reduce_columns",
     [](std::string_view operation, const Matrix& matrix) {
       return reduce_columns_problem(reduction(operation, matrix), {.reduced = matrix.rows, .inner = matrix.columns},
                                     matrix.alignment);
     }},
#endif
#ifdef HONE_HAS_SOFTMAX
    {"softmax",
     [](std::string_view operation, const Matrix& matrix) {
       const SoftmaxShape shape = SoftmaxShape::rows(matrix.rows, matrix.columns);
       return operation == "softmax" ? softmax_problem({.dtype = matrix.dtype}, shape, matrix.alignment)
                                     : log_softmax_problem({.dtype = matrix.dtype}, shape, matrix.alignment);
     }},
    {"softmax_columns",
     [](std::string_view operation, const Matrix& matrix) {
       const SoftmaxShape shape = SoftmaxShape::columns(matrix.rows, matrix.columns);
       return operation == "softmax" ? softmax_problem({.dtype = matrix.dtype}, shape, matrix.alignment)
                                     : log_softmax_problem({.dtype = matrix.dtype}, shape, matrix.alignment);
     }},
#endif
#ifdef HONE_HAS_RMS_NORM
    {"rms_norm",
     [](std::string_view operation, const Matrix& matrix) {
       return rms_norm_problem({.dtype = matrix.dtype, .rows = matrix.rows, .columns = matrix.columns},
                               operation == "weighted", false, matrix.alignment);
     }},
#endif
    {"transpose",
     [](std::string_view, const Matrix& matrix) {
       return transpose_problem(
           {.element_bytes = info(matrix.dtype).size_bytes, .rows = matrix.rows, .columns = matrix.columns},
           matrix.alignment);
     }},
    {"copy",
     [](std::string_view, const Matrix& matrix) {
       return copy_problem(
           {.element_bytes = info(matrix.dtype).size_bytes, .rows = matrix.rows, .columns = matrix.columns},
           matrix.alignment);
     }},
};

const Kind& kind_called(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.name == name; });
  if (found == std::end(kKinds))
    throw Error(ErrorCode::not_found, "Hone has no kind of problem '" + std::string(name) + "'");
  return *found;
}

}  // namespace

extern "C" {

const char* hone_error() { return last_error.c_str(); }

/// A session that tunes for `budget_ms` what is neither known nor in the cache file (none if empty; one that cannot be
/// used is named on stderr). Owned by the caller.
void* hone_open(const char* device, const char* cache, int budget_ms) {
  return guarded(
      [&]() -> void* {
        SessionOptions options;
        options.on_miss = MissPolicy::tune;
        options.tune_budget = std::chrono::milliseconds(budget_ms);
        options.cache_path = cache;
        options.report_cache_failure = [](std::string_view why) {
          std::fprintf(stderr, "%.*s\n", static_cast<int>(why.size()), why.data());
        };
        return new Bridge(Device::open(device), options);
      },
      nullptr);
}

/// No launch may be pending.
void hone_close(void* session) { delete static_cast<Bridge*>(session); }

/// Tunes, or finds the winner of, a problem of rows × columns elements; returns its number. `kind` is a family's name;
/// families without operations ignore `operation`. `alignment` is that of all arrays, in bytes.
int hone_prepare(void* session, const char* kind, const char* operation, const char* dtype, std::int64_t rows,
                 std::int64_t columns, unsigned alignment, int in_graph) {
  return guarded(
      [&] {
        Bridge& bridge = *static_cast<Bridge*>(session);
        auto one = std::make_unique<Prepared>();
        one->problem = kind_called(kind).make(operation, {parse_dtype(dtype), rows, columns, alignment});
        if (in_graph) one->problem.launch_context = LaunchContext::graph;
        const Winner& winner = *bridge.session.prepare(one->problem).winner;
        one->policy = one->problem.family->space().to_string(winner.candidate.policy);
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
std::int64_t hone_result_values(void* session, int problem) {
  return guarded([&] { return static_cast<Bridge*>(session)->at(problem).result.elements; }, std::int64_t{-1});
}

/// The fastest plain read of `bytes` of the device's memory or, where `out` is not null, copy there, see
/// benchmarks::Ceilings: found by trying it on `inputs`, `count` copies of the data at multiples of 16 bytes. Valid as
/// long as the session; null when it fails. Nothing may be in flight.
const void* hone_plain_move(void* session, const void* const* inputs, int count, void* out, std::int64_t bytes) {
  return guarded(
      [&]() -> const void* {
        if (bytes < 0) throw Error(ErrorCode::invalid_argument, "no " + std::to_string(bytes) + " bytes can be moved");
        Bridge& bridge = *static_cast<Bridge*>(session);
        const std::lock_guard lock(bridge.mutex);
        if (!bridge.plain) bridge.plain.emplace(bridge.session.device());
        return &bridge.plain->ceilings.fastest({inputs, static_cast<std::size_t>(count)}, out,
                                               static_cast<std::size_t>(bytes));
      },
      nullptr);
}

/// "bulk read, 12 chunks of 16 KiB, 132 blocks"
const char* hone_plain_name(const void* move) { return static_cast<const benchmarks::PlainMove*>(move)->name.c_str(); }

/// Enqueues it on `in`; reads ignore `out`. Returns 0.
int hone_plain_enqueue(const void* move, const void* in, void* out, void* stream) {
  return guarded(
      [&] {
        static_cast<const benchmarks::PlainMove*>(move)->enqueue(in, out, static_cast<Stream>(stream));
        return 0;
      },
      -1);
}

/// Enqueues the kernel of others that runs between timed calls. The first call of a session compiles it, and must not
/// be captured. Returns 0.
int hone_others(void* session, void* stream) {
  return guarded(
      [&] {
        Bridge& bridge = *static_cast<Bridge*>(session);
        const std::lock_guard lock(bridge.mutex);
        if (!bridge.other) bridge.other = std::make_unique<const benchmarks::OtherKernel>(bridge.session.device());
        bridge.other->enqueue(static_cast<Stream>(stream));
        return 0;
      },
      -1);
}

/// As Device::hold(), until hone_release(); null where the device cannot do this.
void* hone_hold(void* session, void* stream) {
  return guarded(
      [&]() -> void* {
        return static_cast<Bridge*>(session)->session.device()->hold(static_cast<Stream>(stream)).release();
      },
      nullptr);
}
void hone_release(void* hold) { delete static_cast<StreamHold*>(hold); }

/// The winner's parameters; valid as long as the session.
const char* hone_variant(void* session, int problem) {
  return guarded([&] { return static_cast<Bridge*>(session)->at(problem).policy.c_str(); },
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
