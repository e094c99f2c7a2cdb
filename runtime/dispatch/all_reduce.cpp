#include <hone/all_reduce.h>
#include <hone/all_softmax.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/custom_reduce.h>
#include <hone/error.h>
#include <hone/reduce_axis.h>

#include "runtime/dispatch/buffer_checks.h"
#include "runtime/dispatch/call_checks.h"
#include "runtime/dispatch/gather_buffers.h"
#include "runtime/dispatch/winner_checks.h"
#include "runtime/families/combine_ranks/normalize_rows.h"
#include "runtime/families/combine_ranks/partial_layout.h"

namespace hone {
namespace {

/// Sent instead of a description by a rank that failed.
constexpr char kFailed = '!';

/// Counts what is no NaN.
const CustomReduction& numbers() {
  static const CustomReduction reduction(
      {.name = "numbers", .map = "x == x ? 1 : 0", .combine = "a + b", .identity = "0"}, DType::i64);
  return reduction;
}

}  // namespace

/// One call on one rank. Arrays are null where a call is only prepared.
class AllReduceCall {
 public:
  struct Arrays {
    const void* in = nullptr;
    const void* other = nullptr;  ///< of dot
    void* out = nullptr;
    bool is_pair = false;
  };

  /// The second step of a softmax: elements are normalised by the results of their rows, which no caller gets.
  struct Normalization {
    Problem problem;
    std::string refusal = {};  ///< why the call is none that is known; "": it is
  };

  /// `shape` of one row: all elements are reduced to one.
  AllReduceCall(std::string_view function, Session& session, Communicator& communicator, const ReduceSpec& spec,
                const RowsShape& shape, bool is_rows, const Normalization* normalization = nullptr)
      : function_(function),
        session_(session),
        communicator_(communicator),
        spec_(spec),
        shape_(shape),
        is_rows_(is_rows),
        normalization_(normalization) {}

  Choice run(const Arrays& arrays, Stream stream) {
    Device& device = *session_.device();
    const StreamState state = device.stream_state(stream);
    if (communicator_.options().checked && !state.capturing) agree_or_throw(arrays);
    else check(arrays);
    if (shape_.rows == 0) return {};
    if (state.capturing && !communicator_.is_asynchronous())
      refuse(fmt::format("{} cannot be captured, since it exchanges blocks when it is called", communicator_.name()));
    auto* const blocks = static_cast<std::byte*>(communicator_.buffers_->take(state, all_bytes()));
    const Choice choice = reduce_shard(arrays, blocks, stream);
    communicator_.all_gather(device, blocks, static_cast<std::size_t>(layout_.block_bytes), stream);
    void* const result = normalization_ ? blocks + norms_at() : arrays.out;
    void* const buffers[] = {blocks, result};
    session_.launch(combine_problem(), buffers, stream);
    if (normalization_ && shape_.columns > 0) {
      void* const rows[] = {const_cast<void*>(arrays.in), result, arrays.out};
      session_.launch(normalization_->problem, rows, stream);
    }
    return choice;
  }

  void prepare(std::uint32_t alignment, LaunchContext context) {
    check_spec();
    make_layout();
    for (const Problem& problem : problems(alignment)) session_.prepare(in_context(problem, context));
    if (shape_.rows > 0) communicator_.buffers_->reserve(all_bytes(), context == LaunchContext::graph);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const { refuse_call(fmt::format("{}({})", function_, text()), why); }

  std::string_view operation() const {
    if (!normalization_) return name(spec_.op);
    return normalization_->problem.family->operations()[normalization_->problem.operation];
  }

  /// The description of the call, on which all ranks have to agree.
  std::string text() const {
    std::string text = fmt::format("{} of {}", operation(), info(spec_.dtype).name);
    if (spec_.accumulator) text += fmt::format(" in {}", info(*spec_.accumulator).name);
    if (spec_.result) text += fmt::format(" to {}", info(*spec_.result).name);
    if (spec_.nan == NanPolicy::ignore) text += ", NaN ignored";
    if (spec_.is_reproducible()) text += ", reproducible";
    if (is_rows_) text += fmt::format(", {} rows", shape_.rows);
    return text;
  }

  void check_spec() {
    require_known(function_, spec_);
    if (is_rows_ && spec_.op == ReduceOp::dot) refuse("a product of two arrays has no rows to reduce");
    communicator_.buffers_->bind(session_.device());
    if (const std::string why = communicator_.refuse(*session_.device()); !why.empty()) refuse(why);
    if (shape_.rows < 0 || shape_.columns < 0) refuse("a size cannot be negative");
    if (is_rows_ && counts_numbers()) refuse("counts of numbers are not kept by row; pass NanPolicy::propagate");
  }

  void check(const Arrays& arrays) {
    check_spec();
    const bool has_elements = shape_.rows > 0 && shape_.columns > 0;
    const Problem problem = combine_problem();
    const Call call{function_, problem};
    call.check_problem();
    if ((info(spec_.op).inputs == 2) != arrays.is_pair)
      call.refuse(arrays.is_pair ? "takes one array; call tuned_all_reduce()"
                                 : "takes two arrays; call tuned_all_dot()");
    call.check_array("in", arrays.in, spec_.dtype, has_elements);
    if (spec_.op == ReduceOp::dot) call.check_array("b", arrays.other, spec_.dtype, has_elements);
    if (normalization_) check_normalization(arrays.out);
    else call.check_array("out", arrays.out, spec_.result_dtype(), shape_.rows > 0);
    if (session_.options().validate_pointers) check_memory_of(arrays, has_elements);
    make_layout();
  }

  /// Before the exchange, where the other ranks still learn of it.
  void check_memory_of(const Arrays& arrays, bool has_elements) const {
    const std::string call = fmt::format("{}({})", function_, text());
    const Device& device = *session_.device();
    if (has_elements) check_memory(device, call, "in", arrays.in);
    if (has_elements && spec_.op == ReduceOp::dot) check_memory(device, call, "b", arrays.other);
    if (normalization_ ? has_elements : shape_.rows > 0) check_memory(device, call, "out", arrays.out);
  }

  void check_normalization(const void* out) const {
    if (!normalization_->refusal.empty()) refuse(normalization_->refusal);
    const Problem& problem = normalization_->problem;
    const Call call{function_, problem};
    call.check_problem();
    call.check_array("out", out, problem.result.value_or(problem.dtype), shape_.rows > 0 && shape_.columns > 0);
  }

  void make_layout() { layout_ = PartialLayout::of(spec_, shape_.rows); }

  /// Tells all ranks what this one asks for, or why it cannot. Whatever can fail on one rank alone is done before.
  void agree_or_throw(const Arrays& arrays) {
    std::string mine;
    std::optional<Error> failure;
    try {
      check(arrays);
      for (const Problem& problem : problems(alignment_of(arrays))) session_.prepare(problem);
      mine = text();
    } catch (const Error& error) {
      failure = error;
      mine = kFailed + std::string(error.what());
    }
    const std::vector<std::string> texts = communicator_.exchange(*session_.device(), mine);
    if (failure) throw *failure;
    for (std::size_t r = 0; r < texts.size(); ++r)
      if (texts[r].starts_with(kFailed))
        throw Error(ErrorCode::device_failed, fmt::format("{}: rank {} failed: {}", function_, r, texts[r].substr(1)));
    if (std::ranges::all_of(texts, [&](const std::string& each) { return each == texts.front(); })) return;
    std::vector<std::string> asked;
    for (std::size_t r = 0; r < texts.size(); ++r) asked.push_back(fmt::format("rank {} for {}", r, texts[r]));
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: ranks ask for different things: {}", function_, fmt::join(asked, "; ")));
  }

  std::uint32_t alignment_of(const Arrays& arrays) const {
    if (spec_.op != ReduceOp::dot) return hone::alignment_of(arrays.in);
    const auto apart = reinterpret_cast<std::uintptr_t>(arrays.in) - reinterpret_cast<std::uintptr_t>(arrays.other);
    return hone::alignment_of(reinterpret_cast<const void*>(apart));
  }

  /// All that the call launches.
  std::vector<Problem> problems(std::uint32_t alignment) const {
    std::vector<Problem> launched;
    if (has_local_kernel())
      launched.push_back(is_rows_ ? reduce_rows_problem(partial_spec(spec_), shape_, alignment)
                                  : reduce_problem(partial_spec(spec_), shape_.columns, alignment));
    if (counts_numbers()) launched.push_back(numbers().problem(spec_.dtype, shape_.columns, alignment));
    else if (layout_.has_count) launched.push_back(record_partial_problem(spec_, shape_));
    launched.push_back(combine_problem());
    if (normalization_ && shape_.columns > 0) launched.push_back(normalization_->problem);
    return launched;
  }

  Problem combine_problem() const { return combine_ranks_problem(spec_, communicator_.ranks(), shape_.rows); }

  /// Elements that are located must be there.
  bool has_local_kernel() const { return shape_.columns > 0 || !layout_.has_index; }

  bool counts_numbers() const {
    return (spec_.op == ReduceOp::mean || spec_.op == ReduceOp::mean_variance) && spec_.nan == NanPolicy::ignore &&
           info(spec_.dtype).is_floating();
  }

  /// Behind the blocks of all ranks and the indices that this one found.
  std::int64_t norms_at() const {
    return layout_.block_bytes * communicator_.ranks() + (layout_.has_index ? shape_.rows * 8 : 0);
  }
  std::size_t all_bytes() const {
    return static_cast<std::size_t>(norms_at() + (normalization_ ? shape_.rows * 8 : 0));
  }

  /// Fills in this rank's block.
  Choice reduce_shard(const Arrays& arrays, std::byte* blocks, Stream stream) {
    std::byte* const mine = blocks + layout_.block_bytes * communicator_.rank();
    std::byte* const found = blocks + layout_.block_bytes * communicator_.ranks();
    void* const to = layout_.has_index ? found : mine;
    const ReduceSpec partial = partial_spec(spec_);
    Choice choice;
    if (has_local_kernel()) {
      if (is_rows_) choice = tuned_reduce_rows(session_, partial, arrays.in, shape_, to, stream);
      else if (spec_.op == ReduceOp::dot)
        choice = tuned_dot(session_, partial, arrays.in, arrays.other, shape_.columns, to, stream);
      else choice = tuned_reduce(session_, partial, arrays.in, shape_.columns, to, stream);
    }
    void* const count = mine + layout_.count_at;
    if (counts_numbers()) {
      tuned_reduce(session_, numbers(), spec_.dtype, arrays.in, shape_.columns, count, stream);
    } else if (layout_.has_index) {
      void* const in = shape_.columns > 0 ? const_cast<void*>(arrays.in) : found;
      void* const buffers[] = {in, found, mine, mine + layout_.index_at, count};
      session_.launch(record_partial_problem(spec_, shape_), buffers, stream);
    } else if (layout_.has_count) {
      void* const buffers[] = {count};
      session_.launch(record_partial_problem(spec_, shape_), buffers, stream);
    }
    return choice;
  }

  std::string_view function_;
  Session& session_;
  Communicator& communicator_;
  const ReduceSpec& spec_;
  const RowsShape& shape_;
  bool is_rows_;
  const Normalization* normalization_;
  PartialLayout layout_;
};

Choice tuned_all_reduce(Session& session, Communicator& communicator, const ReduceSpec& spec, const void* in,
                        std::int64_t n, void* out, Stream stream) {
  const RowsShape shape{.rows = 1, .columns = n};
  return AllReduceCall("tuned_all_reduce", session, communicator, spec, shape, false)
      .run({.in = in, .out = out}, stream);
}

Choice tuned_all_dot(Session& session, Communicator& communicator, const ReduceSpec& spec, const void* a,
                     const void* b, std::int64_t n, void* out, Stream stream) {
  const RowsShape shape{.rows = 1, .columns = n};
  return AllReduceCall("tuned_all_dot", session, communicator, spec, shape, false)
      .run({.in = a, .other = b, .out = out, .is_pair = true}, stream);
}

Choice tuned_all_reduce_rows(Session& session, Communicator& communicator, const ReduceSpec& spec, const void* in,
                             const RowsShape& shape, void* out, Stream stream) {
  return AllReduceCall("tuned_all_reduce_rows", session, communicator, spec, shape, true)
      .run({.in = in, .out = out}, stream);
}

void prepare_all_reduce(Session& session, Communicator& communicator, const ReduceSpec& spec, std::int64_t n,
                        std::uint32_t alignment, LaunchContext context) {
  const RowsShape shape{.rows = 1, .columns = n};
  AllReduceCall("prepare_all_reduce", session, communicator, spec, shape, false).prepare(alignment, context);
}

void prepare_all_reduce_rows(Session& session, Communicator& communicator, const ReduceSpec& spec,
                             const RowsShape& shape, std::uint32_t alignment, LaunchContext context) {
  AllReduceCall("prepare_all_reduce_rows", session, communicator, spec, shape, true).prepare(alignment, context);
}

namespace {

using Normalization = AllReduceCall::Normalization;

/// Results are rows of partials in the accumulator's dtype, and then rows of elements.
ReduceSpec sums_of(const SoftmaxSpec& spec) {
  return {.op = ReduceOp::logsumexp,
          .dtype = spec.dtype,
          .accumulator = spec.accumulator_dtype(),
          .result = spec.accumulator_dtype(),
          .numerics = spec.numerics};
}

RowsShape rows_of(const SoftmaxShape& shape) {
  return {.rows = shape.extents[0], .columns = shape.extents[1], .pitch = shape.pitches[0]};
}

/// Why the arrays cannot lie like this; "" if they can.
std::string refuse_overlap(const Problem& problem, const void* in, const void* out) {
  const auto in_bytes = static_cast<std::int64_t>(info(problem.dtype).size_bytes);
  const auto out_bytes = static_cast<std::int64_t>(info(problem.result.value_or(problem.dtype)).size_bytes);
  const auto [rows, columns, unused] = problem.extents;
  const auto pitch = [&](std::size_t array) { return problem.pitches[array] != 0 ? problem.pitches[array] : columns; };
  const bool is_same = in == out && in_bytes == out_bytes && (rows <= 1 || pitch(0) == pitch(1));
  if (is_same || !rows_overlap({in, columns * in_bytes, pitch(0) * in_bytes, rows},
                               {out, columns * out_bytes, pitch(1) * out_bytes, rows}))
    return "";
  return fmt::format("'in' at {} and 'out' at {} overlap; pass the same address with the same size of elements and "
                     "pitch, or arrays apart", in, out);
}

Normalization normalization_of(const SoftmaxSpec& spec, bool is_logarithm, const SoftmaxShape& shape,
                               std::uint32_t alignment) {
  Normalization normalization{.problem = normalize_rows_problem(spec, is_logarithm, shape, alignment)};
  if (shape.over_columns) normalization.refusal = "takes the rows of a matrix; pass SoftmaxShape::rows()";
  else if (spec.scale != 1)
    normalization.refusal = fmt::format("takes no scale but 1, not {}, since the logsumexp of each rank's part has none; "
                                        "scale the elements beforehand", spec.scale);
  return normalization;
}

Choice all_softmax(bool is_logarithm, Session& session, Communicator& communicator, const SoftmaxSpec& spec,
                   const void* in, const SoftmaxShape& shape, void* out, Stream stream) {
  const std::string_view function = is_logarithm ? "tuned_all_log_softmax" : "tuned_all_softmax";
  require_known(function, spec.dtype);
  require_known(function, spec.result_dtype());
  const ReduceSpec sums = sums_of(spec);
  const RowsShape rows = rows_of(shape);
  Normalization normalization =
      normalization_of(spec, is_logarithm, shape, std::min(alignment_of(in), alignment_of(out)));
  if (normalization.refusal.empty()) normalization.refusal = refuse_overlap(normalization.problem, in, out);
  return AllReduceCall(function, session, communicator, sums, rows, true, &normalization)
      .run({.in = in, .out = out}, stream);
}

}  // namespace

Choice tuned_all_softmax(Session& session, Communicator& communicator, const SoftmaxSpec& spec, const void* in,
                         const SoftmaxShape& shape, void* out, Stream stream) {
  return all_softmax(false, session, communicator, spec, in, shape, out, stream);
}

Choice tuned_all_log_softmax(Session& session, Communicator& communicator, const SoftmaxSpec& spec, const void* in,
                             const SoftmaxShape& shape, void* out, Stream stream) {
  return all_softmax(true, session, communicator, spec, in, shape, out, stream);
}

void prepare_all_softmax(Session& session, Communicator& communicator, const SoftmaxSpec& spec,
                         const SoftmaxShape& shape, std::uint32_t alignment, LaunchContext context) {
  const ReduceSpec sums = sums_of(spec);
  const RowsShape rows = rows_of(shape);
  for (const bool is_logarithm : {false, true}) {
    const Normalization normalization = normalization_of(spec, is_logarithm, shape, alignment);
    AllReduceCall("prepare_all_softmax", session, communicator, sums, rows, true, &normalization)
        .prepare(alignment, context);
  }
}

}  // namespace hone
