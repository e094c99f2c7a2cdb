#include "tuner/report/report_data.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "cache/store.h"
#include "tuner/problems/families.h"
#include "tuner/report/selection.h"
#include "tuner/text/table.h"
#include "tuner/winners/limits.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using cache::StoredWinner;
using cache::TrialRecord;
using Json = nlohmann::ordered_json;

/// The share of the bytes that winners may take; trials get the rest.
constexpr double kShareOfWinners = 0.55;

/// Measured trials of one tuning that the page has: as many as there is room for, within these.
constexpr std::size_t kFewestTrials = 24, kMostTrials = 250;

/// Trials that a page has about room for.
constexpr std::size_t kTrialsOfAPage = 25'000;

/// So many tunings that are too large for what is left end the search for smaller ones.
constexpr int kMostMisfits = 8;

/// Tunings that are read in one transaction: few enough to keep no writer waiting for long.
constexpr std::size_t kTuningsAtOnce = 16;

/// More tells nothing about a time, and takes room.
constexpr int kDigits = 5;

double rounded(double value) { return std::strtod(fmt::format("{:.{}g}", value, kDigits).c_str(), nullptr); }

std::string dumped(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

/// Texts that stand once in the page, and are numbers elsewhere.
class TextPool {
 public:
  std::size_t operator()(std::string_view text) {
    const auto [at, is_new] = indices_.emplace(printable(text), texts_.size());
    if (is_new) {
      texts_.push_back(at->first);
      bytes_ += at->first.size() + kQuotes;
    }
    return at->second;
  }
  const Json& texts() const { return texts_; }
  std::size_t bytes() const { return bytes_; }  ///< about what they take in the page

 private:
  static constexpr std::size_t kQuotes = 3;  ///< with the comma

  std::unordered_map<std::string, std::size_t> indices_;
  Json texts_ = Json::array();
  std::size_t bytes_ = 0;
};

/// Collects the parts of the page's JSON.
class Collector {
 public:
  Collector(std::span<const ReportedCache> caches, std::size_t most_bytes)
      : caches_(caches), most_bytes_(most_bytes), counts_(caches.size()) {}

  ReportData collect(std::int64_t made_at) {
    std::vector<ShownWinner> entries;
    for (std::size_t i = 0; i < caches_.size(); ++i) {
      counts_[i].winners = caches_[i].named.size();
      for (const std::size_t at : caches_[i].named) entries.push_back({&caches_[i].all[at], i});
    }
    std::stable_sort(entries.begin(), entries.end(), is_shown_before);
    add_winners(entries);
    add_tunings(in_order_of_tunings(shown_));
    return {.json = finished(made_at), .counts = counts_};
  }

 private:
  void add_winners(const std::vector<ShownWinner>& entries) {
    const auto most = static_cast<std::size_t>(kShareOfWinners * static_cast<double>(most_bytes_));
    for (const ShownWinner& entry : entries) {
      std::string row = dumped(winner_row(entry));
      if (bytes_ + texts_.bytes() + row.size() > most) break;
      bytes_ += row.size() + 1;
      winners_.append(winners_.empty() ? "" : ",").append(row);
      index_of_.emplace(entry.stored, shown_.size());
      shown_.push_back(entry);
      ++counts_[entry.cache].shown_winners;
    }
  }

  void add_tunings(const std::vector<ShownWinner>& entries) {
    for (const ShownWinner& entry : entries) ++counts_[entry.cache].tunings;
    const std::size_t trials =
        std::clamp(kTrialsOfAPage / std::max<std::size_t>(entries.size(), 1), kFewestTrials, kMostTrials);
    int misfits = 0;
    for (std::span<const ShownWinner> left(entries); !left.empty() && misfits < kMostMisfits;) {
      const std::span<const ShownWinner> some = left.first(std::min(left.size(), kTuningsAtOnce));
      left = left.subspan(some.size());
      const std::vector<cache::FoundTuning> found = read_tunings(some);
      for (std::size_t i = 0; i < some.size() && misfits < kMostMisfits; ++i) {
        if (found[i].is_damaged) ++counts_[some[i].cache].damaged_tunings;
        if (found[i].tuning && !found[i].tuning->trials.empty() && !add_tuning(some[i], *found[i].tuning, trials))
          ++misfits;
      }
    }
  }

  /// False if there is no room for it.
  bool add_tuning(const ShownWinner& entry, const cache::TuningRecord& tuning, std::size_t most_trials) {
    const std::string row = dumped(tuning_row(entry, tuning, most_trials));
    if (bytes_ + texts_.bytes() + row.size() > most_bytes_) return false;
    bytes_ += row.size() + 1;
    tunings_.append(tunings_.empty() ? "" : ",").append(row);
    ++counts_[entry.cache].shown_tunings;
    return true;
  }

  /// Their tunings, in the order of `entries`, with one look into each cache.
  std::vector<cache::FoundTuning> read_tunings(std::span<const ShownWinner> entries) const {
    std::vector<cache::FoundTuning> found(entries.size());
    for (std::size_t cache = 0; cache < caches_.size(); ++cache) {
      std::vector<std::int64_t> ids;
      std::vector<std::size_t> places;
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].cache != cache) continue;
        ids.push_back(entries[i].stored->id);
        places.push_back(i);
      }
      if (ids.empty()) continue;
      std::vector<cache::FoundTuning> read = cache::Store(caches_[cache].path).tunings(ids);
      for (std::size_t i = 0; i < places.size(); ++i) found[places[i]] = std::move(read[i]);
    }
    return found;
  }

  std::size_t device_index(const ShownWinner& entry) {
    const cache::DeviceRecord& device = entry.stored->key.device;
    const auto [at, is_new] =
        device_indices_.emplace(std::tuple(entry.cache, device.kind, device.identity), devices_.size());
    if (is_new) {
      auto& ceilings = ceilings_.emplace_back();
      Json contexts = Json::array();
      for (std::size_t i = 0; i < kLaunchContextNames.size(); ++i) {
        const auto context = static_cast<LaunchContext>(i);
        const DeviceCeilings& found = ceilings.emplace_back(device_ceilings(device, context, caches_[entry.cache].all));
        contexts.push_back(
            {{"name", name(context)}, {"launch_us", rounded(found.launch_us)}, {"floor_us", rounded(found.floor_us)}});
      }
      const DeviceCeilings& stream = ceilings.front();
      devices_.push_back({{"cache", entry.cache},
                          {"kind", printable(device.kind)},
                          {"name", printable(device.name)},
                          {"architecture", printable(device.architecture)},
                          {"sm_count", device.sm_count},
                          {"max_threads_per_sm", device.max_threads_per_sm},
                          {"max_blocks_per_sm", stream.facts.max_blocks_per_sm},
                          {"registers_per_sm", stream.facts.registers_per_sm},
                          {"smem_bytes_per_sm", stream.facts.smem_bytes_per_sm},
                          {"l2_bytes", stream.facts.l2_bytes},
                          {"implied_gbps", device.peak_bandwidth_gbps},
                          {"read_gbps", rounded(stream.read_gbps)},
                          {"read_is_measured", stream.is_read_measured},
                          {"needed_bytes", stream.bytes_in_flight_needed},
                          {"contexts", std::move(contexts)},
                          {"drivers", Json::array()},
                          {"compilers", Json::array()}});
    }
    Json& row = devices_[at->second];
    const cache::ToolchainRecord& toolchain = entry.stored->key.toolchain;
    add_once(row["drivers"], printable(toolchain.driver));
    add_once(row["compilers"], printable(toolchain.compiler));
    return at->second;
  }

  static void add_once(Json& list, const std::string& text) {
    if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
  }

  std::size_t problem_index(const ShownWinner& entry) {
    const cache::ProblemRecord& problem = entry.stored->key.problem;
    const std::size_t device = device_index(entry);
    std::string key = fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}", device, problem.family, problem.operation,
                                  problem.dtype, problem.numerics, problem.launch_context, problem.alignment);
    const auto [at, is_new] = problem_indices_.emplace(std::move(key), problems_.size());
    if (is_new) {
      problems_.push_back({device, printable(problem.family), printable(problem.operation), printable(problem.dtype),
                           printable(problem.numerics), printable(problem.launch_context), problem.alignment,
                           printable(problem_text(problem))});
      families_.insert(problem.family);
    }
    return at->second;
  }

  /// The columns are those of `winner_columns` in finished().
  Json winner_row(const ShownWinner& entry) {
    const StoredWinner& stored = *entry.stored;
    const cache::CandidateRecord& candidate = stored.winner.candidate;
    const bool measured = is_measured(stored);
    Json row{stored.id, problem_index(entry)};
    for (const cache::RangeRecord& range : stored.key.problem.sizes) {
      row.push_back(range.first);
      row.push_back(range.last);
    }
    for (const std::int64_t extent : stored.winner.tuned_extents) row.push_back(extent);
    row.insert(row.end(),
               {texts_(how_text(stored)), texts_(candidate.policy), candidate.max_blocks, candidate.block_threads,
                candidate.registers, candidate.static_smem_bytes, candidate.local_bytes, candidate.resident_blocks,
                measured ? stored.winner.bytes_moved : 0, measured ? stored.winner.median_us : 0,
                measured ? stored.winner.spread_us : 0, stored.created_at});
    return row;
  }

  Json tuning_row(const ShownWinner& entry, const cache::TuningRecord& tuning, std::size_t most_trials) {
    const StoredWinner& stored = *entry.stored;
    Json trials = Json::array(), rejected = Json::array();
    std::int64_t in_flight = 0;
    std::size_t at = 0;
    const auto measured = static_cast<std::size_t>(std::ranges::count(tuning.trials, "ok", &TrialRecord::verdict));
    const TrialSample sample(measured, most_trials);
    const std::set<const TrialRecord*> setters = record_setters(tuning.trials);
    std::set<std::string_view> values;
    for (const TrialRecord& trial : tuning.trials) {
      if (trial.verdict != "ok") continue;
      const bool is_winner = trial.candidate.policy == stored.winner.candidate.policy &&
                             trial.candidate.max_blocks == stored.winner.candidate.max_blocks;
      if (is_winner) in_flight = trial.bytes_in_flight_per_sm;
      const bool has_new_value = add_values(trial.candidate.policy, values);
      const bool is_telling = is_winner || trial.is_default || has_new_value || setters.contains(&trial);
      if (!sample.has(at++) && !is_telling) continue;
      trials.push_back(trial_row(trial, is_winner));
    }
    for (const ReasonCount& reason : count_reasons(tuning.trials))
      rejected.push_back({texts_(reason.verdict), texts_(reason.reason.general_text()), reason.count});
    const auto context = stored.key.problem.launch_context == name(LaunchContext::graph) ? 1U : 0U;
    const DeviceCeilings others = ceilings_[device_index(entry)][context].without(stored.id);
    const WinnerLimit limit = limit_of(stored, in_flight, others);
    return {index_of_.at(entry.stored),
            measured,
            tuning.budget_spent,
            rounded(tuning.compile_ms),
            rounded(tuning.measure_ms),
            {texts_(name(limit.limit)), rounded(limit.roofline_us), rounded(limit.memory_us), limit.tiles, limit.blocks,
             limit.waves.slots},
            std::move(trials),
            std::move(rejected)};
  }

  Json trial_row(const TrialRecord& trial, bool is_winner) {
    const cache::CandidateRecord& candidate = trial.candidate;
    return {texts_(candidate.policy),
            candidate.max_blocks,
            candidate.block_threads,
            candidate.registers,
            candidate.resident_blocks,
            trial.bytes_in_flight_per_sm,
            rounded(trial.predicted_us),
            rounded(trial.median_us),
            rounded(trial.spread_us),
            trial.samples,
            trial.sequence,
            (is_winner ? 1 : 0) + (trial.is_default ? 2 : 0),
            trial.reason.empty() ? 0 : texts_(trial.reason)};
  }

  Json spaces() const {
    Json spaces = Json::object();
    for (const std::string& family : families_) {
      const FamilyRow* row = find_family(family);
      if (row == nullptr) continue;
      Json parameters = Json::array();
      for (const Parameter& parameter : row->family().space().parameters()) {
        Json values = Json::array();
        for (const std::int32_t value : parameter.values) values.push_back(parameter.spell(value));
        parameters.push_back({parameter.name, parameter.kind() == ParameterKind::ordinal, std::move(values)});
      }
      spaces[family] = {{"extents", row->family().extent_names()}, {"parameters", std::move(parameters)}};
    }
    return spaces;
  }

  std::string finished(std::int64_t made_at) const {
    Json caches = Json::array();
    for (std::size_t i = 0; i < caches_.size(); ++i)
      caches.push_back({{"path", printable(caches_[i].path.string())},
                        {"all", caches_[i].all.size()},
                        {"winners", counts_[i].winners},
                        {"shown", counts_[i].shown_winners},
                        {"tunings", counts_[i].tunings},
                        {"shown_tunings", counts_[i].shown_tunings},
                        {"damaged", counts_[i].damaged_tunings},
                        {"damaged_winners", caches_[i].damaged_winners}});
    const Json head{{"version", HONE_VERSION}, {"made_at", made_at},    {"caches", std::move(caches)},
                    {"devices", devices_},     {"problems", problems_}, {"families", spaces()},
                    {"texts", texts_.texts()}};
    std::string json = dumped(head);
    json.pop_back();
    json.append(",\"winners\":[").append(winners_).append("],\"tunings\":[").append(tunings_).append("]}");
    std::string safe;
    safe.reserve(json.size());
    for (const char c : json) c == '<' ? safe.append("\\u003c") : safe.append(1, c);
    return safe;
  }

  std::span<const ReportedCache> caches_;
  std::size_t most_bytes_, bytes_ = 0;
  std::vector<ReportedCounts> counts_;
  TextPool texts_;
  Json devices_ = Json::array(), problems_ = Json::array();
  std::vector<std::vector<DeviceCeilings>> ceilings_;  ///< by device, then by launch context
  std::map<std::tuple<std::size_t, std::string, std::string>, std::size_t> device_indices_;
  std::unordered_map<std::string, std::size_t> problem_indices_;
  std::set<std::string> families_;
  std::vector<ShownWinner> shown_;
  std::unordered_map<const StoredWinner*, std::size_t> index_of_;
  std::string winners_, tunings_;
};

}  // namespace

ReportData report_data(std::span<const ReportedCache> caches, std::int64_t made_at, std::size_t most_bytes) {
  return Collector(caches, most_bytes).collect(made_at);
}

}  // namespace hone::tuner
