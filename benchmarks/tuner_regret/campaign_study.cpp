#include "benchmarks/tuner_regret/campaign_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <hone/hone.h>
#include <hone/kernel_family.h>
#include <nlohmann/json.hpp>

#include "benchmarks/tuner_regret/cache_folder.h"
#include "benchmarks/tuner_regret/findings.h"
#include "benchmarks/tuner_regret/judge.h"
#include "benchmarks/tuner_regret/process.h"

namespace hone::benchmarks {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

bool is_prime(std::int64_t n) {
  for (std::int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}

std::int64_t prime_from(std::int64_t n) {
  while (!is_prime(n)) ++n;
  return n;
}

/// One campaign after the other, and what they found.
class Study {
 public:
  explicit Study(const RegretOptions& options) : options_(options), device_(Device::open(options.device)) {}

  bool run_all() {
    if (wants("time")) time_campaigns();
    for (const std::string& op : options_.ops)
      for (const std::string& dtype : options_.dtypes) {
        if (is_over()) fmt::print(stderr, "the time is over: {} {} is left out\n", op, dtype);
        if (!is_over()) study_line(op, dtype);
        write();
      }
    fmt::print("\n{}", to_table(findings_, campaigns_));
    return is_good_;
  }

 private:
  bool wants(std::string_view part) const {
    return std::find(options_.parts.begin(), options_.parts.end(), part) != options_.parts.end();
  }
  bool is_over() const { return Clock::now() - start_ > std::chrono::seconds(options_.time_limit_s); }

  Problem problem(const std::string& op, const std::string& dtype, std::int64_t n) const {
    return reduce_problem(parse_reduce_op(op), parse_dtype(dtype), n);
  }

  std::vector<std::string> tune_command(const std::vector<std::string>& what, const fs::path& cache) const {
    std::vector<std::string> command{options_.hone, "tune",     "--device", std::string(device_->name()),
                                     "--cache",     cache.string(), "-q"};
    command.insert(command.end(), what.begin(), what.end());
    return command;
  }

  /// `hone tune` of one line into a cache.
  void campaign(const std::vector<std::string>& what, const fs::path& cache) {
    const std::vector<std::string> command = tune_command(what, cache);
    const auto begin = Clock::now();
    const Output output = run_process(command);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::string words = "hone tune";
    for (const std::string& word : what) words += ' ' + word;
    const std::size_t totals = output.text.rfind("\n\n");
    std::string last_lines = totals == std::string::npos ? output.text : output.text.substr(totals + 2);
    // A folder that goes with the run.
    if (const std::size_t folder = last_lines.find("Winners are in "); folder != std::string::npos)
      last_lines.erase(folder, last_lines.find('\n', folder) - folder + 1);
    campaigns_.push_back(
        {.command = words, .seconds = seconds, .exit_code = output.exit_code, .last_lines = last_lines});
    fmt::print("{:.1f} s: {}\n", seconds, words);
    if (output.exit_code != 0) {
      is_good_ = false;
      fmt::print(stderr, "{}\n", output.text);
    }
  }

  /// The same, interrupted at ten random moments of together about three quarters of what the first campaign took, so
  /// that few come after its end, and then to its end. No problem may be finished twice.
  void interrupted_campaign(const std::vector<std::string>& what, const fs::path& cache) {
    constexpr int kInterrupts = 10;
    std::mt19937 random(std::random_device{}());
    std::uniform_real_distribution<double> moment(0, 1.5 * campaigns_.back().seconds * 1000 / kInterrupts);
    int tuned = 0, interrupted = 0;
    Output output;
    const auto begin = Clock::now();
    for (int run_number = 0; run_number <= kInterrupts; ++run_number) {
      const bool is_last = run_number == kInterrupts;
      output = run_process(tune_command(what, cache),
                           is_last ? std::nullopt : std::optional(milliseconds(static_cast<int>(moment(random)))));
      interrupted += output.exit_code != 0;
      tuned += tuned_in(output.text);
    }
    const int problems = options_.last_exponent - options_.first_exponent + 1;
    const std::string finding = fmt::format("{} of {} runs interrupted; {} problems finished of {}\n", interrupted,
                                            kInterrupts + 1, tuned, problems);
    campaigns_.push_back({.command = "hone tune, interrupted at random moments",
                          .seconds = std::chrono::duration<double>(Clock::now() - begin).count(),
                          .exit_code = output.exit_code,
                          .last_lines = finding});
    fmt::print("{}", finding);
    if (output.exit_code == 0 && tuned <= problems) return;
    is_good_ = false;
    fmt::print(stderr, "{}\n", output.text);
  }

  /// "19 tuned, …": what a campaign says of itself.
  static int tuned_in(const std::string& text) {
    std::smatch found;
    return std::regex_search(text, found, std::regex("(^|\n)([0-9]+) tuned")) ? std::stoi(found[2]) : 0;
  }

  std::vector<std::string> line_options(const std::string& op, const std::string& dtype) const {
    return {"--op",     op,
            "--dtype",  dtype,
            "--size",   fmt::format("2^{}..2^{}", options_.first_exponent, options_.last_exponent),
            "--budget", fmt::format("{}ms", options_.budget_ms)};
  }

  void time_campaigns() {
    const CacheFolder folder(options_.keep, "time");
    campaign(line_options("sum", "f32"), folder.file("sum"));
    if (options_.standard) campaign({"--preset", "standard"}, folder.file("standard"));
    write();
  }

  void study_line(const std::string& op, const std::string& dtype) {
    if (!wants("regret") && !wants("stability") && !wants("interrupted") && !wants("untuned")) return;
    const CacheFolder folder(options_.keep, op + '-' + dtype);
    const fs::path first = folder.file("first"), second = folder.file("second"), third = folder.file("third");
    campaign(line_options(op, dtype), first);
    if (wants("stability")) campaign(line_options(op, dtype), second);
    if (wants("interrupted")) interrupted_campaign(line_options(op, dtype), third);
    Session chosen(device_, lookup(first));
    Session again(device_, lookup(second));
    Session resumed(device_, lookup(third));
    Session searching(device_, lookup(folder.is_kept() ? folder.file("searched") : fs::path()));
    for (int exponent = options_.first_exponent; exponent <= options_.last_exponent && !is_over(); ++exponent) {
      const Problem at = problem(op, dtype, std::int64_t{1} << exponent);
      const std::optional<Candidate> choice = winner(chosen, at);
      if (!choice) continue;
      if (wants("regret")) find_regret(searching, at, *choice, first);
      if (wants("stability"))
        if (const std::optional<Candidate> other = winner(again, at)) add("stability", at, *choice, {*other}, first);
      if (wants("interrupted"))
        if (const std::optional<Candidate> other = winner(resumed, at))
          add("interrupted", at, *choice, {*other}, first);
      if (wants("untuned") && exponent < options_.last_exponent)
        for (const std::int64_t n : {prime_from(at.extents[0] * 6 / 5), at.extents[0] * 3 / 2})
          find_untuned(searching, chosen, problem(op, dtype, n));
    }
    judge_pending(folder.path());
    write();
  }

  static SessionOptions lookup(const fs::path& cache) { return {.on_miss = MissPolicy::error, .cache_path = cache}; }

  static std::optional<Candidate> winner(Session& session, const Problem& problem) {
    try {
      return session.prepare(problem).winner->candidate;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::not_tuned) throw;
      return std::nullopt;
    }
  }

  /// Against the five fastest of an exhaustive search: its winner may have been lucky.
  void find_regret(Session& session, const Problem& at, const Candidate& choice, const fs::path& cache) {
    TuningOptions options;
    options.budget = milliseconds(options_.exhaustive_ms);
    options.exhaustive = true;
    const Tuning tuning = session.tune(at, options);
    if (!tuning.winner) return;
    std::vector<Candidate> best{tuning.trials[*tuning.winner].candidate};
    int candidates = 0;
    for (const Trial& trial : tuning.trials) {
      if (trial.verdict != Verdict::ok) continue;
      ++candidates;
      if (best.size() < 5 && trial.candidate != best.front()) best.push_back(trial.candidate);
    }
    add("regret", at, choice, best, cache);
    findings_.back().candidates = candidates;
    if (tuning.budget_spent) fmt::print(stderr, "the exhaustive search of {} was cut short\n", to_string(at));
  }

  /// How many the campaign measured, and what it made of the choice and the reference, as its cache tells.
  void ask_campaign(const Problem& at, const fs::path& cache, Finding& finding) const {
    const Output output =
        run_process({options_.hone, "explain", "--json", "--cache", cache.string(), "--op",
                     std::string(at.family->operations()[at.operation]), "--dtype",
                     std::string(info(at.dtype).name), "--size", fmt::format("{}", at.extents[0])});
    const auto json = nlohmann::json::parse(output.text, nullptr, false);
    if (!json.is_object() || json.value("winners", nlohmann::json::array()).empty()) return;
    const auto& winner = json["winners"][0];
    finding.measured = winner.value("measured", 0);
    for (const auto& candidate : winner.value("candidates", nlohmann::json::array())) {
      const std::string name =
          fmt::format("{} blocks={}", candidate.value("policy", ""), candidate.value("max_blocks", std::int64_t{0}));
      const std::string fate = fmt::format("{}, {:.3f} µs: {}", candidate.value("fate", ""),
                                           candidate.value("median_us", 0.0), candidate.value("why", ""));
      if (name == finding.chosen) finding.chosen_fate = fate;
      if (name == finding.reference) finding.reference_fate = fate;
    }
  }

  void find_untuned(Session& session, Session& chosen, const Problem& at) {
    const std::optional<Candidate> choice = winner(chosen, at);
    if (!choice) return;
    TuningOptions options;
    options.budget = milliseconds(options_.budget_ms);
    const Tuning tuning = session.tune(at, options);
    if (tuning.winner) add("untuned", at, *choice, {tuning.trials[*tuning.winner].candidate}, {});
  }

  /// A finding whose choice and rivals, the reference first, are yet to be measured side by side. `cache`: of the
  /// campaign that chose; "" when it did not tune this very size.
  void add(const std::string& part, const Problem& at, const Candidate& choice, const std::vector<Candidate>& rivals,
           const fs::path& cache) {
    Rivalry rivalry{.problem = at, .candidates = {choice}};
    for (const Candidate& rival : rivals)
      if (rival != choice) rivalry.candidates.push_back(rival);
    findings_.push_back({.part = part,
                         .problem = to_string(at),
                         .chosen = text_of(at, choice),
                         .reference = text_of(at, rivals.front())});
    pending_.push_back({findings_.size() - 1, std::move(rivalry), cache});
  }

  struct Pending {
    std::size_t finding;
    Rivalry rivalry;
    fs::path cache;
  };

  /// Measures what was added since.
  void judge_pending(const fs::path& folder) {
    std::vector<Rivalry> rivalries;
    for (const Pending& pending : pending_) rivalries.push_back(pending.rivalry);
    const std::vector<Verdicts> verdicts =
        judge(rivalries, judge_command(options_, *device_), options_.compare_processes, folder);
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      Finding& finding = findings_[pending_[i].finding];
      is_good_ = conclude(rivalries[i], verdicts[i], finding) && is_good_;
      if (!pending_[i].cache.empty()) ask_campaign(rivalries[i].problem, pending_[i].cache, finding);
      fmt::print("{:<11} {:<40}  {:.2f} % behind\n", finding.part, finding.problem, 100 * finding.regret());
    }
    std::fflush(stdout);
    pending_.clear();
  }

  void write() const { write_findings(options_.out, device_->facts(), findings_, campaigns_); }

  const RegretOptions& options_;
  std::shared_ptr<Device> device_;
  std::vector<Finding> findings_;
  std::vector<Pending> pending_;
  std::vector<TimedCampaign> campaigns_;
  Clock::time_point start_ = Clock::now();
  bool is_good_ = true;  ///< whether every campaign and every comparison succeeded
};

}  // namespace

bool study_campaigns(const RegretOptions& options) { return Study(options).run_all(); }

}  // namespace hone::benchmarks
