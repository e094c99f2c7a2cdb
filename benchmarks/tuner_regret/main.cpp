// Measures the worth of the tuner's choices: each part runs `hone tune` as anybody would, from an empty cache, and
// measures what it chose side by side with what more effort finds.
//
//   regret     against an exhaustive search of the same problems: choice, the exhaustive winner and its next four
//   stability  against a second campaign from an empty cache
//   interrupted  against a campaign that was interrupted at ten random moments and went on
//   untuned    at sizes that were not tuned (a prime near 1.2 · 2^k, and 1.5 · 2^k) against a tuning at that very size
//   time       the wall time of campaigns alone
//
// Rivals are measured in processes of their own (judge.h).
//
// Findings are written after each line of problems, so that what is there when the time is over can be used.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <hone/hone.h>
#include <hone/kernel_family.h>
#include <nlohmann/json.hpp>

#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"
#include "benchmarks/tuner_regret/findings.h"
#include "benchmarks/tuner_regret/judge.h"
#include "benchmarks/tuner_regret/process.h"

namespace hone::benchmarks {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Options {
  std::string hone;
  std::string device = "auto";
  std::vector<std::string> parts{"regret", "stability", "interrupted", "untuned", "time"};
  std::vector<std::string> ops{"sum", "argmax"};
  std::vector<std::string> dtypes{"f32", "f16", "i8"};
  int first_exponent = 10;
  int last_exponent = 28;
  int budget_ms = 2000;
  int exhaustive_ms = 30000;
  int compare_ms = 1000;
  int compare_processes = 3;
  int time_limit_s = 540;
  bool standard = false;
  std::string keep;
  std::string out;
  std::string judge;  ///< file of rivalries; "": this is the study
};

/// A new folder for cache files, which goes with it unless it is to be kept in `keep`.
class CacheFolder {
 public:
  CacheFolder(const std::string& keep, const std::string& name) : is_kept_(!keep.empty()) {
    std::string path = is_kept_ ? (fs::path(keep) / name).string()
                                : (fs::temp_directory_path() / "hone_regret_XXXXXX").string();
    std::error_code failure;
    const bool is_made = is_kept_ ? fs::create_directories(path, failure) : mkdtemp(path.data()) != nullptr;
    if (!is_made) throw Error(ErrorCode::io_failed, "no new folder could be made: " + path);
    path_ = path;
  }
  ~CacheFolder() {
    std::error_code ignored;
    if (!is_kept_) fs::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  bool is_kept() const { return is_kept_; }
  const fs::path& path() const { return path_; }
  fs::path file(const std::string& name) const { return path_ / (name + ".sqlite"); }

 private:
  bool is_kept_;
  fs::path path_;
};

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
  explicit Study(const Options& options) : options_(options), device_(Device::open(options.device)) {}

  void run_all() {
    if (wants("time")) time_campaigns();
    for (const std::string& op : options_.ops)
      for (const std::string& dtype : options_.dtypes) {
        if (is_over()) fmt::print(stderr, "the time is over: {} {} is left out\n", op, dtype);
        if (!is_over()) study_line(op, dtype);
        write();
      }
  }

  /// Returns true if every campaign and every comparison succeeded.
  bool is_good() const { return is_good_; }

 private:
  bool wants(std::string_view part) const {
    return std::find(options_.parts.begin(), options_.parts.end(), part) != options_.parts.end();
  }
  bool is_over() const { return Clock::now() - start_ > std::chrono::seconds(options_.time_limit_s); }

  Problem problem(const std::string& op, const std::string& dtype, std::int64_t n) const {
    return reduce_problem(parse_reduce_op(op), parse_dtype(dtype), n);
  }

  std::string text(const Problem& problem, const Candidate& candidate) const {
    return fmt::format("{} blocks={}", problem.family->space().to_string(candidate.policy),
                       candidate.geometry.max_blocks);
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
          fmt::format("{} blocks={}", candidate.value("variant", ""), candidate.value("max_blocks", std::int64_t{0}));
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

  /// A finding whose choice and rivals are yet to be measured side by side, unless they are one and the same. `cache`:
  /// of the campaign that chose; "" when it did not tune this very size.
  void add(const std::string& part, const Problem& at, const Candidate& choice, const std::vector<Candidate>& rivals,
           const fs::path& cache) {
    findings_.push_back({.part = part,
                         .problem = fmt::format("{} {}", at.family->operations()[at.operation], info(at.dtype).name),
                         .n = at.extents[0],
                         .chosen = text(at, choice),
                         .reference = text(at, rivals.front())});
    std::vector<Candidate> candidates = rivals;
    if (std::find(rivals.begin(), rivals.end(), choice) == rivals.end()) candidates.push_back(choice);
    pending_.push_back({findings_.size() - 1, {at, candidates}, choice, cache});
  }

  /// Measures what was added since.
  void judge_pending(const fs::path& folder) {
    std::vector<Rivalry> rivalries;
    for (const Pending& pending : pending_)
      if (pending.rivalry.candidates.size() > 1) rivalries.push_back(pending.rivalry);
    std::vector<std::vector<double>> times;
    if (!rivalries.empty())
      times = judge(rivalries,
                    {fs::read_symlink("/proc/self/exe").string(), "--hone", options_.hone, "--device",
                     std::string(device_->name()), "--compare-ms", std::to_string(options_.compare_ms), "--judge"},
                    options_.compare_processes, folder);
    auto us = times.begin();
    for (const Pending& pending : pending_) {
      Finding& finding = findings_[pending.finding];
      if (pending.rivalry.candidates.size() > 1) conclude(pending, *us++, finding);
      if (!pending.cache.empty()) ask_campaign(pending.rivalry.problem, pending.cache, finding);
      fmt::print("{:<11} {:<12} {:>11}  {:.2f} % behind\n", finding.part, finding.problem, finding.n,
                 100 * finding.regret());
    }
    std::fflush(stdout);
    pending_.clear();
  }

  struct Pending {
    std::size_t finding;
    Rivalry rivalry;  ///< the reference first
    Candidate choice;
    fs::path cache;
  };

  /// `us`: what the candidates take.
  void conclude(const Pending& pending, const std::vector<double>& us, Finding& finding) {
    const std::vector<Candidate>& candidates = pending.rivalry.candidates;
    for (std::size_t i = 0; i < us.size(); ++i) {
      if (us[i] == 0) continue;
      if (candidates[i] == pending.choice) finding.chosen_us = us[i];
      const bool is_reference =
          finding.part == "regret" ? finding.reference_us == 0 || us[i] < finding.reference_us : i == 0;
      if (!is_reference) continue;
      finding.reference_us = us[i];
      finding.reference = text(pending.rivalry.problem, candidates[i]);
    }
    if (finding.chosen_us > 0 && finding.reference_us > 0) return;
    fmt::print(stderr, "{}: {} or {} could not be measured or is wrong\n", to_string(pending.rivalry.problem),
               finding.chosen, finding.reference);
    is_good_ = false;
  }

  void write() const {
    if (options_.out.empty()) return;
    auto json = to_json(findings_, campaigns_);
    json["device"] = device_->facts().name;
    json["driver"] = device_->facts().driver;
    json["date"] = today();
    write_json(options_.out + ".json", json);
    std::ofstream table(options_.out + ".txt");
    table << fmt::format("{}, driver {}, {}\n\n", device_->facts().name, device_->facts().driver, today())
          << to_table(findings_, campaigns_);
    if (!table.flush()) throw Error(ErrorCode::io_failed, "cannot write " + options_.out + ".txt");
  }

 public:
  std::string table() const { return to_table(findings_, campaigns_); }

 private:
  const Options& options_;
  std::shared_ptr<Device> device_;
  std::vector<Finding> findings_;
  std::vector<Pending> pending_;
  std::vector<TimedCampaign> campaigns_;
  Clock::time_point start_ = Clock::now();
  bool is_good_ = true;
};

void set_up(CommandLine& command_line, Options& options) {
  command_line.describe(
      "What the tuner's choices are worth: against an exhaustive search, a second campaign, and at sizes between");
  command_line.add("--hone", options.hone, "the hone command");
  command_line.require("--hone");
  command_line.add("--device", options.device, "auto, cuda:N or host");
  command_line.add("--part", options.parts, "regret, stability, interrupted, untuned, time; all of them");
  command_line.add("--op", options.ops, "operations");
  command_line.add("--dtype", options.dtypes, "dtypes");
  command_line.add("--from", options.first_exponent, "the smallest size is 2^FROM", 8, 34);
  command_line.add("--to", options.last_exponent, "the largest size is 2^TO", 8, 34);
  command_line.add("--budget-ms", options.budget_ms, "of hone tune, for one problem");
  command_line.add("--exhaustive-ms", options.exhaustive_ms, "of the exhaustive search, for one problem");
  command_line.add("--compare-ms", options.compare_ms, "for measuring choices side by side, each time");
  command_line.add("--compare-processes", options.compare_processes,
                   "that measure them, one after the other; the median counts");
  command_line.add("--time-limit-s", options.time_limit_s, "what is not begun by then is left out");
  command_line.add_flag("--standard", options.standard, "time hone tune --preset standard, too");
  command_line.add("--keep", options.keep, "keep the cache files in this new folder, for hone explain");
  command_line.add("--out", options.out, "write OUT.json and OUT.txt");
  command_line.add("--judge", options.judge, "measure the rivals in this file alone: what such a process does");
}

bool run_study(const Options& options) {
  if (!options.judge.empty()) {
    measure_rivalries(Device::open(options.device), options.judge, options.compare_ms);
    return true;
  }
  Study study(options);
  study.run_all();
  fmt::print("\n{}", study.table());
  return study.is_good();
}

}  // namespace
}  // namespace hone::benchmarks

int main(int argc, char** argv) {
  using namespace hone::benchmarks;
  Options options;
  return run_program(
      "tuner_regret", argc, argv, [&](CommandLine& command_line) { set_up(command_line, options); },
      [&] { return run_study(options); });
}
