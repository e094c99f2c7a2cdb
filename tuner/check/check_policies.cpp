#include "tuner/check/check_policies.h"

#include <fmt/core.h>

#include <hone/error.h>
#include <hone/kernel_family.h>
#include <hone/sdk/output_fills.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "tuner/check/check_process.h"
#include "tuner/check/gpu_check.h"
#include "tuner/problems/problem_text.h"

namespace hone::tuner {
namespace {

using Contents = std::vector<std::vector<std::byte>>;

/// A grid-stride loop goes round several times; grids of one block per tile have as many as they need.
constexpr std::int64_t kPersistentBlocks = 3;

/// The arrays of a call: inputs with their first kind, outputs with kNanFill.
std::vector<CheckBuffer> filled_buffers(const Problem& problem) {
  const Verifier& verifier = problem.family->verifier();
  const std::vector<BufferSpec> specs = problem.family->buffers(problem);
  std::vector<CheckBuffer> buffers;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CheckBuffer& buffer = buffers.emplace_back();
    buffer.name = specs[i].name;
    buffer.initial.resize(specs[i].size_bytes(), kNanFill);
    if (!specs[i].is_input) continue;
    const std::vector<std::byte> period =
        verifier.input_pattern(problem, static_cast<int>(i), verifier.input_kinds(problem).front());
    for (std::size_t at = 0; at < buffer.initial.size() && !period.empty(); at += period.size())
      std::memcpy(&buffer.initial[at], period.data(), std::min(period.size(), buffer.initial.size() - at));
  }
  return buffers;
}

bool is_written(const BufferSpec& spec) { return !spec.is_input || spec.is_updated; }

/// The same with kOtherFill in outputs.
Contents other_contents(const Problem& problem, const std::vector<CheckBuffer>& buffers) {
  const std::vector<BufferSpec> specs = problem.family->buffers(problem);
  Contents contents;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    contents.push_back(buffers[i].initial);
    if (!specs[i].is_input) std::ranges::fill(contents.back(), kOtherFill);
  }
  return contents;
}

std::vector<void*> pointers_of(const HostRun& run, std::size_t count) {
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < count; ++i) pointers.push_back(run.buffer<void>(i));
  return pointers;
}

Unit with_sources(Unit unit, const KernelFamily& family) {
  unit.headers.assign(family.sources().begin(), family.sources().end());
  return unit;
}

/// The contents of what a call writes, of all buffers.
Contents outputs_of(const Problem& problem, const Contents& contents) {
  const std::vector<BufferSpec> specs = problem.family->buffers(problem);
  Contents outputs;
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (is_written(specs[i])) outputs.push_back(contents[i]);
  return outputs;
}

/// What the results of a call are over either fill of the outputs.
struct Results {
  Contents over_nan, over_other;
};

Results results_of(const Problem& problem, const HostCheckReport& report) {
  return {outputs_of(problem, report.buffers), outputs_of(problem, report.other_buffers)};
}

Results reference_results(const Problem& problem) {
  const Verifier& verifier = problem.family->verifier();
  HostCheck check{.unit = with_sources(verifier.reference_unit(problem), *problem.family),
                  .buffers = filled_buffers(problem),
                  .run = {},
                  .orders = {{}}};
  check.other_initial = other_contents(problem, check.buffers);
  check.run = [&](const HostRun& run) {
    LaunchList launches;
    verifier.encode_reference(problem, 0, pointers_of(run, check.buffers.size()), launches);
    for (const Launch& launch : launches) run.launch(launch);
  };
  const HostCheckReport report = check_on_host(check);
  if (!report.ok())
    throw Error(ErrorCode::invalid_argument, fmt::format("the reference itself is wrong: {}", report.failure));
  return results_of(problem, report);
}

/// Names the first array that a call wrote though it is only read; "" if there is none.
std::string written_input(const Problem& problem, const HostCheck& check, const HostCheckReport& report) {
  const std::vector<BufferSpec> specs = problem.family->buffers(problem);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::vector<std::byte>& initial = check.buffers[i].initial;
    const auto at = std::ranges::mismatch(initial, report.buffers[i]).in1;
    if (!is_written(specs[i]) && at != initial.end())
      return fmt::format("wrote to the input '{}', at byte {}\n  an array that the kernel also writes is an 'inout' "
                         "argument, not an 'in'",
                         specs[i].name, at - initial.begin());
  }
  return "";
}

/// Says what is wrong with the results of a run; "" if they agree with the reference.
std::string fault_of(const Problem& problem, const Candidate& candidate, const HostCheck& check,
                     const HostCheckReport& report) {
  if (std::string fault = written_input(problem, check, report); !fault.empty()) return fault;
  const Verifier& verifier = problem.family->verifier();
  const Results found = results_of(problem, report);
  if (!agree_where_written(found.over_nan, found.over_other))
    return fmt::format("{}\n  an array whose contents count is an 'inout' argument, not an 'out'", kDependsOnOutputs);
  Contents patterns;
  for (const CheckBuffer& buffer : check.buffers) patterns.push_back(buffer.initial);
  const bool has_kernel = verifier.has_reference_kernel();
  const Results expected = has_kernel ? reference_results(problem) : Results{};
  const auto fault_in = [&](const Contents& right, const Contents& outputs) {
    return has_kernel ? verifier.compare(problem, candidate, right, outputs)
                      : verifier.verify(problem, candidate, patterns, outputs);
  };
  std::string fault = fault_in(expected.over_nan, found.over_nan);
  if (found.over_nan != found.over_other) {
    if (fault.empty()) fault = fault_in(expected.over_other, found.over_other);
    if (!fault.empty()) fault += kLeftUnwritten;
  }
  if (fault.empty()) return "";
  return fault + "\n  compare what the kernel computes in this policy with its reference; 'tolerance' says how much "
                 "results may differ";
}

Candidate candidate_of(const Problem& problem, const Policy& policy) {
  const bool is_fixed = problem.family->shape(problem, policy).one_block_per_tile;
  return {policy, {.max_blocks = is_fixed ? Geometry::kMostBlocks : kPersistentBlocks}};
}

/// Sizes just beyond 2^31 elements for each number of extents, and below it for kernels that take no more: by as much
/// as a tile may reach beyond the end. Along y and z, all sizes of their class are possible as blocks of a grid.
constexpr Extents kLargeExtents[][2] = {{{2147484655, 1, 1}, {2146435071, 1, 1}},
                                        {{131101, 16411, 1}, {131071, 16381, 1}},
                                        {{1297, 1291, 1289}, {1289, 1287, 1283}}};

/// The same call with extents of kLargeExtents; none if the family refuses both.
std::optional<Problem> large_problem(const Problem& problem) {
  for (const Extents& extents : kLargeExtents[problem.family->extent_names().size() - 1]) {
    Problem large = problem;
    large.extents = extents;
    if (large.family->refuse(large).empty()) return large;
  }
  return std::nullopt;
}

std::optional<HostLargeRun> large_run(const Problem& large, const Policy& policy, const DeviceFacts& facts) {
  if (!large.family->is_valid(large, policy, facts).empty()) return std::nullopt;
  HostLargeRun run{.label = problem_label(large), .buffer_bytes = {}, .run = {}};
  for (const BufferSpec& buffer : large.family->buffers(large)) run.buffer_bytes.push_back(buffer.size_bytes());
  run.run = [large, policy, count = run.buffer_bytes.size()](const HostRun& host) {
    LaunchList launches;
    // As many blocks as there may be, so that each makes few rounds of a grid-stride loop.
    const Candidate candidate{policy, {.max_blocks = Geometry::kMostBlocks}};
    large.family->encode(large, candidate, pointers_of(host, count), nullptr, launches);
    for (const Launch& launch : launches) host.launch(launch);
  };
  return run;
}

}  // namespace

HostCheck policy_check(const Problem& problem, const Policy& policy, const std::vector<HostOrder>& orders) {
  HostCheck check{.unit = with_sources(problem.family->unit(problem, policy), *problem.family),
                  .buffers = filled_buffers(problem),
                  .run = {},
                  .orders = orders};
  check.other_initial = other_contents(problem, check.buffers);
  check.run = [problem, policy, count = check.buffers.size()](const HostRun& run) {
    LaunchList launches;
    problem.family->encode(problem, candidate_of(problem, policy), pointers_of(run, count), nullptr, launches);
    for (const Launch& launch : launches) run.launch(launch);
  };
  return check;
}

PolicyChecks check_policies(const Problem& problem, const std::vector<HostOrder>& orders,
                            std::chrono::milliseconds deadline, std::string_view architecture,
                            const CheckObserver& observer) {
  const KernelFamily& family = *problem.family;
  const DeviceFacts facts = Device::open("host")->facts();
  const std::optional<Problem> large = large_problem(problem);
  PolicyChecks checks;
  ReasonCounts invalid;
  std::vector<Policy> valid;
  for (const Policy& policy : family.space().all()) {
    if (const Reason reason = family.is_valid(problem, policy, facts); !reason.empty()) invalid.add("rejected", reason);
    else valid.push_back(policy);
  }
  checks.invalid = invalid.most_frequent_first();
  for (const Policy& policy : valid) {
    const std::string name = family.space().to_string(policy);
    if (observer) observer(name, checks.run.size(), valid.size());
    HostCheck check = policy_check(problem, policy, orders);
    check.deadline = deadline;
    if (large) check.large = large_run(*large, policy, facts);
    PolicyCheck& result = checks.run.emplace_back(
        PolicyCheck{name, check.large ? check.large->label : std::string(), {}, true});
    try {
      result.report = check_in_child(check, [&](const HostCheckReport& report) {
        return fault_of(problem, candidate_of(problem, policy), check, report);
      });
      if (result.report.ok() && checks.not_looked_at.empty())
        checks.not_looked_at = compile_for_gpu_or_say_why_not(check.unit, architecture);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::compile_failed) throw;
      result.report.failure = error.what();
      result.is_compiled = false;
    }
    if (result.report.ran_too_long) break;
  }
  checks.not_run = std::ssize(valid) - std::ssize(checks.run);
  return checks;
}

}  // namespace hone::tuner
