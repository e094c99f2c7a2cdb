// TotalFamily: a small kernel family for tests, whose kernels FakeDevice runs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hone/kernel_family.h>

namespace hone {

/// The parts that a test may replace.
struct TotalFamilyOptions {
  std::string name = "total";
  int version = 1;
  std::vector<SourceFile> sources{{"total.cuh", "// text"}};
  ParameterSpace space{{{"threads", {128, 256}}, {"work", {1, 2, 4}}, {"finish", {0, 1}, {"alone", "joined"}}}};
  int most_threads = 1024;  ///< policies with more are rejected
  bool alone_is_one_block = false;
  int cooperative_work = 0;    ///< policies with so much work are cooperative; 0: none
  int cooperative_launch = 0;  ///< which of their launches is
  bool is_reproducible = false;
  std::vector<std::string_view> extent_names{"n"};
  std::function<std::string(const ProblemClass&, const Policy&)> rejects = {};  ///< further reasons; "": none
  std::function<Reason(const ProblemClass&, const Policy&)> prunes = {};
  std::string source_comment = {};  ///< behind the spelled policy: another text of the same kernel
  std::vector<std::string_view> operations{"total"};  ///< all do the same
  std::string arithmetic = {};
};

/// Adds up n integers, or all of a shape: buffers {in: i32[n], out: i64[1]}. Every other dtype is refused.
///
/// A unit's source is the spelled policy, which is how FakeDevice knows what it runs. `joined` policies need a
/// workspace and two launches, the first of which leaves the total there; `alone` ones are one launch.
class TotalFamily final : public KernelFamily {
 public:
  TotalFamily() = default;
  explicit TotalFamily(TotalFamilyOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return options_.name; }
  int version() const override { return options_.version; }
  const ParameterSpace& space() const override { return options_.space; }
  std::span<const std::string_view> operations() const override { return options_.operations; }
  std::span<const std::string_view> extent_names() const override { return options_.extent_names; }
  std::span<const SourceFile> sources() const override { return options_.sources; }

  std::string refuse(const Problem& problem) const override;
  bool offers_reproducible(const Problem&) const override { return options_.is_reproducible; }
  std::string arithmetic(const Problem&) const override { return options_.arithmetic; }
  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const override;
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const override;
  WorkShape shape(const Problem& problem, const Policy& policy) const override;
  std::int64_t bytes_moved(const Problem& problem) const override;
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const override;
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const override;
  std::vector<BufferSpec> buffers(const Problem& problem) const override;
  const Verifier& verifier() const override;

  Problem problem(std::int64_t n, std::int64_t columns = 1) const {
    return {.family = this, .dtype = DType::i32, .extents = {n, columns, 1}};
  }

 private:
  TotalFamilyOptions options_;
};

}  // namespace hone
