#include "runtime/families/built_in_family.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/families/counts.h"
#include "runtime/jit/include_closure.h"

namespace hone {
namespace {

/// The reason with both numbers, where there are more than there may be.
Reason more_than(ReasonCode code, std::int64_t count, std::int64_t most) {
  return count <= most ? Reason() : Reason(code, {static_cast<double>(count), static_cast<double>(most)});
}

}  // namespace

std::span<const SourceFile> BuiltInFamily::sources() const {
  std::call_once(has_sources_, [&] {
    sources_ = kernel_sources(traits_.kernels);
    sources_.insert(sources_.end(), traits_.sources.begin(), traits_.sources.end());
  });
  return sources_;
}

std::int64_t BuiltInFamily::bytes_moved(const Problem& problem) const {
  std::int64_t bytes = 0;
  for (const BufferSpec& buffer : buffers(problem)) bytes += static_cast<std::int64_t>(buffer.size_bytes());
  return bytes;
}

std::string BuiltInFamily::refuse(const Problem& problem) const {
  if (problem.operation >= operations().size()) return fmt::format("{} has no operation {}", name(), problem.operation);
  const Extents& extents = problem.extents;
  std::string fault;
  if (std::ranges::min(extents) < 0)
    fault = "no extent can be negative";
  else if (std::any_of(extents.begin() + extent_names().size(), extents.end(), [](auto extent) { return extent != 1; }))
    fault = fmt::format("the extents are {}", fmt::join(extent_names(), " × "));
  else
    fault = first_fault({fault_of(problem), rows_fault("input", rows(problem, 0), bytes_of(problem.dtype)),
                         rows_fault("output", rows(problem, 1), bytes_of(problem.result.value_or(problem.dtype)))});
  if (fault.empty() && alignment_of_rows(problem) < problem.alignment)
    fault = fmt::format("its rows are aligned to {} bytes, not {}", alignment_of_rows(problem), problem.alignment);
  return fault.empty() ? "" : fmt::format("{}: {}", to_string(problem), fault);
}

Problem with_alignment_of_rows(Problem problem, std::uint32_t alignment) {
  problem.alignment = alignment;
  problem.alignment = static_cast<const BuiltInFamily&>(*problem.family).alignment_of_rows(problem);
  return problem;
}

std::string choice_fault(const Problem& problem, DType accumulator) {
  if (problem.accumulator.value_or(accumulator) != accumulator)
    return fmt::format("it is accumulated in {}", info(accumulator).name);
  return problem.nan == NanPolicy::propagate ? "" : "a NaN cannot be ignored";
}

std::string size_fault(std::string_view elements, std::int64_t count, std::int64_t bytes) {
  if (product_within_memory({count, bytes})) return "";
  return fmt::format("no memory holds {} {} of {} bytes", count, elements, bytes);
}

std::string rows_fault(std::string_view array, const Rows& rows, std::int64_t element_bytes) {
  const auto [batch, count, length, pitch, parts] = rows;
  if (pitch < length)
    return fmt::format(
        "rows of {} elements in the {} at a pitch of {}: rows would overlap; pass at least {}, or 0 for rows without "
        "gaps",
        length, array, pitch, length);
  // Rows of nothing must be countable, too.
  if (product_within_memory({at_least_one(batch), at_least_one(count), at_least_one(pitch), parts * element_bytes}))
    return "";
  return fmt::format("{} × {} rows {} elements apart in the {}: no memory holds them", batch, count, pitch, array);
}

BufferSpec input(std::string_view name, DType dtype, std::int64_t elements, std::int64_t alignment) {
  return {.name = name,
          .is_input = true,
          .dtype = dtype,
          .elements = elements,
          .alignment = static_cast<std::uint32_t>(alignment)};
}

BufferSpec output(std::string_view name, DType dtype, std::int64_t elements, std::int64_t alignment) {
  BufferSpec spec = input(name, dtype, elements, alignment);
  spec.is_input = false;
  return spec;
}

std::string first_fault(std::initializer_list<std::string> faults) {
  for (const std::string& fault : faults)
    if (!fault.empty()) return fault;
  return "";
}

Reason first_reason(std::initializer_list<Reason> reasons) {
  for (const Reason& reason : reasons)
    if (!reason.empty()) return reason;
  return {};
}

Reason check_blocks(const DeviceFacts& facts, int block_threads, int cluster_blocks) {
  using enum ReasonCode;
  return first_reason(
      {more_than(too_many_threads, block_threads, facts.max_threads_per_block),
       cluster_blocks == 1 ? Reason() : more_than(cluster_too_large, cluster_blocks, facts.max_cluster_blocks)});
}

bool has_bulk_copies(const DeviceFacts& facts) { return is_host(facts) || facts.compute_capability >= 90; }

Reason check_smem(const DeviceFacts& facts, std::int64_t bytes) {
  return more_than(ReasonCode::device_smem, bytes, facts.smem_bytes_per_block_optin);
}

Reason check_static_smem(std::int64_t bytes) {
  return more_than(ReasonCode::static_smem, bytes, kMostStaticSmemBytes);
}

std::string kernel_entry(std::string_view body, std::int32_t block_threads, MinBlocks min_blocks) {
  const std::int32_t threads = threads_of_sm(min_blocks);
  if (threads == 0) return fmt::format("hone::kernel<&{}, {}>", body, block_threads);
  return fmt::format("hone::kernel<&{}, {}, {}>", body, block_threads, std::max(1, threads / block_threads));
}

}  // namespace hone
