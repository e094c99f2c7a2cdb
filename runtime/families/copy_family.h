// The copy family: every parameter is a choice of copy.cuh.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <hone/copy.h>
#include <hone/kernel_family.h>

namespace hone {

/// Extents {rows, columns, 1}; buffers {in, out}.
class CopyFamily final : public KernelFamily {
 public:
  CopyFamily();

  std::string_view name() const override { return "copy"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 2> kExtentNames{"rows", "columns"};
    return kExtentNames;
  }
  int version() const override { return 1; }
  const ParameterSpace& space() const override { return space_; }
  std::span<const std::string_view> operations() const override;
  std::span<const SourceFile> sources() const override;

  std::string refuse(const Problem& problem) const override;
  std::string reject(const Problem& problem, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const Problem& problem, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::int64_t bytes_moved(const Problem& problem) const override;
  std::size_t workspace_bytes(const Problem&, const Candidate&) const override { return 0; }
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::vector<Problem> verified_problems(const Problem& problem) const override;
  std::vector<ElementRange> verified_parts(const Problem& problem, int buffer) const override;
  std::string verify(const Problem& problem, const Candidate& candidate,
                     std::span<const std::vector<std::byte>> patterns,
                     std::span<const std::vector<std::byte>> outputs) const override;

 private:
  ParameterSpace space_;
};

}  // namespace hone
