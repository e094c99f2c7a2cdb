// The copy family: every parameter is a choice of copy.cuh.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <hone/copy_spec.h>
#include <hone/kernel_family.h>

namespace hone {

/// The policies of copies.
struct CopyPolicy {
  enum class Hint : std::int32_t { none, streaming };

  std::int32_t block_threads = 256;
  std::int32_t unroll = 4;  ///< packs that a thread loads at once
  Hint hint = Hint::none;   ///< of the loads and stores to the caches

  static const ParameterSpace& space();
};

/// Extents {rows, columns, 1}; buffers {in, out}.
class CopyFamily final : public KernelFamily {
 public:
  std::string_view name() const override { return "copy"; }
  std::span<const std::string_view> extent_names() const override {
    static constexpr std::array<std::string_view, 2> kExtentNames{"rows", "columns"};
    return kExtentNames;
  }
  int version() const override { return 1; }
  const ParameterSpace& space() const override { return CopyPolicy::space(); }
  std::span<const std::string_view> operations() const override;
  std::span<const SourceFile> sources() const override;

  std::string refuse(const Problem& problem) const override;
  std::string is_valid(const ProblemClass& problem_class, const Policy& policy,
                       const DeviceFacts& facts) const override;
  std::string prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::int64_t bytes_moved(const Problem& problem) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;

  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  const Verifier& verifier() const override;
};

}  // namespace hone
