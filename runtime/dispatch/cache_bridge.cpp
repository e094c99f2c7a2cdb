#include "runtime/dispatch/cache_bridge.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/tune_arguments.h>

#include "cache/claims.h"
#include "cache/digest.h"
#include "runtime/choose/compiled.h"

namespace hone {
namespace {

/// "i32", "i32 in f64", "f16 in f64 to f16": of the elements, and of the accumulator and the result where chosen.
std::string dtypes_of(const Problem& problem) {
  std::string text(info(problem.dtype).name);
  if (problem.accumulator) text.append(" in ").append(info(*problem.accumulator).name);
  if (problem.result) text.append(" to ").append(info(*problem.result).name);
  return text;
}

std::string_view numerics_of(const Problem& problem) {
  return problem.nan == NanPolicy::ignore ? "reproducible, NaN ignored" : "reproducible";
}

/// Behind a stored binary's format: the digest of the unit that it was compiled from. Two families, or two versions of
/// one, may have the same name and parameters.
constexpr std::string_view kUnitMark = ";unit=";

/// Longer than any step of a tuning between two renewals takes, on a busy machine too: a claim that ends while its
/// owner lives makes two of them tune. Whoever waits for an owner that was stopped waits for as long as its budget
/// says.
constexpr std::chrono::seconds kLease(60);

/// Fields that Query and ProblemRecord share.
template <class Record>
void describe(Record& record, const Problem& problem) {
  record.family = problem.family->name();
  record.operation = problem.family->operations()[problem.operation];
  record.dtype = dtypes_of(problem);
  record.numerics = numerics_of(problem);
  record.launch_context = name(problem.launch_context);
  record.alignment = static_cast<int>(problem.alignment);
}

/// nullopt for a row that does not fit the family's space.
std::optional<Winner> winner_of(const Problem& problem, const cache::WinnerRecord& winner,
                                const std::array<cache::RangeRecord, 3>& sizes) {
  const cache::CandidateRecord& record = winner.candidate;
  const std::optional<Policy> policy = problem.family->space().parse(record.policy);
  if (!policy || record.max_blocks < 1 ||
      record.block_threads != problem.family->shape(problem, *policy).block_threads)
    return std::nullopt;
  Winner result{.candidate = {*policy, {.max_blocks = record.max_blocks}},
                .resources = {.registers = record.registers,
                              .static_smem_bytes = record.static_smem_bytes,
                              .local_bytes = record.local_bytes,
                              .max_threads_per_block = record.max_threads_per_block},
                .resident_blocks = record.resident_blocks,
                .tuned = winner.tuned,
                .median_us = winner.median_us,
                .spread_us = winner.spread_us,
                .launch_context = problem.launch_context,
                .tuned_extents = winner.tuned_extents};
  for (std::size_t i = 0; i < sizes.size(); ++i) result.sizes[i] = {sizes[i].first, sizes[i].last};
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// In the time that the winner's record has, which is that of the size it was measured at.
std::int64_t measured_bytes(const Problem& problem, const Winner& winner) {
  if (winner.tuned_extents == problem.extents) return problem.family->bytes_moved(problem);
  Problem measured = problem;
  measured.extents = winner.tuned_extents;
  measured.pitches = {0, 0};  // those of the problem may be too short there
  return problem.family->bytes_moved(measured);
}

std::vector<cache::LayerPlace> places(const SessionOptions& options) {
  std::vector<cache::LayerPlace> places;
  if (!options.cache_path.empty())
    places.push_back({options.cache_path, !options.cache_read_only, options.cache_max_bytes});
  for (const std::filesystem::path& path : options.system_caches) places.push_back({path});
  return places;
}

}  // namespace

CacheBridge::CacheBridge(const Device& device, const SessionOptions& options, cache::Layers::Report report)
    : device_(device),
      load_binaries_(options.load_binaries),
      budget_(options.tune_budget),
      has_files_(!options.cache_path.empty() || !options.system_caches.empty()),
      owner_(cache::new_owner()),
      layers_(places(options), std::move(report)) {
  if (!has_files_) return;
  const DeviceFacts& facts = device.facts();
  device_record_ = {.kind = facts.kind,
                    .name = facts.name,
                    .architecture = facts.architecture,
                    .identity = tuning_identity(facts),
                    .sm_count = facts.sm_count,
                    .max_threads_per_sm = facts.max_threads_per_sm,
                    .peak_bandwidth_gbps = peak_bandwidth_gbps(facts)};
  compiler_ = device.compiler_identity();
}

std::optional<CachedWinner> CacheBridge::find(const Problem& problem) {
  if (!has_files_) return std::nullopt;
  std::optional<cache::Hit> hit = layers_.find(query_of(problem));
  if (!hit) return std::nullopt;
  std::optional<Winner> winner = winner_of(problem, hit->winner, hit->sizes);
  if (!winner) {
    ++misfits_;
    return std::nullopt;
  }
  const bool is_attempted = hit->attempt && hit->attempt->rules_out(static_cast<double>(budget_.count()), now_s());
  CachedWinner found{.winner = std::move(*winner),
                     .binary = {},
                     .stale_driver = hit->stale_driver,
                     .is_attempted = is_attempted};
  // Code of which it is not known what it was compiled from is compiled again.
  const std::size_t mark = hit->binary ? hit->binary->format.find(kUnitMark) : std::string::npos;
  if (mark != std::string::npos) {
    found.unit_digest = hit->binary->format.substr(mark + kUnitMark.size());
    found.binary = Binary{.format = hit->binary->format.substr(0, mark),
                          .architecture = std::move(hit->binary->architecture),
                          .code = std::move(hit->binary->code),
                          .entries = lines_of(hit->binary->entries)};
  }
  return found;
}

std::vector<Winner> CacheBridge::find_near(const Problem& problem, const std::array<SizeRange, 3>& extents) {
  if (!has_files_) return {};
  std::array<cache::RangeRecord, 3> ranges;
  for (std::size_t i = 0; i < ranges.size(); ++i) ranges[i] = {extents[i].first, extents[i].last};
  std::vector<cache::NearWinner> rows = layers_.find_near(query_of(problem), ranges);
  std::stable_partition(rows.begin(), rows.end(), [](const cache::NearWinner& row) { return !row.stale_driver; });
  std::vector<Winner> near;
  for (const cache::NearWinner& row : rows) {
    Problem measured = problem;
    measured.extents = row.winner.tuned_extents;
    if (!problem.family->refuse(measured).empty()) continue;
    if (std::optional<Winner> winner = winner_of(measured, row.winner, row.sizes)) near.push_back(std::move(*winner));
  }
  return near;
}

cache::Publication CacheBridge::publication(const Problem& problem, const Winner& winner, const Binary& binary,
                                            const Tuning* tuning) const {
  const Trial chosen{.candidate = winner.candidate,
                     .resources = winner.resources,
                     .resident_blocks = winner.resident_blocks};
  cache::Publication publication{
      .key = key_of(problem, winner.sizes),
      .winner = {.candidate = to_record(problem, chosen),
                 .tuned = winner.tuned,
                 .tuned_extents = winner.tuned_extents,
                 .bytes_moved = measured_bytes(problem, winner),
                 .median_us = winner.median_us,
                 .spread_us = winner.spread_us},
      .binary = {.format = fmt::format("{}{}{}", binary.format, kUnitMark,
                                       unit_digest(unit_of(problem, winner.candidate.policy))),
                 .architecture = binary.architecture,
                 .code = binary.code,
                 .entries = fmt::format("{}", fmt::join(binary.entries, "\n"))},
      .tuning = {}};
  if (tuning) publication.tuning = to_record(*tuning);
  return publication;
}

void CacheBridge::publish(std::span<const cache::Publication> publications) {
  if (has_files_) layers_.publish(publications);
}

void CacheBridge::publish(const Problem& problem, const Winner& winner, const Binary& binary, const Tuning* tuning) {
  if (has_files_) layers_.publish(publication(problem, winner, binary, tuning));
}

void CacheBridge::note_miss(const Problem& problem, const std::array<SizeRange, 3>& sizes, bool is_stale) {
  if (!has_files_) return;
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

void CacheBridge::renew(Work work, const Problem& problem) {
  layers_.renew(claim_key(work, problem), owner_, kLease);
}

void CacheBridge::release(Work work, const Problem& problem) {
  layers_.release(claim_key(work, problem), owner_);
}

/// A choice is claimed apart from the tuning that goes on meanwhile.
cache::KeyRecord CacheBridge::claim_key(Work work, const Problem& problem) const {
  cache::KeyRecord key = key_of(problem, size_ranges(problem.extents));
  if (work == Work::choice) key.problem.launch_context += ", choice";
  return key;
}

cache::KeyRecord CacheBridge::key_of(const Problem& problem, const std::array<SizeRange, 3>& sizes) const {
  cache::KeyRecord key{.device = device_record_, .toolchain = toolchain(problem), .problem = {}};
  describe(key.problem, problem);
  for (std::size_t i = 0; i < sizes.size(); ++i) key.problem.sizes[i] = {sizes[i].first, sizes[i].last};
  return key;
}

cache::Query CacheBridge::query_of(const Problem& problem) const {
  cache::Query query;
  query.device = device_record_;
  query.toolchain = toolchain(problem);
  query.extents = problem.extents;
  query.code = compiler_.empty() ? cache::CodeUse::required : cache::CodeUse::optional;
  if (!load_binaries_) query.code = cache::CodeUse::never;
  describe(query, problem);
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

/// The sources of a built-in family are all in its digest. A program's family may make its kernels' text as it likes:
/// the text of the first policy that the problem may have counts, too, so that an edited kernel is another one even
/// where its code is not stored any more.
std::string CacheBridge::source_digest(const Problem& problem) const {
  const std::string& family = digest_of(*problem.family);
  if (!tune_arguments(problem).empty()) return family;
  for (const Policy& policy : problem.family->space().all())
    if (problem.family->is_valid(problem, policy, device_.facts()).empty())
      return cache::Digest().add("family", family).add("unit", unit_digest(unit_of(problem, policy))).hex();
  return family;
}

cache::CandidateRecord CacheBridge::to_record(const Problem& problem, const Trial& trial) const {
  return {.policy = problem.family->space().to_string(trial.candidate.policy),
          .max_blocks = trial.candidate.geometry.max_blocks,
          .block_threads = problem.family->shape(problem, trial.candidate.policy).block_threads,
          .registers = trial.resources.registers,
          .static_smem_bytes = trial.resources.static_smem_bytes,
          .local_bytes = trial.resources.local_bytes,
          .max_threads_per_block = trial.resources.max_threads_per_block,
          .resident_blocks = trial.resident_blocks};
}

cache::TuningRecord CacheBridge::to_record(const Tuning& tuning) const {
  const auto now = std::chrono::system_clock::now() -
                   std::chrono::duration<double, std::milli>(tuning.compile_ms + tuning.measure_ms);
  cache::TuningRecord record{
      .started_at = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count(),
      .compile_ms = tuning.compile_ms,
      .measure_ms = tuning.measure_ms,
      .budget_spent = tuning.budget_spent,
      .trials = {}};
  for (const Trial& trial : tuning.trials)
    record.trials.push_back({.candidate = to_record(tuning.problem, trial),
                             .bytes_in_flight_per_sm = trial.bytes_in_flight_per_sm,
                             .predicted_us = trial.predicted_us,
                             .median_us = trial.median_us,
                             .spread_us = trial.spread_us,
                             .samples = trial.samples,
                             .is_default = trial.is_default,
                             .verdict = std::string(name(trial.verdict)),
                             .reason = trial.policies > 1
                                           ? fmt::format("{} ({} policies)", trial.reason, trial.policies)
                                           : trial.reason});
  return record;
}

}  // namespace hone
