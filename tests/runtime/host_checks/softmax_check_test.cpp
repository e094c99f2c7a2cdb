// The softmax templates under the checks of the host device: one policy of every kind that runs there, in several
// orders of threads and blocks, in place and not. Clusters run on a GPU alone.
#include <gtest/gtest.h>

#include <hone/error.h>
#include <hone/host_check.h>
#include <hone/softmax.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/choose/compiled.h"
#include "tests/runtime/support/sanitized.h"
#include "tests/support/share.h"

namespace hone::test {
namespace {

struct SoftmaxCase {
  std::string_view name;
  Problem problem;
  std::string_view policy;
  bool in_place = false;
  std::int64_t blocks = 5;
};
std::ostream& operator<<(std::ostream& out, const SoftmaxCase& one) { return out << one.name; }

const SoftmaxSpec kHalves{.dtype = DType::f16};
const SoftmaxSpec kHalvesToFloats{.dtype = DType::f16, .result = DType::f32, .scale = 0.5};
const SoftmaxSpec kReproducible{.dtype = DType::f16, .numerics = Numerics::reproducible};
const SoftmaxSpec kReproducibleFloats{.scale = -2, .numerics = Numerics::reproducible};

std::vector<SoftmaxCase> cases() {
  return {
      {"OneLaneARow", softmax_problem({}, SoftmaxShape::rows(530, 8)),
       "scope=warp threads_per_row=1 block_threads=128 staging=direct packs_per_thread=4 min_blocks=1"},
      {"LanesWithEnds", log_softmax_problem(kHalves, SoftmaxShape::rows(13, 203)),
       "scope=warp threads_per_row=16 block_threads=128 staging=direct packs_per_thread=2 min_blocks=1", true},
      {"Tiles", softmax_problem({.scale = -2}, SoftmaxShape::rows(300, 7)),
       "scope=warp threads_per_row=2 block_threads=128 staging=shared min_blocks=1", true},
      {"TilesOfPitchedRows", softmax_problem(kHalvesToFloats, SoftmaxShape::rows(40, 21, {23, 22})),
       "scope=warp threads_per_row=8 block_threads=128 staging=shared min_blocks=1"},
      {"BlockInRegisters", softmax_problem({}, SoftmaxShape::rows(9, 1027), 4),
       "scope=block block_threads=128 staging=direct packs_per_thread=2 min_blocks=1", true},
      {"BlockThatReadsSomeTwice", log_softmax_problem({}, SoftmaxShape::rows(5, 1400)),
       "scope=block block_threads=128 staging=direct packs_per_thread=2 min_blocks=1", true},
      {"BlockInSharedMemory", softmax_problem({}, SoftmaxShape::rows(5, 1027)),
       "scope=block block_threads=128 staging=shared smem_kib=48 min_blocks=1"},
      {"Chunks", softmax_problem({}, SoftmaxShape::rows(3, 12001)),
       "scope=grid combine=second_kernel block_threads=128 packs_per_thread=2 min_blocks=1", true},
      {"Pipeline", softmax_problem(kHalves, SoftmaxShape::rows(37, 65539)),
       "scope=grid combine=pipeline block_threads=128 packs_per_thread=8 min_blocks=1", true},
      {"Held", softmax_problem(kHalves, SoftmaxShape::rows(19, 5001)),
       "scope=grid combine=held ring_kib=32 row_groups=1 block_threads=512 packs_per_thread=2 min_blocks=1", true, 1},
      {"HeldByTwoGroups", softmax_problem(kHalves, SoftmaxShape::rows(19, 3001)),
       "scope=grid combine=held ring_kib=32 row_groups=2 block_threads=512 packs_per_thread=2 min_blocks=1", true, 1},
      {"HeldInPart", softmax_problem(kHalves, SoftmaxShape::rows(5, 20001)),
       "scope=grid combine=held ring_kib=32 row_groups=1 block_threads=512 packs_per_thread=2 min_blocks=1", true, 1},
      {"ReproducibleLanes", log_softmax_problem(kReproducible, SoftmaxShape::rows(21, 61)),
       "scope=warp threads_per_row=4 block_threads=128 staging=direct packs_per_thread=4 min_blocks=unset", true},
      {"ReproducibleBlockInRegisters", softmax_problem(kReproducible, SoftmaxShape::rows(5, 4093)),
       "scope=block block_threads=128 staging=direct packs_per_thread=4 min_blocks=unset", true},
      {"ReproducibleBlockInSharedMemory", softmax_problem(kReproducibleFloats, SoftmaxShape::rows(5, 1533)),
       "scope=block block_threads=128 staging=shared smem_kib=48 min_blocks=unset", true},
      {"ReproducibleSpans", softmax_problem(kReproducible, SoftmaxShape::rows(3, 20001)),
       "scope=grid combine=second_kernel block_threads=128 packs_per_thread=8 min_blocks=unset", true},
      {"Columns", softmax_problem({}, SoftmaxShape::axis(2, 90, 20)),
       "scope=block lanes=4 block_threads=256 packs_per_thread=1 staging=direct min_blocks=1", true},
      {"ColumnsInChunks", log_softmax_problem(kHalves, SoftmaxShape::columns(700, 6)),
       "scope=grid lanes=2 block_threads=256 packs_per_thread=1 staging=direct min_blocks=1", true},
      {"ColumnsThatBeginAnywhere", softmax_problem(kHalves, SoftmaxShape::axis(2, 90, 29)),
       "scope=block lanes=4 block_threads=256 packs_per_thread=1 staging=phase_matched min_blocks=1", true},
      {"ColumnsThatBeginAnywhereInChunks", log_softmax_problem(kHalves, SoftmaxShape::columns(300, 23, {26, 25})),
       "scope=grid lanes=4 block_threads=256 packs_per_thread=2 staging=phase_matched min_blocks=1"},
      {"ColumnsOfLessThanAPack", softmax_problem(kHalves, SoftmaxShape::columns(2, 3)),
       "scope=block lanes=2 block_threads=256 packs_per_thread=1 staging=phase_matched min_blocks=1"},
  };
}

class SoftmaxCheck : public testing::TestWithParam<SoftmaxCase> {};

TEST_P(SoftmaxCheck, IsRightInEveryOrder) {
  const auto& [name, problem, policy_text, in_place, blocks] = GetParam();
  if (!in_share(name)) GTEST_SKIP() << kNotInShare;
  const KernelFamily& family = *problem.family;
  const std::optional<Policy> policy = family.space().parse(policy_text);
  ASSERT_TRUE(policy) << policy_text;
  const std::vector<BufferSpec> specs = family.buffers(problem);
  std::vector<std::byte> input(specs[0].size_bytes());
  const std::vector<std::byte> pattern = family.verifier().input_pattern(problem, 0, "masked");
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = pattern[i % pattern.size()];

  HostCheck check;
  check.unit = unit_of(problem, *policy);
  check.looks_for_lost_updates = !kSanitized;
  check.buffers = {{"in", input}, {"out", std::vector<std::byte>(specs[1].size_bytes())},
                   {"workspace", std::vector<std::byte>(std::size_t{1} << 15)}};
  check.orders = {{}, {HostOrder::Kind::reverse, 0}, {HostOrder::Kind::random, 1}};
  if (kSanitized) check.orders.resize(1);
  check.run = [&](const HostRun& run) {
    const Candidate candidate{*policy, {blocks}};
    auto* const out = run.buffer<std::byte>(in_place ? 0 : 1);
    LaunchList launches;
    family.encode(problem, candidate, std::vector<void*>{run.buffer<std::byte>(0), out}, run.buffer<void>(2), launches);
    for (const Launch& launch : launches) run.launch(launch);
    const auto* const header = run.buffer<std::byte>(2);
    if (std::any_of(header, header + kWorkspaceHeaderBytes, [](std::byte byte) { return byte != std::byte{0}; }))
      throw Error(ErrorCode::device_failed, "the header of the workspace is not zero as it was before");
    std::vector<std::byte> parts;
    const std::size_t bytes = info(specs[1].dtype).size_bytes;
    for (const ElementRange& part : family.verifier().verified_parts(problem, 1)) {
      const std::byte* const first = out + static_cast<std::size_t>(part.first) * bytes;
      parts.insert(parts.end(), first, first + static_cast<std::size_t>(part.count) * bytes);
    }
    const std::vector<std::byte> outputs[] = {parts};
    const std::string wrong = family.verifier().verify(problem, candidate, std::span(&pattern, 1), outputs);
    if (!wrong.empty()) throw Error(ErrorCode::device_failed, to_string(problem) + ": " + wrong);
  };
  const HostCheckReport report = check_on_host(check);
  EXPECT_TRUE(report.ok()) << check.unit.name << "\n" << report.failure;
}

INSTANTIATE_TEST_SUITE_P(Kinds, SoftmaxCheck, testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace hone::test
