// Times the first result of a process, with the winner in the cache file: opening the file, finding the winner,
// verifying it, loading its code, launching it, and waiting for the sum. Each sample is a process of its own; figures
// are medians.
//
// The cases differ in the file (few winners, many, one that was evicted) and in whether a compiler can be found.
//
// usage: first_result [--device NAME] [--samples N] [--winners N] [--json FILE]
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hone/error.h>

#include "benchmarks/common/program.h"
#include "benchmarks/common/report.h"
#include "benchmarks/first_result/cache_files.h"
#include "benchmarks/first_result/sample.h"
#include "benchmarks/tuner_regret/process.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// More than fit the least limit, on any device.
constexpr std::int64_t kEvictedWinners = 500;

struct Options {
  std::string device = "auto", json;
  int samples = 21;
  std::int64_t winners = 100'000;
  std::string prepare, sample;  ///< what a process of our own is to do with a cache file
};

struct Case {
  std::string name;
  fs::path file;
  std::vector<std::string> environment = {};  ///< "NAME=VALUE"
};

/// A folder that is gone with it.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("hone-first-result-{}", ::getpid())) {
    fs::create_directory(path_);
    fs::permissions(path_, fs::perms::owner_all);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::string run_self(const Options& options, const std::string& task, const fs::path& file,
                     const std::vector<std::string>& environment = {}) {
  std::vector<std::string> command{"env"};
  command.insert(command.end(), environment.begin(), environment.end());
  for (const std::string& word : {fs::read_symlink("/proc/self/exe").string(), task, file.string(),
                                  std::string("--device"), options.device})
    command.push_back(word);
  const hone::benchmarks::Output output = hone::benchmarks::run_process(command);
  if (output.exit_code != 0)
    throw hone::Error(hone::ErrorCode::io_failed, fmt::format("{} {} failed: {}", task, file.string(), output.text));
  return output.text;
}

/// The medians of all numbers, those of the steps one level down. A step that a sample does not have took it no time.
ordered_json medians_of(const std::vector<ordered_json>& samples) {
  std::map<std::string, std::vector<double>> numbers;
  std::vector<std::string> names;
  for (const ordered_json& sample : samples)
    for (const auto& [name, value] : sample.items())
      if (value.is_number() && numbers.try_emplace(name).second) names.push_back(name);
  ordered_json medians;
  for (const std::string& name : names) {
    for (const ordered_json& sample : samples) numbers[name].push_back(sample.value(name, 0.0));
    medians[name] = hone::benchmarks::median(numbers[name]);
  }
  return medians;
}

ordered_json measure(const Options& options, const Case& each) {
  std::vector<ordered_json> samples, steps;
  for (int i = 0; i < options.samples; ++i) {
    samples.push_back(ordered_json::parse(run_self(options, "--sample", each.file, each.environment)));
    steps.push_back(samples.back()["steps"]);
  }
  ordered_json medians = medians_of(samples);
  medians["steps"] = medians_of(steps);
  medians["has_compiler"] = samples.front()["has_compiler"];
  medians["device_name"] = samples.front()["device_name"];
  medians["file_bytes"] = fs::file_size(each.file);
  return medians;
}

void print_row(const std::string& name, const std::map<std::string, ordered_json>& results,
               const std::vector<Case>& cases, bool is_step) {
  fmt::print("{:<22}", (is_step ? "  " : "") + name);
  for (const Case& each : cases) {
    const ordered_json& result = results.at(each.name);
    fmt::print(" {:>12.3f}", (is_step ? result["steps"] : result).value(name, 0.0));
  }
  fmt::print("\n");
}

void print_table(const std::map<std::string, ordered_json>& results, const std::vector<Case>& cases) {
  fmt::print("{:<22}", "ms, medians");
  for (const Case& each : cases) fmt::print(" {:>12}", each.name);
  fmt::print("\n");
  for (const char* name : {"context", "device", "total", "session", "call", "sync", "second"})
    print_row(name, results, cases, false);
  fmt::print("steps, without those inside of them\n");
  std::map<std::string, bool> steps;
  for (const auto& [name, result] : results)
    for (const auto& [step, ms] : result["steps"].items()) steps[step] = true;
  for (const auto& [step, is_there] : steps) print_row(step, results, cases, true);
  print_row("compiles", results, cases, false);
}

bool run(const Options& options) {
  using namespace hone::benchmarks;
  if (!options.prepare.empty()) return tune_few(options.device, options.prepare), true;
  if (!options.sample.empty()) {
    fmt::print("{}\n", take_sample(options.device, options.sample).dump());
    return true;
  }
  const Folder folder;
  const fs::path few = folder / "few.sqlite", many = folder / "many.sqlite", evicted = folder / "evicted.sqlite";
  run_self(options, "--prepare", few);
  copy_with_many(few, options.winners, CodeOfCopies::shared, many);
  copy_with_many(few, kEvictedWinners, CodeOfCopies::own, evicted);
  std::this_thread::sleep_for(std::chrono::seconds(1));  // times of use are in seconds
  run_self(options, "--sample", evicted);
  evict(evicted);
  const std::vector<std::string> no_compiler{"HONE_NVRTC=/nonexistent", "HONE_CXX=/nonexistent"};
  const std::vector<Case> cases{
      {"few", few}, {"many", many}, {"no compiler", few, no_compiler}, {"evicted", evicted}};
  std::map<std::string, ordered_json> results;
  ordered_json rows;
  for (const Case& each : cases) rows[each.name] = results[each.name] = measure(options, each);
  const std::string device = results.begin()->second["device_name"];
  fmt::print("first result on {}, {}: {} processes each; \"many\" are {} winners, {:.0f} MiB\n\n", device, today(),
             options.samples, options.winners, static_cast<double>(fs::file_size(many)) / (1 << 20));
  print_table(results, cases);
  write_json(options.json, {{"device", device},
                            {"date", today()},
                            {"samples", options.samples},
                            {"winners", options.winners},
                            {"cases", rows}});
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto set_up = [&](hone::benchmarks::CommandLine& command_line) {
    command_line.describe("Time of the first result of a process whose winner is in the cache file, split into steps");
    command_line.add("--device", options.device, "auto, cuda:N or host (default: auto)");
    command_line.add("--samples", options.samples, "processes of each case (default: 21)");
    command_line.add("--winners", options.winners, "winners of the large file (default: 100000)");
    command_line.add("--json", options.json, "write the figures to this JSON file");
    command_line.add("--prepare", options.prepare, "tune into this cache file, and end");
    command_line.add("--sample", options.sample, "take one sample with this cache file, print it as JSON, and end");
  };
  return hone::benchmarks::run_program("first_result", argc, argv, set_up, [&] { return run(options); });
}
