// BuiltInFamily: what the library's own families have in common.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <hone/kernel_family.h>

#include "runtime/families/counts.h"
#include "runtime/families/never_destroyed.h"
#include "runtime/families/work_division.h"

namespace hone {

/// The answers of a family that are the same for all problems.
struct FamilyTraits {
  std::string_view name;
  int version = 1;
  const ParameterSpace& space;
  std::vector<std::string_view> extent_names = {"n"};
  std::vector<std::string_view> scalar_names = {};
  std::span<const std::string_view> operations = {};  ///< must outlive the family
  std::vector<std::string_view> kernels;              ///< the templates that units name
  std::vector<SourceFile> sources = {};               ///< besides them and what they include
};

/// Where the elements of an array are.
struct Rows {
  std::int64_t batch = 1, rows = 0, length = 0;  ///< matrices, the rows of each, and their elements
  std::int64_t pitch = 0;                        ///< from one row to the next
  std::int64_t parts = 1;                        ///< elements of the dtype that count as one

  /// From the first element of the dtype to the last, gaps included.
  std::int64_t elements() const {
    return batch == 0 || rows == 0 || length == 0 ? 0 : parts * ((batch * rows - 1) * pitch + length);
  }
};

class BuiltInFamily : public KernelFamily {
 public:
  explicit BuiltInFamily(FamilyTraits traits) : traits_(std::move(traits)) {}

  std::string_view name() const final { return traits_.name; }
  int version() const final { return traits_.version; }
  const ParameterSpace& space() const final { return traits_.space; }
  std::span<const std::string_view> extent_names() const final { return traits_.extent_names; }
  std::span<const std::string_view> scalar_names() const final { return traits_.scalar_names; }
  std::span<const std::string_view> operations() const final { return traits_.operations; }
  std::span<const SourceFile> sources() const final;

  /// The problem's name and its fault: an operation that the family does not have, a negative extent, one too many,
  /// that of fault_of(), or an alignment that rows do not have.
  std::string refuse(const Problem& problem) const final;

  /// The bytes of all arrays.
  std::int64_t bytes_moved(const Problem& problem) const override;

  /// The alignment that a problem has whose arrays have its alignment, and whose rows begin where its pitches say.
  virtual std::uint32_t alignment_of_rows(const Problem& problem) const { return problem.alignment; }

  /// The rows of the input (0) and of the output (1), where an array has such.
  virtual Rows rows(const Problem&, int) const { return {}; }

 protected:
  /// Returns what else is wrong with a problem, such as its dtypes, pitches or sizes; "" if nothing is.
  virtual std::string fault_of(const Problem& problem) const = 0;

 private:
  FamilyTraits traits_;
  mutable std::once_flag has_sources_;
  mutable std::vector<SourceFile> sources_;
};

/// A family of type `Base` whose answers about a policy come from a Layout: what the policy makes of a problem. It is
/// made of both at every question, also on the hit path, and has is_valid(), unit(), shape() (but for its blocks),
/// encode(), and workspace_bytes() where launches need one. Where it decides, its problem is the typical one of a
/// class, and last_of() and the like say what all members have in common. `kRules` are for pruned_by(); `Reproducible`
/// is the Layout of reproducible numerics, which has prune() as well.
template <class Base, class Layout, const auto& kRules, class Reproducible = Layout>
class LayoutFamily : public Base {
 public:
  using Base::Base;

  Reason is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const final {
    return with_layout(problem_class.typical(), policy, [&](const auto& layout) { return layout.is_valid(facts); });
  }
  Reason prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts& facts) const final {
    if constexpr (!std::is_same_v<Layout, Reproducible>)
      if (is_canonical(problem_class.typical())) return Reproducible::prune(problem_class, policy, facts);
    return pruned_by(kRules, {problem_class, policy, facts});
  }
  Unit unit(const ProblemClass& problem_class, const Policy& policy) const final {
    return with_layout(problem_class.typical(), policy, [](const auto& layout) { return layout.unit(); });
  }
  WorkShape shape(const Problem& problem, const Policy& policy) const final {
    return with_layout(problem, policy, [](const auto& layout) {
      WorkShape shape = layout.shape();
      if (shape.block_threads == 0) shape.block_threads = layout.block_threads;
      shape.dependent_launch = !shape.cooperative;
      if constexpr (requires { layout.cluster_blocks; })
        if (shape.cluster_blocks == 1) shape.cluster_blocks = layout.cluster_blocks;
      return shape;
    });
  }
  std::size_t workspace_bytes(const ProblemClass& problem_class, const Candidate& candidate) const final {
    return with_layout(problem_class.typical(), candidate.policy, [&](const auto& layout) -> std::size_t {
      if constexpr (requires { layout.workspace_bytes(1); })
        return layout.workspace_bytes(candidate.geometry.max_blocks);
      return 0;
    });
  }
  void encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers, void* workspace,
              LaunchList& launches) const final {
    with_layout(problem, candidate.policy, [&](const auto& layout) {
      std::int64_t max_blocks = candidate.geometry.max_blocks;
      if constexpr (requires { layout.most_blocks(candidate.geometry); })
        max_blocks = layout.most_blocks(candidate.geometry);
      layout.encode(max_blocks, buffers, workspace, launches);
    });
  }

  /// Overrides the function of a `Base` that has one. Reproducible results are compared bit by bit.
  std::int64_t longest_chain(const Problem& problem, const Candidate& candidate) const {
    return Layout(problem, candidate.policy).longest_chain(candidate.geometry.max_blocks);
  }

 private:
  template <class Act>
  static auto with_layout(const Problem& problem, const Policy& policy, const Act& act) {
    if constexpr (!std::is_same_v<Layout, Reproducible>)
      if (is_canonical(problem)) return act(Reproducible(problem, policy));
    return act(Layout(problem, policy));
  }
};

/// The problem with the alignment that it has where its arrays are aligned to `alignment` bytes.
Problem with_alignment_of_rows(Problem problem, std::uint32_t alignment);

/// The one family of a type.
template <class Family>
const KernelFamily& the_family() {
  static const auto& family = never_destroyed<Family>();
  return family;
}

/// The first reason that is one.
Reason first_reason(std::initializer_list<Reason> reasons);

/// The words as a reason, if `applies`.
inline Reason reason_if(bool applies, const char* words) { return applies ? Reason(words) : Reason(); }

/// Why a device has no blocks of so many threads, or no clusters of so many blocks.
Reason check_blocks(const DeviceFacts& facts, int block_threads, int cluster_blocks = 1);

/// Bulk copies and mbarriers came with compute capability 9.0. The host device has twins.
bool has_bulk_copies(const DeviceFacts& facts);

/// Why a device has no blocks with so much shared memory.
Reason check_smem(const DeviceFacts& facts, std::int64_t bytes);

/// Why a block cannot have so much static shared memory: 48 KiB are what every GPU has.
inline constexpr std::int64_t kMostStaticSmemBytes = 48 * 1024;
Reason check_static_smem(std::int64_t bytes);

/// "unsigned" or "unsigned long long": what kernels count in.
constexpr std::string_view index_type(bool is_wide) { return is_wide ? "unsigned long long" : "unsigned"; }

/// The entry of a unit that runs `body`, a function of kernel_templates/ or of what the unit calls Kernel, with launch
/// bounds: "hone::kernel<&Kernel::last_block, 256, 2>".
std::string kernel_entry(std::string_view body, std::int32_t block_threads, MinBlocks min_blocks = MinBlocks::unset);
template <class Policy>
std::string kernel_entry(std::string_view body, const Policy& policy) {
  return kernel_entry(body, policy.block_threads, policy.min_blocks);
}

/// A unit without a name of its own. Its headers are those of the family.
inline Unit unit_of(std::string source, std::vector<std::string> entries) {
  Unit unit;
  unit.source = std::move(source);
  unit.entries = std::move(entries);
  return unit;
}

/// Faults for BuiltInFamily::fault_of(); "" where there is none. A family has one accumulator and propagates NaNs, and
/// the problem asks for something else.
std::string choice_fault(const Problem& problem, DType accumulator);

/// No memory holds so many elements of so many bytes.
std::string size_fault(std::string_view elements, std::int64_t count, std::int64_t bytes);

/// The rows of an array overlap, or no memory holds them.
std::string rows_fault(std::string_view array, const Rows& rows, std::int64_t element_bytes);

/// The first fault that is one.
std::string first_fault(std::initializer_list<std::string> faults);

/// The arrays of a problem (BufferSpec).
BufferSpec input(std::string_view name, DType dtype, std::int64_t elements, std::int64_t alignment = 0);
BufferSpec output(std::string_view name, DType dtype, std::int64_t elements, std::int64_t alignment = 0);

/// A list that lives for ever, for Verifier::input_kinds(). Thread-safe.
std::span<const std::string_view> kept_kinds(std::vector<std::string_view> kinds);

/// A problem to verify on as well: with an extent that is smaller by so much, but not below 0, and other pitches.
Problem smaller(const Problem& problem, std::size_t extent, std::int64_t by, const Pitches& pitches);
inline Problem smaller(const Problem& problem, std::size_t extent) {
  return smaller(problem, extent, 1, problem.pitches);
}

/// Random elements, the same for the same seed: floats of [lowest, highest), integers and bools of all values.
std::vector<std::byte> random_pattern(DType dtype, std::int64_t elements, std::uint64_t seed, float lowest,
                                      float highest);

/// One period of random elements of a floating dtype: "uniform" in [−4, 4), or awkward. "wide" and "huge": differences
/// are large, or overflow; "subnormal"; "zeros" of both signs; "masked": a third is −∞; "nan", "infinity": the last is;
/// "all_negative_infinity".
std::vector<std::byte> float_pattern(DType dtype, std::int64_t elements, int buffer, std::string_view kind);

/// The parts of so many neighbours that are worth verifying: runs of `length` at both ends, at `starts` and at random,
/// `runs` in all. Ascending, apart from each other; everything where that is no more.
std::vector<ElementRange> spread_runs(std::int64_t count, std::int64_t length, std::int64_t runs,
                                      std::vector<std::int64_t> starts = {});

/// The parts of a matrix that are worth verifying: all of some rows, or the beginning, middle and end of long ones; the
/// first and the last row are always among them. Elements of an array whose rows begin `pitch` elements apart.
std::vector<ElementRange> row_parts(std::int64_t rows, std::int64_t columns, std::int64_t pitch);

/// Adds a launch that may overlap the one ahead (PDL), with one argument struct. The grid has at least one block.
template <class KernelArguments>
Launch& add_launch(LaunchList& launches, std::int64_t blocks, std::int64_t block_threads,
                   const KernelArguments& arguments, int entry = 0, std::int64_t cluster_blocks = 1) {
  Launch& launch = launches.add();
  launch.entry = entry;
  launch.grid.x = static_cast<unsigned>(blocks > 1 ? blocks : 1);
  launch.block.x = static_cast<unsigned>(block_threads);
  launch.dependent_launch = true;
  launch.cluster_blocks = static_cast<unsigned>(cluster_blocks);
  launch.arguments.push(arguments);
  return launch;
}

}  // namespace hone
