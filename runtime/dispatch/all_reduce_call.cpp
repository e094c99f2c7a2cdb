#include "runtime/dispatch/all_reduce_call.h"

#include <algorithm>
#include <array>
#include <charconv>
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

namespace hone {
namespace {

/// Sent instead of a description by a rank that failed.
constexpr char kFailed = '!';

/// Behind the description, before what may differ: the number of elements.
constexpr char kBehindText = '\n';

/// Counts what is no NaN.
const CustomReduction& numbers() {
  static const CustomReduction reduction(
      {.name = "numbers", .map = "x == x ? 1 : 0", .combine = "a + b", .identity = "0"}, DType::i64);
  return reduction;
}

}  // namespace

AllReduceCall::AllReduceCall(std::string_view function, Session& session, Communicator& communicator,
                             const ReduceSpec& spec, const RowsShape& shape, bool is_rows, const Softmax* softmax)
    : function_(function),
      session_(session),
      communicator_(communicator),
      spec_(spec),
      shape_(shape),
      is_rows_(is_rows),
      softmax_(softmax),
      is_tree_(softmax ? softmax->is_canonical() : spec.is_reproducible()) {}

Choice AllReduceCall::run(const Arrays& arrays, Stream stream) {
  const StreamState state = session_.device()->stream_state(stream);
  if (communicator_.options().checked && !state.capturing) agree_or_throw(arrays);
  else check(arrays);
  if (shape_.rows == 0) return {};
  if (state.capturing && !communicator_.is_asynchronous())
    refuse(fmt::format("{} cannot be captured, since it exchanges blocks when it is called", communicator_.name()));
  place();
  auto* const memory =
      static_cast<std::byte*>(communicator_.buffers_->take(state, static_cast<std::size_t>(places_.all)));
  void* const result = softmax_ ? memory + places_.sums : arrays.out;
  const Choice choice =
      is_tree_ ? reduce_tree(arrays, memory, result, stream) : reduce_partials(arrays, memory, result, stream);
  if (!softmax_ || shape_.columns == 0) return choice;
  void* const in = const_cast<void*>(arrays.in);
  const Problem& problem = softmax_->normalization;
  if (is_tree_)
    session_.launch(problem, std::array<void*, 4>{in, memory + places_.origins, result, arrays.out}, stream);
  else session_.launch(problem, std::array<void*, 3>{in, result, arrays.out}, stream);
  return choice;
}

void AllReduceCall::prepare(std::uint32_t alignment, LaunchContext context) {
  check_spec();
  place();
  for (const Problem& problem : problems(alignment)) session_.prepare(in_context(problem, context));
  if (shape_.rows > 0)
    communicator_.buffers_->reserve(static_cast<std::size_t>(places_.all), context == LaunchContext::graph);
}

void AllReduceCall::refuse(std::string_view why) const { refuse_call(fmt::format("{}({})", function_, text()), why); }

std::string_view AllReduceCall::operation() const {
  if (!softmax_) return name(spec_.op);
  return softmax_->normalization.family->operations()[softmax_->normalization.operation];
}

/// The description of the call, on which all ranks have to agree.
std::string AllReduceCall::text() const {
  std::string text = fmt::format("{} of {}", operation(), info(spec_.dtype).name);
  if (spec_.accumulator) text += fmt::format(" in {}", info(*spec_.accumulator).name);
  if (spec_.result) text += fmt::format(" to {}", info(*spec_.result).name);
  if (spec_.nan == NanPolicy::ignore) text += ", NaN ignored";
  if (spec_.is_reproducible()) text += ", reproducible";
  if (softmax_ && softmax_->spec.scale != 1) text += fmt::format(", scale {}", softmax_->spec.scale);
  if (is_rows_) text += fmt::format(", {} rows", shape_.rows);
  return text;
}

void AllReduceCall::check_spec() {
  require_known(function_, spec_);
  if (is_rows_ && spec_.op == ReduceOp::dot) refuse("a product of two arrays has no rows to reduce");
  communicator_.buffers_->bind(session_.device());
  if (const std::string why = communicator_.refuse(*session_.device()); !why.empty()) refuse(why);
  if (shape_.rows < 0 || shape_.columns < 0) refuse("a size cannot be negative");
  if (is_rows_ && counts_numbers()) refuse("counts of numbers are not kept by row; pass NanPolicy::propagate");
}

void AllReduceCall::check(const Arrays& arrays) {
  check_spec();
  const bool has_elements = shape_.rows > 0 && shape_.columns > 0;
  const Problem problem = is_tree_ ? shard_problem(kMaxAlignment) : combine_problem();
  const Call call{function_, problem};
  call.check_problem();
  if ((info(spec_.op).inputs == 2) != arrays.is_pair)
    call.refuse(arrays.is_pair ? "takes one array; call tuned_all_reduce()" : "takes two arrays; call tuned_all_dot()");
  call.check_array("in", arrays.in, spec_.dtype, has_elements);
  if (spec_.op == ReduceOp::dot) call.check_array("b", arrays.other, spec_.dtype, has_elements);
  if (softmax_) check_softmax(arrays.out);
  else call.check_array("out", arrays.out, spec_.result_dtype(), shape_.rows > 0);
  if (session_.options().validate_pointers) check_memory_of(arrays, has_elements);
}

/// Before the exchange, where the other ranks still learn of it.
void AllReduceCall::check_memory_of(const Arrays& arrays, bool has_elements) const {
  const std::string call = fmt::format("{}({})", function_, text());
  const Device& device = *session_.device();
  if (has_elements) check_memory(device, call, "in", arrays.in);
  if (has_elements && spec_.op == ReduceOp::dot) check_memory(device, call, "b", arrays.other);
  if (softmax_ ? has_elements : shape_.rows > 0) check_memory(device, call, "out", arrays.out);
}

void AllReduceCall::check_softmax(const void* out) const {
  if (!softmax_->refusal.empty()) refuse(softmax_->refusal);
  const Problem& problem = softmax_->normalization;
  const Call call{function_, problem};
  call.check_problem();
  call.check_array("out", out, problem.result.value_or(problem.dtype), shape_.rows > 0 && shape_.columns > 0);
}

/// Tells all ranks what this one asks for, or why it cannot. Whatever can fail on one rank alone is done before.
void AllReduceCall::agree_or_throw(const Arrays& arrays) {
  std::string mine;
  std::optional<Error> failure;
  try {
    check(arrays);
    place();
    for (const Problem& problem : problems(alignment_of(arrays))) session_.prepare(problem);
    mine = fmt::format("{}{}{}", text(), kBehindText, shape_.columns);
  } catch (const Error& error) {
    failure = error;
    mine = kFailed + std::string(error.what());
  }
  std::vector<std::string> texts = communicator_.exchange(*session_.device(), mine);
  if (failure) throw *failure;
  std::vector<std::int64_t> columns(texts.size());
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (texts[r].starts_with(kFailed))
      throw Error(ErrorCode::device_failed, fmt::format("{}: rank {} failed: {}", function_, r, texts[r].substr(1)));
    const std::size_t end = std::min(texts[r].find(kBehindText), texts[r].size() - 1);
    std::from_chars(texts[r].data() + end + 1, texts[r].data() + texts[r].size(), columns[r]);
    texts[r].resize(end);
  }
  if (std::ranges::all_of(texts, [&](const std::string& each) { return each == texts.front(); })) {
    bounds_ = ShardBounds::of(spec_.dtype, columns);
    return;
  }
  std::vector<std::string> asked;
  for (std::size_t r = 0; r < texts.size(); ++r) asked.push_back(fmt::format("rank {} for {}", r, texts[r]));
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: ranks ask for different things: {}", function_, fmt::join(asked, "; ")));
}

std::uint32_t AllReduceCall::alignment_of(const Arrays& arrays) const {
  if (spec_.op != ReduceOp::dot) return hone::alignment_of(arrays.in);
  const auto apart = reinterpret_cast<std::uintptr_t>(arrays.in) - reinterpret_cast<std::uintptr_t>(arrays.other);
  return hone::alignment_of(reinterpret_cast<const void*>(apart));
}

void AllReduceCall::place() {
  constexpr std::int64_t kAlign = 16;
  const auto taken = [&](std::int64_t bytes) {
    const std::int64_t at = places_.all;
    places_.all += (bytes + kAlign - 1) / kAlign * kAlign;
    return at;
  };
  const std::int64_t ranks = communicator_.ranks();
  places_ = {};
  layout_ = PartialLayout::of(spec_, shape_.rows);
  block_bytes_ = is_tree_ ? ShardLayout::of(combine_problem()).block_bytes : layout_.block_bytes;
  taken(block_bytes_ * ranks);  // at 0
  if (is_tree_) places_.counts = taken(kCountBytes * ranks);
  else if (layout_.has_index) places_.found = taken(shape_.rows * 8);
  if (is_tree_ && softmax_) {
    places_.extremes = taken(PartialLayout::of(extremes_spec(), shape_.rows).block_bytes * ranks);
    places_.origins = taken(shape_.rows * 8);
  }
  if (softmax_) places_.sums = taken(shape_.rows * 8);
}

std::vector<Problem> AllReduceCall::problems(std::uint32_t alignment) const {
  std::vector<Problem> launched;
  const auto local = [&](const ReduceSpec& spec) {
    return is_rows_ ? reduce_rows_problem(spec, shape_, alignment) : reduce_problem(spec, shape_.columns, alignment);
  };
  if (is_tree_) {
    if (softmax_) {
      launched.push_back(local(partial_spec(extremes_spec())));
      launched.push_back(combine_ranks_problem(extremes_spec(), communicator_.ranks(), shape_.rows));
    }
    launched.push_back(record_partial_problem(spec_, shape_));
    launched.push_back(shard_problem(alignment));
  } else {
    if (has_local_kernel()) launched.push_back(local(partial_spec(spec_)));
    if (counts_numbers()) launched.push_back(numbers().problem(spec_.dtype, shape_.columns, alignment));
    else if (layout_.has_count) launched.push_back(record_partial_problem(spec_, shape_));
  }
  launched.push_back(combine_problem());
  if (softmax_ && shape_.columns > 0) launched.push_back(softmax_->normalization);
  return launched;
}

Problem AllReduceCall::combine_problem() const {
  const int ranks = communicator_.ranks();
  if (!is_tree_) return combine_ranks_problem(spec_, ranks, shape_.rows);
  if (softmax_) return combine_softmax_shards_problem(softmax_->spec, ranks, shape_.rows, bounds_);
  return combine_shards_problem(spec_, ranks, shape_.rows, bounds_);
}

Problem AllReduceCall::shard_problem(std::uint32_t alignment) const {
  const int rank = communicator_.rank();
  if (softmax_) return softmax_shard_problem(softmax_->spec, shape_, rank, bounds_);
  return reduce_shard_problem(spec_, shape_, rank, bounds_, alignment);
}

/// Weights are relative to the largest of the scaled elements.
ReduceSpec AllReduceCall::extremes_spec() const {
  return {.op = softmax_->spec.scale < 0 ? ReduceOp::min : ReduceOp::max, .dtype = spec_.dtype};
}

/// Elements that are located must be there.
bool AllReduceCall::has_local_kernel() const { return shape_.columns > 0 || !layout_.has_index; }

bool AllReduceCall::counts_numbers() const {
  return !is_tree_ && (spec_.op == ReduceOp::mean || spec_.op == ReduceOp::mean_variance) &&
         spec_.nan == NanPolicy::ignore && info(spec_.dtype).is_floating();
}

void AllReduceCall::all_gather(void* blocks, std::int64_t block_bytes, Stream stream) {
  communicator_.all_gather(*session_.device(), blocks, static_cast<std::size_t>(block_bytes), stream);
}

Choice AllReduceCall::reduce_partials(const Arrays& arrays, std::byte* memory, void* result, Stream stream) {
  const Choice choice = reduce_shard(arrays, memory, stream);
  all_gather(memory, block_bytes_, stream);
  session_.launch(combine_problem(), std::array<void*, 2>{memory, result}, stream);
  return choice;
}

/// Fills in this rank's block.
Choice AllReduceCall::reduce_shard(const Arrays& arrays, std::byte* memory, Stream stream) {
  std::byte* const mine = memory + block_bytes_ * communicator_.rank();
  std::byte* const found = memory + places_.found;
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
    session_.launch(record_partial_problem(spec_, shape_),
                    std::array<void*, 5>{in, found, mine, mine + layout_.index_at, count}, stream);
  } else if (layout_.has_count) {
    session_.launch(record_partial_problem(spec_, shape_), std::array<void*, 1>{count}, stream);
  }
  return choice;
}

/// The largest element of each row, or the smallest, to places_.origins.
void AllReduceCall::reduce_extremes(const void* in, std::byte* memory, Stream stream) {
  const ReduceSpec spec = extremes_spec();
  const std::int64_t bytes = PartialLayout::of(spec, shape_.rows).block_bytes;
  std::byte* const blocks = memory + places_.extremes;
  tuned_reduce_rows(session_, partial_spec(spec), in, shape_, blocks + bytes * communicator_.rank(), stream);
  all_gather(blocks, bytes, stream);
  session_.launch(combine_ranks_problem(spec, communicator_.ranks(), shape_.rows),
                  std::array<void*, 2>{blocks, memory + places_.origins}, stream);
}

Choice AllReduceCall::reduce_tree(const Arrays& arrays, std::byte* memory, void* result, Stream stream) {
  if (softmax_) reduce_extremes(arrays.in, memory, stream);
  const int rank = communicator_.rank();
  std::byte* const counts = memory + places_.counts;
  session_.launch(record_partial_problem(spec_, shape_), std::array<void*, 1>{counts + kCountBytes * rank}, stream);
  all_gather(counts, kCountBytes, stream);
  // An empty shard reads no element of it.
  void* const in = shape_.columns > 0 ? const_cast<void*>(arrays.in) : memory;
  void* const block = memory + block_bytes_ * rank;
  const Problem problem = shard_problem(alignment_of(arrays));
  Choice choice;
  if (softmax_)
    choice = session_.launch(problem, std::array<void*, 4>{in, counts, memory + places_.origins, block}, stream);
  else if (spec_.op == ReduceOp::dot)
    choice = session_.launch(
        problem, std::array<void*, 4>{in, shape_.columns > 0 ? const_cast<void*>(arrays.other) : memory, counts, block},
        stream);
  else choice = session_.launch(problem, std::array<void*, 3>{in, counts, block}, stream);
  all_gather(memory, block_bytes_, stream);
  session_.launch(combine_problem(), std::array<void*, 3>{memory, counts, result}, stream);
  return choice;
}

}  // namespace hone
