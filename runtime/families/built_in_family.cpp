#include "runtime/families/built_in_family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/families/counts.h"
#include "runtime/jit/include_closure.h"

namespace hone {

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

std::string BuiltInFamily::refuse_usual(const Problem& problem, DType accumulator) const {
  if (problem.operation >= operations().size()) return fmt::format("{} has no operation {}", name(), problem.operation);
  const auto refused = [&](std::string_view why) { return fmt::format("{}: {}", to_string(problem), why); };
  if (problem.accumulator.value_or(accumulator) != accumulator)
    return refused(fmt::format("is accumulated in {}", info(accumulator).name));
  if (problem.nan != NanPolicy::propagate) return refused("a NaN cannot be ignored");
  for (const std::int64_t extent : problem.extents)
    if (extent < 0) return refused(fmt::format("an extent of {} is negative", extent));
  for (std::size_t i = extent_names().size(); i < problem.extents.size(); ++i)
    if (problem.extents[i] != 1) return refused(fmt::format("the extents are {}", fmt::join(extent_names(), " × ")));
  return "";
}

std::string refuse_rows(std::string_view family, std::string_view array, const Rows& rows, std::int64_t element_bytes) {
  const auto [batch, count, length, pitch, parts] = rows;
  if (pitch < length)
    return fmt::format(
        "{} was asked for rows of {} elements in the {} at a pitch of {}: rows would overlap; pass at least {}, or 0 "
        "for rows without gaps",
        family, length, array, pitch, length);
  // Rows of nothing must be countable, too.
  const auto countable = [](std::int64_t extent) { return std::max<std::int64_t>(extent, 1); };
  if (product_within_memory({countable(batch), countable(count), countable(pitch), parts * element_bytes})) return "";
  return fmt::format("{} was asked for {} × {} rows {} elements apart in the {}: no memory holds them", family, batch,
                     count, pitch, array);
}

std::string refuse_rows(std::string_view family, const Rows& in, const Rows& out,
                        std::array<std::int64_t, 2> element_bytes) {
  std::string refusal = refuse_rows(family, "input", in, element_bytes[0]);
  return refusal.empty() ? refuse_rows(family, "output", out, element_bytes[1]) : refusal;
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

Reason first_reason(std::initializer_list<Reason> reasons) {
  for (const Reason& reason : reasons)
    if (!reason.empty()) return reason;
  return {};
}

Reason check_blocks(const DeviceFacts& facts, int block_threads, int cluster_blocks) {
  using enum ReasonCode;
  if (block_threads > facts.max_threads_per_block)
    return {too_many_threads, {double(block_threads), double(facts.max_threads_per_block)}};
  if (cluster_blocks > std::max(1, facts.max_cluster_blocks))
    return {cluster_too_large, {double(cluster_blocks), double(facts.max_cluster_blocks)}};
  return {};
}

Reason check_smem(const DeviceFacts& facts, std::int64_t bytes) {
  if (bytes <= facts.smem_bytes_per_block_optin) return {};
  return {ReasonCode::device_smem,
          {static_cast<double>(bytes), static_cast<double>(facts.smem_bytes_per_block_optin)}};
}

Reason check_static_smem(std::int64_t bytes) {
  if (bytes <= kMostStaticSmemBytes) return {};
  return {ReasonCode::static_smem, {static_cast<double>(bytes), static_cast<double>(kMostStaticSmemBytes)}};
}

std::string kernel_entry(std::string_view body, std::int32_t block_threads, MinBlocks min_blocks) {
  constexpr std::array<std::int32_t, 4> kThreadsOfSm{1, 0, 1536, 1024};  // as in MinBlocks
  const std::int32_t threads = kThreadsOfSm[static_cast<std::size_t>(min_blocks)];
  if (threads == 0) return fmt::format("hone::kernel<&{}, {}>", body, block_threads);
  return fmt::format("hone::kernel<&{}, {}, {}>", body, block_threads, std::max(1, threads / block_threads));
}

}  // namespace hone
