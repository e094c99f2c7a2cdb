#include "runtime/dispatch/cache_bridge.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/family_table.h>
#include <hone/sdk/source_digest.h>

#include "cache/claims.h"
#include "cache/digest.h"
#include "runtime/choose/compiled.h"
#include "runtime/trace/trace_range.h"

namespace hone {
namespace {

/// Longer than any step of a tuning between two renewals takes, on a busy machine too: a claim that ends while its
/// owner lives makes two of them tune. Whoever waits for an owner that was stopped waits for as long as its budget
/// says.
constexpr std::chrono::seconds kLease(60);

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Throws Error(invalid_argument).
std::vector<cache::LayerPlace> places(const SessionOptions& options) {
  std::vector<cache::LayerPlace> places;
  if (const std::string refusal = cache::max_bytes_fault(options.cache_max_bytes); !refusal.empty())
    throw Error(ErrorCode::invalid_argument, "cache_max_bytes: " + refusal);
  if (!options.cache_path.empty())
    places.push_back({options.cache_path, !options.cache_read_only, options.cache_max_bytes});
  for (const std::filesystem::path& path : options.system_caches) places.push_back({path});
  return places;
}

/// The first policy in the order of ParameterSpace::all() that continues `begun` and passes, found without listing the
/// others: spaces of programs may have 10^5 policies, and a lookup comes here.
template <class Passes>
std::optional<Policy> first_policy(const ParameterSpace& space, const Policy& begun, const Passes& passes) {
  const auto next = static_cast<std::size_t>(begun.size());
  if (next == space.parameters().size()) return passes(begun) ? std::optional(begun) : std::nullopt;
  const Parameter& parameter = space.parameters()[next];
  const auto with = [&](std::int32_t value) {
    Policy longer = begun;
    longer.push_back(value);
    return first_policy(space, longer, passes);
  };
  if (!space.exists(next, begun)) return with(parameter.absent_value);
  for (const std::int32_t value : parameter.values)
    if (const std::optional<Policy> found = with(value)) return found;
  return std::nullopt;
}

std::string digest_of_sources(const Problem& problem, const DeviceFacts& facts, const std::string& family) {
  if (is_built_in(*problem.family)) return family;
  const std::optional<Policy> first = first_policy(problem.family->space(), {}, [&](const Policy& policy) {
    return problem.family->is_valid(problem, policy, facts).empty();
  });
  if (!first) return family;
  return cache::Digest().add("family", family).add("unit", unit_digest(unit_of(problem, *first))).hex();
}

}  // namespace

CacheBridge::CacheBridge(const Device& device, const SessionOptions& options, cache::Layers::Report report)
    : device_(device),
      load_binaries_(options.load_binaries),
      budget_(options.tune_budget),
      objective_(name(options.objective)),
      has_files_(!options.cache_path.empty() || !options.system_caches.empty() || !options.shipped_winners.empty()),
      owner_(cache::new_owner()),
      report_(std::move(report)),
      layers_(places(options), report_, options.shipped_winners) {
  if (!has_files_) return;
  device_record_ = device_record(device.facts());
  compiler_ = device.compiler_identity();
}

std::optional<CachedWinner> CacheBridge::find(const Problem& problem, bool* is_misfit) {
  if (!has_files_) return std::nullopt;
  std::optional<cache::Hit> hit = layers_.find(query_of(problem));
  if (!hit) return std::nullopt;
  std::string misfit;
  std::optional<Winner> winner = winner_of(problem, hit->winner, hit->sizes, &misfit);
  if (!winner) {
    reject(measured_problem(problem, hit->winner.tuned_extents), hit->winner, misfit);
    if (is_misfit) *is_misfit = true;
    return std::nullopt;
  }
  const bool is_attempted = hit->attempt && hit->attempt->rules_out(static_cast<double>(budget_.count()), now_s());
  return CachedWinner{.winner = std::move(*winner),
                      .code = hit->binary ? stored_code(std::move(*hit->binary)) : std::nullopt,
                      .stale_driver = hit->stale_driver,
                      .other_compiler = hit->other_compiler,
                      .is_unverified = cache::is_shipped(hit->winner) && hit->winner_id == 0,
                      .is_attempted = is_attempted};
}

std::vector<Lender> CacheBridge::find_lenders(std::span<const Problem> problems,
                                              const std::array<SizeRange, 3>& extents, cache::Devices devices) {
  if (!has_files_) return {};
  std::vector<cache::Query> queries;
  for (const Problem& problem : problems) queries.emplace_back(query_of(problem)).devices = devices;
  std::vector<cache::NearWinner> rows = layers_.find_near(queries, range_records(extents));
  std::stable_partition(rows.begin(), rows.end(), [](const cache::NearWinner& row) { return !row.stale_driver; });
  std::vector<Lender> lenders;
  for (const cache::NearWinner& row : rows) {
    const auto context = std::find(kLaunchContextNames.begin(), kLaunchContextNames.end(), row.problem.launch_context);
    if (context == kLaunchContextNames.end() || row.problem.alignment < 1) continue;
    Problem measured = measured_problem(problems[row.query], row.winner.tuned_extents);
    measured.launch_context = static_cast<LaunchContext>(context - kLaunchContextNames.begin());
    measured.alignment = static_cast<std::uint32_t>(row.problem.alignment);
    if (!refusal_of(measured).empty()) continue;
    std::string misfit;
    std::optional<Winner> winner = winner_of(measured, row.winner, row.problem.sizes, &misfit);
    if (!winner) {
      // Policies of other sources may be gone from the space by now.
      if (cache::is_shipped(row.winner) && !row.other_source) reject(measured, row.winner, misfit);
      continue;
    }
    Lender& lender = lenders.emplace_back(
        Lender{.winner = *std::move(winner), .problem = measured, .stale_driver = row.stale_driver,
               .other_source = row.other_source});
    if (devices == cache::Devices::similar)
      lender.device = facts_of_identity(row.device.identity, {.kind = row.device.kind,
                                                              .name = row.device.name,
                                                              .architecture = row.device.architecture,
                                                              .driver = {},
                                                              .sm_count = row.device.sm_count});
  }
  return lenders;
}

/// Counts and reports a row that does not fit the family's space. A shipped one is counted once: the next miss finds it
/// again.
void CacheBridge::reject(const Problem& measured, const cache::WinnerRecord& winner, std::string_view misfit) {
  const bool is_shipped = cache::is_shipped(winner);
  const std::string which =
      is_shipped ? fmt::format("the shipped winner of {} ({})", to_string(measured),
                               std::string_view(winner.lender).substr(cache::kShippedMark.size()))
                 : fmt::format("the stored winner of {}", to_string(measured));
  const std::string message = fmt::format("{} is not used: {}", which, misfit);
  bool is_first = false;
  {
    const std::scoped_lock lock(mutex_);
    is_first = rejected_.insert(message).second;
  }
  if (is_first && report_) report_({.message = message, .is_first = true});
  if (is_first || !is_shipped) ++misfits_;
}

std::optional<DeviceLimits> CacheBridge::find_limits() {
  if (!has_files_) return std::nullopt;
  const std::optional<cache::LimitsRecord> found = layers_.limits(limits_record(device_.facts()));
  return found ? std::optional(limits_of(*found)) : std::nullopt;
}

DeviceLimits CacheBridge::publish(const DeviceLimits& measured) {
  return has_files_ ? limits_of(layers_.publish(limits_record(device_.facts(), measured))) : measured;
}

std::optional<Tuning> CacheBridge::find_tuning(const Problem& problem) {
  if (!has_files_) return std::nullopt;
  cache::Query query = query_of(problem);
  query.code = cache::CodeUse::never;
  const auto found = layers_.find_tuning(query);
  if (!found) return std::nullopt;
  const auto& [hit, record] = *found;
  Tuning tuning = tuning_of(measured_problem(problem, hit.winner.tuned_extents), record);
  const std::optional<Winner> winner = winner_of(problem, hit.winner, hit.sizes);
  for (std::size_t i = 0; winner && i < tuning.trials.size(); ++i)
    if (tuning.trials[i].verdict == Verdict::ok && tuning.trials[i].candidate == winner->candidate) tuning.winner = i;
  return tuning;
}

cache::Publication CacheBridge::publication(const Problem& problem, const Winner& winner, const Binary& binary,
                                            const Tuning* tuning) const {
  return {.key = key_of(problem, winner.sizes),
          .winner = winner_record(problem, winner),
          .binary = binary_record(binary, unit_digest(unit_of(problem, winner.candidate.policy))),
          .tuning = tuning ? std::optional(tuning_record(*tuning)) : std::nullopt};
}

void CacheBridge::publish(std::span<const cache::Publication> publications) {
  if (has_files_) layers_.publish(publications);
}

void CacheBridge::publish(const Problem& problem, const Winner& winner, const Binary& binary, const Tuning* tuning) {
  if (has_files_) layers_.publish(publication(problem, winner, binary, tuning));
}

void CacheBridge::note_miss(const Problem& problem, const std::array<SizeRange, 3>& sizes, bool is_stale) {
  if (!has_files_ || is_empty_class(problem.extents)) return;
  layers_.note({.key = key_of(problem, sizes),
                .reason = is_stale ? cache::kOtherDriver : cache::kUntuned,
                .extents = problem.extents,
                .bytes_moved = problem.family->bytes_moved(problem)});
}

std::optional<cache::ClaimState> CacheBridge::claim(Work work, const Problem& problem, bool even_if_served,
                                                    std::chrono::milliseconds patience) {
  if (!has_files_) return std::nullopt;
  const cache::Need need{.query = query_of(problem), .budget_ms = static_cast<double>(budget_.count())};
  return layers_.claim(claim_key(work, problem), even_if_served ? nullptr : &need, owner_, kLease, patience);
}

bool CacheBridge::is_claimed(Work work, const Problem& problem) {
  return has_files_ && layers_.is_claimed(claim_key(work, problem));
}

void CacheBridge::renew(Work work, const Problem& problem) { layers_.renew(claim_key(work, problem), owner_, kLease); }

void CacheBridge::release(Work work, const Problem& problem) { layers_.release(claim_key(work, problem), owner_); }

/// A choice is claimed apart from the tuning that goes on meanwhile.
cache::KeyRecord CacheBridge::claim_key(Work work, const Problem& problem) const {
  cache::KeyRecord key = key_of(problem, size_ranges(problem.extents));
  if (work == Work::choice) key.problem.launch_context += ", choice";
  return key;
}

cache::KeyRecord CacheBridge::key_of(const Problem& problem, const std::array<SizeRange, 3>& sizes) const {
  cache::KeyRecord key{.device = device_record_, .toolchain = toolchain(problem), .problem = {}};
  describe(key.problem, problem);
  key.problem.objective = objective_;
  key.problem.sizes = range_records(sizes);
  return key;
}

cache::Query CacheBridge::query_of(const Problem& problem) const {
  const TraceRange traced([] { return std::string("key"); });
  cache::Query query;
  query.device = device_record_;
  query.toolchain = toolchain(problem);
  query.extents = problem.extents;
  query.code = compiler_.empty() ? cache::CodeUse::required : cache::CodeUse::optional;
  if (!load_binaries_) query.code = cache::CodeUse::never;
  describe(query, problem);
  query.objective = objective_;
  return query;
}

const std::string& CacheBridge::digest_of(const KernelFamily& family) const {
  const std::scoped_lock lock(mutex_);
  std::string& digest = digests_[&family];
  if (digest.empty()) digest = family_digest(family);
  return digest;
}

cache::ToolchainRecord CacheBridge::toolchain(const Problem& problem) const {
  return {.compiler = compiler_, .driver = device_.facts().driver, .family_digest = source_digest(problem)};
}

std::string CacheBridge::source_digest(const Problem& problem) const {
  return digest_of_sources(problem, device_.facts(), digest_of(*problem.family));
}

std::string source_digest(const Problem& problem, const DeviceFacts& facts) {
  return digest_of_sources(problem, facts, family_digest(*problem.family));
}

}  // namespace hone
