// Compiles units of every built-in family for every GPU architecture, by NVRTC, and says what failed, what spilled and
// how long it took. scripts/architectures builds and runs it.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/sdk/gpu_compiler.h>

#include "runtime/choose/compiled.h"
#include "runtime/jit/cubin_resources.h"
#include "tests/runtime/support/every_family.h"

namespace hone {
namespace {

constexpr std::string_view kUsage =
    "usage: scripts/architectures [--family NAME]... [--architecture sm_NN]... [--sample N] [--seed N] [--jobs N]\n"
    "\n"
    "Compiles the units of every valid policy of sample problems of each built-in family, for each GPU architecture,\n"
    "by NVRTC; no GPU is needed. A row for each family and architecture: units, failures, units that spill, the\n"
    "largest local memory of a thread, and seconds. Exits with 1 if a unit did not compile.\n"
    "\n"
    "  --family NAME         only this family; may be given several times\n"
    "  --architecture sm_NN  only this architecture; may be given several times\n"
    "  --sample N            only N units, drawn at random, of each family and architecture\n"
    "  --seed N              of the drawing; default: 1\n"
    "  --jobs N              threads; default: one for each core. NVRTC keeps about 4 cores busy\n"
    "  --help                this text\n";

/// Divisions and exponentials of f64 are calls, whose stack frames are no spilled registers.
constexpr int kMostCallFrameBytes = 64;

struct UsageError {
  std::string what;
};

struct Options {
  std::vector<std::string> families, architectures;
  std::size_t sample = 0;  ///< 0: all
  unsigned seed = 1;
  unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  bool help = false;
};

template <class Number>
Number positive(std::string_view option, std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0)
    throw UsageError{fmt::format("{}: '{}' is no positive number", option, text)};
  return number;
}

Options parse(const std::vector<std::string_view>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view option = words[i];
    if (option == "--help" || option == "-h") {
      options.help = true;
      continue;
    }
    const auto value = [&] {
      if (++i == words.size()) throw UsageError{fmt::format("{}: a value is missing", option)};
      return words[i];
    };
    if (option == "--family") options.families.emplace_back(value());
    else if (option == "--architecture") options.architectures.emplace_back(value());
    else if (option == "--sample") options.sample = positive<std::size_t>(option, value());
    else if (option == "--seed") options.seed = positive<unsigned>(option, value());
    else if (option == "--jobs") options.jobs = positive<unsigned>(option, value());
    else throw UsageError{fmt::format("unknown argument '{}'", option)};
  }
  return options;
}

/// All `known` names, or those of them that are `wanted`.
std::vector<std::string> choose(std::string_view option, const std::vector<std::string>& known,
                                const std::vector<std::string>& wanted) {
  for (const std::string& name : wanted)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError{fmt::format("{}: there is no '{}'; known: {}", option, name, fmt::join(known, ", "))};
  return wanted.empty() ? known : wanted;
}

struct Case {
  Problem problem;
  Policy policy;
};

std::vector<Case> valid_cases(std::string_view family, const DeviceFacts& facts) {
  std::vector<Case> cases;
  for (const Problem& problem : sample_problems()) {
    if (problem.family->name() != family) continue;
    for (const Policy& policy : problem.family->space().all())
      if (problem.family->is_valid(problem, policy, facts).empty()) cases.push_back({problem, policy});
  }
  return cases;
}

struct Tally {
  std::size_t compiled = 0, failed = 0, spilled = 0;
  int most_local_bytes = 0;
  std::string unsupported;
};

/// Compiles one unit and adds what became of it to `tally`, which `mutex` guards.
void compile(const GpuCompiler& compiler, const Case& one, const DeviceFacts& facts, Tally& tally, std::mutex& mutex) {
  std::string fault;
  ErrorCode code{};
  int local_bytes = 0;
  try {
    const Binary binary = compiler.compile(unit_of(one.problem, one.policy), facts.architecture);
    for (const std::string& symbol : binary.entries) {
      const std::optional<Resources> resources = cubin_resources(binary.code, symbol);
      if (resources) local_bytes = std::max(local_bytes, static_cast<int>(resources->local_bytes));
      else fault = fmt::format("no kernel {} in the cubin", symbol);
    }
  } catch (const Error& error) {
    fault = error.what();
    code = error.code();
  }
  const std::scoped_lock lock(mutex);
  ++tally.compiled;
  tally.spilled += local_bytes > kMostCallFrameBytes;
  tally.most_local_bytes = std::max(tally.most_local_bytes, local_bytes);
  if (fault.empty()) return;
  if (code == ErrorCode::unsupported) tally.unsupported = fault;
  else {
    ++tally.failed;
    fmt::print(stderr, "{} {} {}: {}\n", facts.architecture, to_string(one.problem),
               one.problem.family->space().to_string(one.policy), fault);
  }
}

Tally compile_all(const GpuCompiler& compiler, const std::vector<Case>& cases, const DeviceFacts& facts,
                  unsigned jobs) {
  Tally tally;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned job = 0; job < jobs; ++job)
      threads.emplace_back([&] {
        for (std::size_t i = next++; i < cases.size(); i = next++) compile(compiler, cases[i], facts, tally, mutex);
      });
  }
  return tally;
}

int run(const Options& options) {
  std::vector<std::string> families, architectures;
  for (const Problem& problem : sample_problems())
    if (const std::string name(problem.family->name());
        std::find(families.begin(), families.end(), name) == families.end())
      families.push_back(name);
  for (const int capability : kComputeCapabilities)
    architectures.push_back(facts_of_architecture(capability).architecture);
  families = choose("--family", families, options.families);
  const std::vector<std::string> chosen = choose("--architecture", architectures, options.architectures);

  std::mt19937 random(options.seed);
  const GpuCompiler compiler;
  std::size_t failed = 0;
  fmt::print("{:<20}{:<8}{:>8}{:>8}{:>9}{:>13}{:>8}\n", "family", "gpu", "units", "failed", "spilled", "local bytes",
             "s");
  for (const std::string& family : families)
    for (const int capability : kComputeCapabilities) {
      const DeviceFacts facts = facts_of_architecture(capability);
      if (std::find(chosen.begin(), chosen.end(), facts.architecture) == chosen.end()) continue;
      std::vector<Case> cases = valid_cases(family, facts);
      std::shuffle(cases.begin(), cases.end(), random);
      if (options.sample > 0 && cases.size() > options.sample) cases.resize(options.sample);
      const auto start = std::chrono::steady_clock::now();
      const Tally tally = compile_all(compiler, cases, facts, options.jobs);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      if (!tally.unsupported.empty()) {
        fmt::print("{:<20}{:<8}  not compiled: {}\n", family, facts.architecture, tally.unsupported);
        continue;
      }
      failed += tally.failed;
      fmt::print("{:<20}{:<8}{:>8}{:>8}{:>9}{:>13}{:>8.1f}\n", family, facts.architecture, tally.compiled, tally.failed,
                 tally.spilled, tally.most_local_bytes, seconds.count());
      std::fflush(stdout);
    }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace hone

int main(int count, char** words) {
  try {
    const hone::Options options = hone::parse({words + 1, words + count});
    if (!options.help) return hone::run(options);
    fmt::print("{}", hone::kUsage);
    return 0;
  } catch (const hone::UsageError& error) {
    fmt::print(stderr, "{}\nerror: {}\n", hone::kUsage, error.what);
    return 2;
  }
}
