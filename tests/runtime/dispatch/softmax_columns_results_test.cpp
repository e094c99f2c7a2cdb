// Softmax of columns of rows that begin anywhere, on a real device. Policies are launched directly.
#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hone/softmax.h>

#include "runtime/choose/compiled.h"
#include "runtime/dispatch/workspace_pool.h"
#include "runtime/families/softmax/softmax_base.h"
#include "runtime/measure/loaded_candidate.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/support/share.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) static_cast<void>(0)
#endif

namespace hone {
namespace {

class SoftmaxColumnsResults : public DeviceTest {
 protected:
  /// Launches a policy for columns on arrays that begin so many elements behind aligned addresses, and compares it with
  /// the reference; what lies between rows, and around the results, must be left alone. In place if in_place.
  void expect_right(const Problem& problem, const LoadedCandidate& loaded, std::string_view kind,
                    std::size_t in_offset, std::size_t out_offset, bool in_place) {
    constexpr std::size_t kMargin = 16;
    const std::byte poison{0xA5};
    const std::vector<BufferSpec> specs = problem.family->buffers(problem);
    const std::vector<std::byte> pattern = problem.family->verifier().input_pattern(problem, 0, kind);
    std::vector<std::byte> input(specs[0].size_bytes());
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = pattern[i % pattern.size()];
    const std::size_t in_bytes = info(specs[0].dtype).size_bytes, out_bytes = info(specs[1].dtype).size_bytes;
    std::vector<std::byte> before(in_place ? in_offset * in_bytes : out_offset * out_bytes + kMargin, poison);
    const std::size_t begin = before.size();
    if (in_place) before.insert(before.end(), input.begin(), input.end());
    before.resize(begin + specs[1].size_bytes() + kMargin, poison);
    const Array<std::byte> in = upload(input, in_offset * in_bytes), memory = upload(before);
    std::byte* const out = memory.data + begin;
    const DeviceBuffer workspace = make_workspaces(device_, 1);
    // The bytes before the input belong to its allocation, but no kernel may read them. Behind it the allocation ends.
    if (!is_cuda()) ASAN_POISON_MEMORY_REGION(in.memory.data(), in_offset * in_bytes);
    loaded.enqueue(*device_, problem, std::array<void*, 2>{in_place ? out : in.data, out}, workspace.data(), nullptr);
    device_->synchronize(nullptr);
    if (!is_cuda()) ASAN_UNPOISON_MEMORY_REGION(in.memory.data(), in_offset * in_bytes);
    std::vector<std::byte> after(before.size());
    device_->copy_to_host(after.data(), memory.data, after.size(), nullptr);
    device_->synchronize(nullptr);

    const std::string what = to_string(problem) + " " + problem.family->space().to_string(loaded.candidate.policy);
    const std::int64_t pitch = SoftmaxBase::pitch(problem, 1);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const bool is_inside = i >= begin && i < begin + specs[1].size_bytes();
      if (is_inside && static_cast<std::int64_t>((i - begin) / out_bytes) % pitch < problem.extents[2]) continue;
      ASSERT_EQ(after[i], before[i]) << "byte " << static_cast<std::int64_t>(i - begin) << " is no result of " << what;
    }
    std::vector<std::byte> parts;
    for (const ElementRange& part : problem.family->verifier().verified_parts(problem, 1)) {
      const auto* const first = after.data() + begin + static_cast<std::size_t>(part.first) * out_bytes;
      parts.insert(parts.end(), first, first + static_cast<std::size_t>(part.count) * out_bytes);
    }
    const std::vector<std::byte> outputs[] = {parts};
    EXPECT_EQ(problem.family->verifier().verify(problem, loaded.candidate, std::span(&pattern, 1), outputs), "")
        << what << " " << kind << " offsets " << in_offset << ", " << out_offset << (in_place ? " in place" : "");
  }
};

/// Columns of rows that begin anywhere: of fewer elements than a pack, around those of a tile, and of several tiles;
/// rows that a thread holds, that it reads twice, and that blocks share; input and output of the same alignment or not,
/// of the same width or not, with gaps and in place. Whole arrays are smaller than a pack, too.
TEST_F(SoftmaxColumnsResults, RowsMayBeginAnywhere) {
  struct Shape {
    SoftmaxSpec spec;
    std::int64_t outer, reduced, inner;
    std::int64_t in_gap = 0, out_gap = 0;
  };
  const SoftmaxSpec halves{.dtype = DType::f16}, wider{.dtype = DType::f16, .result = DType::f32, .scale = -2},
      narrower{.dtype = DType::f32, .result = DType::bf16}, doubles{.dtype = DType::f64, .scale = 0.5};
  constexpr std::int64_t kBlocks = 6;
  std::size_t turn = 0, policies_met = 0;
  const auto verify = [&](std::string_view policy_text, const std::vector<Shape>& shapes) {
    std::shared_ptr<const Module> module;
    Unit unit;
    const bool is_log = ++turn % 3 == 0;
    for (const Shape& shape : shapes) {
      const SoftmaxShape axis = SoftmaxShape::axis(shape.outer, shape.reduced, shape.inner,
                                                   {shape.inner + shape.in_gap, shape.inner + shape.out_gap});
      const Problem problem =
          is_log ? log_softmax_problem(shape.spec, axis, 2) : softmax_problem(shape.spec, axis, 2);
      const std::optional<Policy> policy = problem.family->space().parse(policy_text);
      ASSERT_TRUE(policy) << policy_text;
      if (!is_cuda() && policy_text.find("cluster") != std::string_view::npos) continue;
      ASSERT_EQ(problem.family->is_valid(problem, *policy, device_->facts()).text(), "") << to_string(problem);
      if (!module || unit_of(problem, *policy).source != unit.source) {
        if (!test::in_share(policies_met++)) continue;
        unit = unit_of(problem, *policy);
        const auto binary = std::make_shared<const Binary>(device_->compile(unit));
        module = load_policy(*device_, problem, *policy, unit, binary).module;
      }
      const LoadedCandidate loaded{{*policy, {kBlocks}}, module};
      for (const auto& [in_offset, out_offset] : {std::pair<std::size_t, std::size_t>{0, 0}, {1, 1}, {5, 3}, {7, 0}})
        for (const std::string_view kind : {"masked", "nan"})
          expect_right(problem, loaded, kind, in_offset, out_offset, false);
      if (shape.spec.dtype == shape.spec.result_dtype() && shape.in_gap == shape.out_gap)
        for (const std::size_t offset : {0u, 1u, 6u})
          expect_right(problem, loaded, "uniform", offset, offset, true);
    }
  };
  const std::string two = " lanes=2 block_threads=256 packs_per_thread=1 staging=phase_matched min_blocks=unset";
  const std::string four = " lanes=4 block_threads=256 packs_per_thread=2 staging=phase_matched min_blocks=unset";
  const std::string many = " lanes=32 block_threads=256 packs_per_thread=4 staging=phase_matched min_blocks=unset";
  for (const std::string scope : {"scope=block", "scope=grid", "scope=cluster cluster_blocks=2"}) {
    verify(scope + two, {{halves, 1, 1, 1}, {halves, 1, 2, 3}, {halves, 2, 300, 7}, {halves, 1, 9, 5, 20, 3}});
    verify(scope + two, {{wider, 3, 129, 3}, {wider, 1, 200, 9, 1, 2}});
    verify(scope + four, {{halves, 2, 130, 23}, {halves, 1, 700, 25, 2, 2}, {halves, 1, 67, 51, 1, 3}});
    verify(scope + four, {{halves, 1, 140, 20}, {halves, 1, 141, 50, 4, 8}});
    verify(scope + four, {{narrower, 2, 67, 13}, {narrower, 1, 140, 33, 1, 2}});
    verify(scope + many, {{halves, 1, 80, 247}, {halves, 2, 40, 249}, {halves, 1, 37, 251, 6, 6}});
    verify(scope + many, {{doubles, 1, 90, 63}, {doubles, 2, 31, 131, 2, 1}});
  }
}

}  // namespace
}  // namespace hone
