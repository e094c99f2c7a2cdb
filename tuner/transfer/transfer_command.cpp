#include "tuner/transfer/transfer_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <hone/device.h>
#include <hone/sdk/absent_gpu.h>
#include <hone/sdk/transfer.h>

#include "cache/errors.h"
#include "cache/store.h"
#include "tuner/campaign/compilers.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/gpu_facts.h"
#include "tuner/context/json_output.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"
#include "tuner/winners/loan_regrets.h"

namespace hone::tuner {
namespace {

/// The tuned winners of a file, and the classes that were measured.
struct TunedFile {
  std::vector<cache::StoredWinner> winners;
  std::vector<TunedClass> classes;
};

/// One class with the choice for the other GPU.
struct Transferred {
  const TunedClass* tuned;
  TransferredChoice choice;
  double regret = -1;  ///< against the trials of the judge; negative: not judged
};

/// Tells classes apart at the extents that were measured.
std::string class_text(const Problem& problem) {
  return fmt::format("{}, alignment {}, {}", to_string(problem), problem.alignment, name(problem.launch_context));
}

TunedFile read_tuned(const std::string& file, const Context& context) {
  const std::filesystem::path path = std::filesystem::absolute(file);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw CommandError(ExitCode::input, fmt::format("'{}' cannot be read: there is no such file", printable(file)));
  const cache::Store store(path);
  std::uint64_t damaged = 0;
  TunedFile tuned{.winners = store.winners(&damaged), .classes = {}};
  cache::refuse_all_damaged(path, std::ssize(tuned.winners), static_cast<std::int64_t>(damaged));
  say_damaged(path, damaged, context);
  std::erase_if(tuned.winners, [](const cache::StoredWinner& stored) {
    return !stored.winner.tuned || stored.key.problem.objective != name(Objective::time);
  });
  tuned.classes =
      tuned_classes(tuned.winners, [&](const cache::StoredWinner& stored) { return store.tuning(stored.id); });
  if (tuned.classes.empty())
    throw CommandError(ExitCode::input,
                       fmt::format("'{}' has no trials of a tuning by time; make them on its GPU with: "
                                   "hone tune --preset standard --cache {}",
                                   printable(file), printable(shell_quoted(file))));
  return tuned;
}

std::shared_ptr<Device> device_of(const TransferOptions& options, const std::optional<TunedFile>& judge) {
  if (!options.gpu.empty()) {
    if (options.gpu.starts_with("cuda:") || options.gpu == "auto") return Device::open(options.gpu);
    return make_absent_gpu(choose_gpu(options.gpu));
  }
  if (!judge) throw CommandError(ExitCode::usage, "for which GPU? Name it with --gpu; see: hone devices --known");
  return nullptr;
}

std::vector<Transferred> transfer(const TunedFile& from, const DeviceFacts& to) {
  std::vector<Transferred> all;
  for (const TunedClass& tuned : from.classes) {
    const DeviceFacts& facts = *tuned.winner.device;
    if (facts.kind != to.kind)
      throw CommandError(ExitCode::usage,
                         fmt::format("trials of {} ({}) say nothing about {} ({}): they are devices of different kinds",
                                     printable(facts.name), facts.kind, printable(to.name), to.kind));
    if (const auto choice = predict_transfer(tuned.winner.problem, facts, tuned.trials, to))
      all.push_back({.tuned = &tuned, .choice = *choice});
  }
  return all;
}

/// Compares each choice with the fastest trial of the same class in the other file.
void judge(std::vector<Transferred>& all, const TunedFile& native) {
  std::map<std::string, const TunedClass*> classes;
  for (const TunedClass& tuned : native.classes) classes[class_text(tuned.winner.problem)] = &tuned;
  for (Transferred& each : all) {
    const auto found = classes.find(class_text(each.tuned->winner.problem));
    if (found == classes.end()) continue;
    double us = 0, fastest = 0;
    for (const Trial& trial : found->second->trials) {
      if (trial.verdict != Verdict::ok || trial.median_us <= 0) continue;
      if (fastest == 0 || trial.median_us < fastest) fastest = trial.median_us;
      if (trial.candidate == each.choice.candidate) us = trial.median_us;
    }
    if (us > 0) each.regret = us / fastest - 1;
  }
}

/// Each winner of the file that was measured in a class has what was chosen for that class, over its own sizes.
std::vector<TransferredWinner> winners_of(const TunedFile& from, const std::vector<Transferred>& all) {
  std::map<std::string, const Transferred*> by_class;
  for (const Transferred& each : all) by_class[class_text(each.tuned->winner.problem)] = &each;
  std::vector<TransferredWinner> winners;
  for (const cache::StoredWinner& winner : from.winners) {
    const std::optional<Problem> problem = problem_of(winner.key.problem, winner.winner.tuned_extents);
    const auto found = problem ? by_class.find(class_text(*problem)) : by_class.end();
    if (found == by_class.end()) continue;
    const Transferred& each = *found->second;
    TransferredWinner& transferred = winners.emplace_back(
        TransferredWinner{.problem = *problem, .sizes = {}, .candidate = each.choice.candidate,
                          .lender = each.tuned->winner.device->name});
    for (std::size_t i = 0; i < transferred.sizes.size(); ++i)
      transferred.sizes[i] = {winner.key.problem.sizes[i].first, winner.key.problem.sizes[i].last};
  }
  return winners;
}

struct StoredCounts {
  std::int64_t stored = 0;
  std::int64_t kept = 0;  ///< that an earlier, interrupted transfer stored
};

/// Stores the winners, in processes that compile as campaigns do, and tells on standard error how far it is: a line for
/// each problem, whose winners for several ranges of sizes follow each other.
StoredCounts store_all(const std::vector<TransferredWinner>& winners, const std::shared_ptr<Device>& device,
                       const std::filesystem::path& path, bool quiet, const Context& context) {
  const std::vector<std::string> compiler{context.environment.worker_program, std::string(kCompilerCommand)};
  TransferStore store(compiling_elsewhere(device, compiler, std::thread::hardware_concurrency()), path);
  StoredCounts counts;
  std::string last;
  store.store(winners, [&](std::size_t index, TransferOutcome outcome) {
    counts.stored += outcome == TransferOutcome::stored ? 1 : 0;
    counts.kept += outcome == TransferOutcome::kept ? 1 : 0;
    if (quiet || outcome == TransferOutcome::kept) return;
    std::string text = printable(problem_label(winners[index].problem));
    if (outcome == TransferOutcome::unusable) text += ": does not run there";
    if (text == last) return;
    context.err << fmt::format("[{:>{}}/{}] {}", index + 1, fmt::formatted_size("{}", winners.size()), winners.size(),
                               text)
                << std::endl;
    last = std::move(text);
  });
  return counts;
}

nlohmann::ordered_json to_json(const Transferred& each) {
  const Problem& problem = each.tuned->winner.problem;
  return {{"problem", to_string(problem)},
          {"policy", problem.family->space().to_string(each.choice.candidate.policy)},
          {"max_blocks", each.choice.candidate.geometry.max_blocks},
          {"predicted_us", each.choice.predicted_us},
          {"regret", each.regret >= 0 ? nlohmann::ordered_json(each.regret) : nlohmann::ordered_json(nullptr)}};
}

void print_regrets(const std::vector<Transferred>& all, const Context& context) {
  std::vector<double> regrets;
  const Transferred* worst = nullptr;
  for (const Transferred& each : all) {
    if (each.regret < 0) continue;
    regrets.push_back(each.regret);
    if (!worst || each.regret > worst->regret) worst = &each;
  }
  context.out << fmt::format("judged {}, not judged {}\n", regrets.size(), all.size() - regrets.size());
  if (!worst) return;
  const double mean = std::accumulate(regrets.begin(), regrets.end(), 0.0) / static_cast<double>(regrets.size());
  context.out << fmt::format("regret: mean {}, worst {} ({})\n", gap_text(mean), gap_text(worst->regret),
                             printable(to_string(worst->tuned->winner.problem)));
}

}  // namespace

void set_up_transfer(CLI::App& app, TransferOptions& options) {
  CLI::App* sub = app.add_subcommand("transfer");
  file_name(sub->add_option("--from", options.from)->take_last());
  one_of(sub->add_option("--gpu", options.gpu)->take_last(), gpu_words);
  file_name(sub->add_option("--cache", options.cache)->take_last());
  file_name(sub->add_option("--judge", options.judge)->take_last());
  sub->add_flag("-q,--quiet", options.quiet)->disable_flag_override();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_transfer(const TransferOptions& options, const Context& context) {
  if (options.from.empty())
    throw CommandError(ExitCode::usage, "no trials were given; name the cache file of another GPU with --from");
  if (!options.gpu.empty() && !options.judge.empty())
    throw CommandError(ExitCode::usage, "--gpu predicts for a GPU and --judge for that of its file: give one of them");
  std::optional<TunedFile> native;
  if (!options.judge.empty()) native = read_tuned(options.judge, context);
  const std::shared_ptr<Device> device = device_of(options, native);
  const DeviceFacts to = device ? device->facts() : *native->classes.front().winner.device;
  const TunedFile from = read_tuned(options.from, context);
  std::vector<Transferred> all = transfer(from, to);
  StoredCounts counts;
  std::filesystem::path path;
  if (native) {
    judge(all, *native);
  } else {
    path = required_cache_path(options.cache, context.environment.session_options());
    counts = store_all(winners_of(from, all), device, path, options.quiet, context);
  }
  if (options.json) {
    nlohmann::ordered_json json{{"gpu", facts_json(to)},
                                {"stored", counts.stored},
                                {"kept", counts.kept},
                                {"winners", nlohmann::ordered_json::array()}};
    for (const Transferred& each : all) json["winners"].push_back(to_json(each));
    print_json(json, context);
    return ExitCode::ok;
  }
  context.out << printable(fmt::format("{} of {} predicted for {}",
                                       count_text(static_cast<std::int64_t>(all.size()), "problem"),
                                       from.classes.front().winner.device->name, to.name))
              << '\n';
  if (native) print_regrets(all, context);
  else context.out << fmt::format("{} in {}{}\n", count_text(counts.stored, "transferred winner"),
                                  printable(path.string()),
                                  counts.kept > 0 ? fmt::format("; {} more were there already", counts.kept) : "");
  return ExitCode::ok;
}

}  // namespace hone::tuner
