#include "tests/runtime/support/total_family.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace hone {
namespace {

constexpr std::array<std::string_view, 2> kInputKinds{"ones", "ramp"};
constexpr std::int64_t kPeriod = 1009;
constexpr int kThreads = 0, kWork = 1, kFinish = 2;
constexpr std::int32_t kJoined = 1;

std::int64_t count_of(const Problem& problem) {
  return problem.extents[0] * problem.extents[1] * problem.extents[2];
}

std::vector<std::int32_t> values_of(std::int64_t n, std::string_view kind) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(std::min(n, kPeriod)), 1);
  if (kind == "ramp")
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i) - 500;
  return values;
}

class TotalVerifier final : public Verifier {
 public:
  std::span<const std::string_view> input_kinds(const Problem& problem) const override;
  std::vector<std::byte> input_pattern(const Problem& problem, int buffer, std::string_view kind) const override;
  std::string verify(const Problem& problem, const Candidate& candidate, ArrayBytes patterns,
                     ArrayBytes outputs) const override;
};

std::span<const std::string_view> TotalVerifier::input_kinds(const Problem&) const { return kInputKinds; }

std::vector<std::byte> TotalVerifier::input_pattern(const Problem& problem, int, std::string_view kind) const {
  const std::vector<std::int32_t> values = values_of(count_of(problem), kind);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::string TotalVerifier::verify(const Problem& problem, const Candidate&, ArrayBytes patterns,
                                  ArrayBytes outputs) const {
  std::vector<std::int32_t> pattern(patterns[0].size() / sizeof(std::int32_t));
  if (!pattern.empty()) std::memcpy(pattern.data(), patterns[0].data(), patterns[0].size());
  std::int64_t expected = 0;
  for (std::int64_t i = 0; i < count_of(problem); ++i)
    expected += pattern[static_cast<std::size_t>(i) % pattern.size()];
  std::int64_t found = 0;
  std::memcpy(&found, outputs[0].data(), sizeof(found));
  return found == expected ? "" : fmt::format("expected {}, found {}", expected, found);
}

}  // namespace

std::string TotalFamily::refuse(const Problem& problem) const {
  if (problem.dtype != DType::i32) return "total adds i32 alone";
  const auto is_negative = [](std::int64_t extent) { return extent < 0; };
  return std::any_of(problem.extents.begin(), problem.extents.end(), is_negative) ? "a size cannot be negative" : "";
}

Reason TotalFamily::is_valid(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts&) const {
  if (options_.rejects)
    if (std::string why = options_.rejects(problem_class, policy); !why.empty()) return why;
  return policy[kThreads] > options_.most_threads ? "too many threads" : "";
}

Reason TotalFamily::prune(const ProblemClass& problem_class, const Policy& policy, const DeviceFacts&) const {
  return options_.prunes ? options_.prunes(problem_class, policy) : Reason{};
}

Unit TotalFamily::unit(const ProblemClass&, const Policy& policy) const {
  using Entries = std::vector<std::string>;
  return {.name = options_.space.to_string(policy),
          .source = options_.space.to_string(policy) + options_.source_comment,
          .headers = {},
          .entries = policy[kFinish] == kJoined ? Entries{"total", "total_finish"} : Entries{"total"}};
}

WorkShape TotalFamily::shape(const Problem& problem, const Policy& policy) const {
  const std::int64_t tile = std::int64_t{policy[kThreads]} * policy[kWork];
  return {.block_threads = policy[kThreads],
          .tiles = std::max<std::int64_t>(1, (count_of(problem) + tile - 1) / tile),
          .bytes_in_flight_per_block = 4 * tile,
          .one_block = options_.alone_is_one_block && policy[kFinish] != kJoined,
          .launches = policy[kFinish] == kJoined ? 2 : 1,
          .uses_last_block_ticket = false,
          .cooperative = policy[kWork] == options_.cooperative_work};
}

std::int64_t TotalFamily::bytes_moved(const Problem& problem) const { return 4 * count_of(problem) + 8; }

std::size_t TotalFamily::workspace_bytes(const ProblemClass&, const Candidate& candidate) const {
  if (candidate.policy[kFinish] != kJoined) return 0;
  return kWorkspaceHeaderBytes + 8 * static_cast<std::size_t>(candidate.geometry.max_blocks);
}

void TotalFamily::encode(const Problem& problem, const Candidate& candidate, std::span<void* const> buffers,
                         void* workspace, LaunchList& launches) const {
  const WorkShape work = shape(problem, candidate.policy);
  Launch& main = launches.add();
  main.grid.x = static_cast<unsigned>(std::min(candidate.geometry.max_blocks, work.tiles));
  main.block.x = static_cast<unsigned>(work.block_threads);
  main.arguments.push(buffers[0]);
  main.arguments.push(count_of(problem));
  main.cooperative = work.cooperative && options_.cooperative_launch == 0;
  if (main.cooperative) main.grid.x = static_cast<unsigned>(candidate.geometry.max_blocks);
  if (work.launches == 1) {
    main.arguments.push(buffers[1]);
    return;
  }
  void* const partials = static_cast<std::byte*>(workspace) + kWorkspaceHeaderBytes;
  main.arguments.push(partials);
  Launch& finish = launches.add();
  finish.entry = 1;
  finish.cooperative = work.cooperative && options_.cooperative_launch == 1;
  finish.block = main.block;
  finish.arguments.push(partials);
  finish.arguments.push(std::int64_t{1});
  finish.arguments.push(buffers[1]);
}

std::vector<BufferSpec> TotalFamily::buffers(const Problem& problem) const {
  return {{.name = "in", .is_input = true, .dtype = DType::i32, .elements = count_of(problem)},
          {.name = "out", .is_input = false, .dtype = DType::i64, .elements = 1}};
}

const Verifier& TotalFamily::verifier() const {
  static const TotalVerifier verifier;
  return verifier;
}

}  // namespace hone
