#include "runtime/measure/workload.h"

#include <algorithm>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/output_fills.h>

namespace hone {
namespace {

/// So many times the last-level cache displaces all else from it. A processor may report that of a whole
/// socket; filling more than kMostDisplacingBytes would take longer than tuning.
constexpr std::size_t kDisplacingMultiple = 2;
constexpr std::size_t kMostDisplacingBytes = std::size_t{256} << 20;

/// The host device writes about a gigabyte of new memory a second; more than an eighth of the budget is not spent so.
constexpr std::size_t kDisplacingBytesPerMs = 128 << 10;

/// Copies of the inputs on a GPU are so many times what displaces the cache, for in what part of memory they lie moves
/// short calls by up to two percent: sums of 2^20 floats by 264 and by 132 blocks took 4.54 and 4.44 µs in one process
/// and 4.49 and 4.53 in the next with 100 MiB of copies, and with 200 or 400 4.49 and 4.54 in all (H100, CUDA 13.0,
/// 2026-11).
constexpr std::size_t kDisplacingRounds = 4;

constexpr std::size_t kCopyAlignment = 256;

/// Workspaces begin in as many places of a memory page as in the memory: a stride that is a power of two would have
/// several of them in one section of the cache.
constexpr std::size_t kStaggerBytes = 20 << 10;

/// The cache is displaced in so many pieces, all copied to one place: what is written stays in the cache, and goes to
/// memory while something is timed.
constexpr std::size_t kDisplacingPieces = 32;

/// So much of either end of an input is compared after a verified call: gigabytes would take longer than tuning.
constexpr std::size_t kInspectedBytes = std::size_t{1} << 20;

std::size_t round_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

}  // namespace

Workload::Workload(std::shared_ptr<Device> device, const Problem& problem, Stream stream, InputState inputs,
                   std::chrono::milliseconds budget)
    : device_(std::move(device)), problem_(problem), stream_(stream), inputs_(inputs) {
  const std::vector<BufferSpec> specs = problem.family->buffers(problem);
  std::size_t input_bytes = 0, output_bytes = 0;
  for (const BufferSpec& spec : specs) {
    const std::size_t alignment = spec.alignment > 0 ? spec.alignment
                                  : spec.is_input    ? problem.alignment
                                                     : kMaxAlignment;
    const std::size_t offset = alignment < kMaxAlignment ? alignment : 0;
    const std::size_t stride = round_up(spec.size_bytes() + offset, kCopyAlignment);
    arrays_.push_back({spec, {}, stride, offset});
    (spec.is_input ? input_bytes : output_bytes) += stride;
  }
  const DeviceFacts& facts = device_->facts();
  displacing_bytes_ = std::min(kDisplacingMultiple * static_cast<std::size_t>(facts.l2_bytes), kMostDisplacingBytes);
  if (facts.kind == "host") {
    displacing_bytes_ = std::min(displacing_bytes_, kDisplacingBytesPerMs * static_cast<std::size_t>(budget.count()));
    if (inputs_ == InputState::cold)
      copies_ = displacing_bytes_ / std::max<std::size_t>(input_bytes + output_bytes, kCopyAlignment) + 1;
  } else if (input_bytes > 0 && inputs_ == InputState::cold) {
    copies_ = kDisplacingRounds * displacing_bytes_ / input_bytes + 1;
  }
  for (Array& array : arrays_)
    array.memory = DeviceBuffer(device_, copies_ * array.stride_bytes + 2 * Canaries::kBytes);
  pointers_.resize(arrays_.size());
  canary_patterns_ = Canaries::patterns(device_, stream_);
}

Workload::~Workload() {
  try {
    device_->synchronize(stream_);
  } catch (const Error&) {
    // Whoever measures has met the failure, or will meet it.
  }
}

void Workload::fill_all() {
  const std::string_view kind = problem_.family->verifier().input_kinds(problem_).front();
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const Array& array = arrays_[i];
    if (!array.spec.is_input || array.spec.elements == 0) continue;
    std::byte* const first_copy = array.first_copy();
    const std::size_t bytes = array.spec.size_bytes();
    fill(first_copy, bytes, problem_.family->verifier().input_pattern(problem_, static_cast<int>(i), kind));
    repeat(first_copy, array.stride_bytes, (copies_ - 1) * array.stride_bytes + bytes);
  }
}

const std::vector<void*>& Workload::next() {
  turn_ = (turn_ + 1) % copies_;
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    pointers_[i] = arrays_[i].first_copy() + turn_ * arrays_[i].stride_bytes;
  return pointers_;
}

bool Workload::must_displace_cache() const {
  const bool are_small = copies_ > kDisplacingRounds;  // each at most what displaces the cache
  return are_small && device_->facts().kind != "host";
}

void Workload::displace_cache() {
  const std::size_t piece_bytes = round_up(displacing_bytes_ / kDisplacingPieces, kCopyAlignment);
  if (!displacing_.data()) displacing_ = DeviceBuffer(device_, (kDisplacingPieces + 1) * piece_bytes);
  auto* const sink = displacing_.as<std::byte>();
  for (std::size_t piece = 1; piece <= kDisplacingPieces; ++piece)
    device_->copy_on_device(sink, sink + piece * piece_bytes, piece_bytes, stream_);
}

std::string Workload::verify(const Problem& problem, const Candidate& candidate, std::string_view kind, const Run& run,
                             const Run& run_reference) {
  Check check = prepare(problem, kind);
  check.canaries.set();
  const auto outputs_over = [&](std::byte fill, const Run& call) {
    poison(check, fill);
    call(problem, check.pointers);
    return read_outputs(check);
  };
  const std::vector<std::vector<std::byte>> outputs = outputs_over(kNanFill, run);
  if (const std::string fault = damage(check); !fault.empty()) return fault;
  const std::vector<std::vector<std::byte>> again = outputs_over(kOtherFill, run);
  if (!agree_where_written(outputs, again))
    return outputs_over(kNanFill, run) == outputs ? kDependsOnOutputs
                                                  : "two runs on the same input gave different bits";
  const auto expected_over = [&](std::byte fill) {
    return run_reference ? outputs_over(fill, run_reference) : std::vector<std::vector<std::byte>>{};
  };
  const std::vector<std::vector<std::byte>> expected = expected_over(kNanFill);
  const auto fault_in = [&](const std::vector<std::vector<std::byte>>& right,
                            const std::vector<std::vector<std::byte>>& found) {
    return run_reference ? problem.family->verifier().compare(problem, candidate, right, found)
                         : problem.family->verifier().verify(problem, candidate, check.patterns, found);
  };
  std::string fault = fault_in(expected, outputs);
  if (again != outputs) {
    // Some bytes are nobody's, such as gaps between rows: the reference leaves them alone, or the verifier does.
    if (fault.empty()) fault = fault_in(expected_over(kOtherFill), again);
    if (!fault.empty()) return fault + kLeftUnwritten;
  }
  if (!fault.empty() || !place_in_inputs(check)) return fault;
  check.canaries.set();
  refill_updated(check);
  run(problem, check.pointers);
  fault = fault_in(expected, read_outputs(check));
  if (fault.empty()) fault = damage(check);
  return fault.empty() ? "" : "in place: " + fault;
}

std::vector<std::vector<std::byte>> Workload::outputs_of(const Problem& problem, std::string_view kind,
                                                         const Run& run) {
  Check check = prepare(problem, kind);
  poison(check, kNanFill);
  check.canaries.set();
  run(problem, check.pointers);
  return read_outputs(check);
}

/// Moves outputs to the inputs that they may lie on; false when there are none.
bool Workload::place_in_inputs(Check& check) {
  bool any = false;
  for (const Output& output : check.outputs) {
    if (output.spec.in_place_of < 0) continue;
    check.pointers[output.buffer] = check.pointers[static_cast<std::size_t>(output.spec.in_place_of)];
    any = true;
  }
  return any;
}

void Workload::refill_updated(const Check& check) {
  for (const Output& output : check.outputs)
    if (output.spec.is_updated) fill_input(check, output.buffer);
}

void Workload::poison(const Check& check, std::byte fill) {
  for (const Output& output : check.outputs)
    if (!output.spec.is_updated)
      device_->fill_bytes(check.pointers[output.buffer], std::to_integer<int>(fill), output.spec.size_bytes(), stream_);
  refill_updated(check);
}

/// Names what a call has written though it must not; "" when there is nothing.
std::string Workload::damage(const Check& check) {
  std::vector<RepeatedBytes> runs;
  check.canaries.append_runs(runs);
  const std::size_t canaries = runs.size();
  std::vector<std::size_t> inputs;  // of the further runs
  for (std::size_t i = 0; i < check.inputs.size(); ++i) append_ends(check, i, runs, inputs);
  const std::vector<std::size_t> differences = device_->first_differences(runs, stream_);
  if (std::string fault = check.canaries.overwritten(std::span(differences).first(canaries)); !fault.empty())
    return fault;
  for (std::size_t run = canaries; run < runs.size(); ++run) {
    if (differences[run] == runs[run].bytes) continue;
    const std::size_t input = inputs[run - canaries];
    const std::byte* const at = runs[run].found + differences[run];
    return fmt::format("wrote to the input '{}', at byte {}", check.inputs[input].name,
                       at - static_cast<const std::byte*>(check.pointers[input]));
  }
  return "";
}

/// The first and the last bytes of an input that no output lies on, which must be its pattern still.
void Workload::append_ends(const Check& check, std::size_t input, std::vector<RepeatedBytes>& runs,
                           std::vector<std::size_t>& inputs) const {
  const auto outputs = check.pointers.begin() + static_cast<std::ptrdiff_t>(check.inputs.size());
  const bool is_replaced = std::find(outputs, check.pointers.end(), check.pointers[input]) != check.pointers.end();
  const std::vector<std::byte>& pattern = check.patterns[input];
  if (is_replaced || check.inputs[input].is_updated || pattern.empty()) return;
  const std::size_t bytes = check.inputs[input].size_bytes();
  const auto append = [&](std::size_t begin, std::size_t count) {
    runs.push_back({.found = static_cast<const std::byte*>(check.pointers[input]) + begin,
                    .bytes = count,
                    .expected = pattern,
                    .expected_on_device = patterns_.as<std::byte>() + check.offsets[input]});
    inputs.push_back(input);
  };
  append(0, std::min(bytes, kInspectedBytes));
  if (bytes <= kInspectedBytes) return;
  const std::size_t last = (bytes - kInspectedBytes) / pattern.size() * pattern.size();
  append(last, bytes - last);
}

Workload::Check Workload::prepare(const Problem& problem, std::string_view kind) {
  Check check{.canaries = Canaries(*device_, stream_, canary_patterns_)};
  const std::vector<BufferSpec> specs = problem.family->buffers(problem);
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    std::byte* const first_copy = arrays_[i].first_copy();
    check.pointers.push_back(first_copy);
    check.canaries.add(std::string(specs[i].name), first_copy, specs[i].size_bytes());
    if (specs[i].is_input) {
      check.inputs.push_back(specs[i]);
      check.patterns.push_back(problem.family->verifier().input_pattern(problem, static_cast<int>(i), kind));
    }
    if (!specs[i].is_input || specs[i].is_updated)
      check.outputs.push_back({.spec = specs[i],
                               .buffer = i,
                               .parts = problem.family->verifier().verified_parts(problem, static_cast<int>(i))});
  }
  upload_patterns(check);
  for (std::size_t i = 0; i < check.inputs.size(); ++i) fill_input(check, i);
  return check;
}

void Workload::upload_patterns(Check& check) {
  std::size_t bytes = 0;
  for (const std::vector<std::byte>& pattern : check.patterns) {
    check.offsets.push_back(bytes);
    bytes += round_up(pattern.size(), kCopyAlignment);
  }
  if (bytes > patterns_.size_bytes()) {
    device_->synchronize(stream_);  // what is enqueued may read them
    patterns_ = DeviceBuffer(device_, bytes);
  }
  for (std::size_t i = 0; i < check.patterns.size(); ++i)
    device_->copy_to_device(patterns_.as<std::byte>() + check.offsets[i], check.patterns[i].data(),
                            check.patterns[i].size(), stream_);
  device_->synchronize(stream_);  // whatever ends the check ends the patterns in host memory
}

/// Fills an input of a check with its pattern.
void Workload::fill_input(const Check& check, std::size_t input) {
  auto* const first = static_cast<std::byte*>(check.pointers[input]);
  const std::size_t bytes = check.inputs[input].size_bytes(), period = check.patterns[input].size();
  const std::size_t begun = std::min(bytes, period);
  if (begun == 0) return;
  device_->copy_on_device(first, patterns_.as<std::byte>() + check.offsets[input], begun, stream_);
  repeat(first, begun, bytes);
}

std::vector<std::vector<std::byte>> Workload::read_outputs(const Check& check) {
  std::vector<std::vector<std::byte>> outputs;
  for (const Output& checked : check.outputs) {
    const auto element_bytes = std::size_t{info(checked.spec.dtype).size_bytes};
    const auto* const output = static_cast<const std::byte*>(check.pointers[checked.buffer]);
    std::size_t size = 0;
    for (const ElementRange& part : checked.parts) size += static_cast<std::size_t>(part.count) * element_bytes;
    std::vector<std::byte>& bytes = outputs.emplace_back(size);
    std::size_t copied = 0;
    for (const ElementRange& part : checked.parts) {
      const std::size_t part_bytes = static_cast<std::size_t>(part.count) * element_bytes;
      const std::byte* const from = output + static_cast<std::size_t>(part.first) * element_bytes;
      device_->copy_to_host(bytes.data() + copied, from, part_bytes, stream_);
      copied += part_bytes;
    }
  }
  device_->synchronize(stream_);
  return outputs;
}

void Workload::fill(void* memory, std::size_t bytes, const std::vector<std::byte>& pattern) {
  auto* const first = static_cast<std::byte*>(memory);
  std::size_t filled = std::min(bytes, pattern.size());
  if (filled == 0) return;
  device_->copy_to_device(first, pattern.data(), filled, stream_);
  device_->synchronize(stream_);  // the pattern is the caller's
  repeat(first, filled, bytes);
}

void Workload::repeat(std::byte* first, std::size_t period, std::size_t bytes) {
  std::size_t filled = period;
  while (filled < bytes) {  // whole periods double until the rest fits
    const std::size_t step = std::min(filled, bytes - filled);
    device_->copy_on_device(first + filled, first, step, stream_);
    filled += step;
  }
}

Workspaces::Workspaces(std::shared_ptr<Device> device, std::size_t bytes, Stream stream)
    : device_(std::move(device)),
      stride_bytes_(bytes > 0 ? round_up(bytes, kCopyAlignment) + kStaggerBytes : 0),
      memory_(device_, kCount * stride_bytes_) {
  clear(stream);
}

void* Workspaces::of_turn(std::size_t turn) const {
  return stride_bytes_ > 0 ? memory_.as<std::byte>() + turn % kCount * stride_bytes_ : nullptr;
}

void Workspaces::clear(Stream stream) const {
  if (stride_bytes_ > 0) device_->fill_bytes(memory_.data(), 0, memory_.size_bytes(), stream);
}

}  // namespace hone
