#include "tests/layering/include_rules.h"

#include <utility>
#include <vector>

namespace hone::layering {

namespace {

constexpr std::string_view kPublic = "runtime/include/hone/";
constexpr std::string_view kSdk = "runtime/include/hone/sdk/";
constexpr std::string_view kPrelude = "runtime/device/host/prelude/";

/// The rule of a family: it includes itself, what all families share, and the families that it is built on.
std::vector<std::string_view> of_families(std::vector<std::string_view> built_on = {}) {
  built_on.insert(built_on.end(),
                  {kPublic, "kernel_templates/", "runtime/jit/include_closure.h", "cache/digest.h"});
  return built_on;
}

/// A command of hone: it includes what all commands share.
FolderRule command(std::string_view folder, std::vector<std::string_view> built_on = {}) {
  FolderRule rule{.folder = folder, .may_include = std::move(built_on)};
  rule.may_include.insert(rule.may_include.end(),
                          {kPublic, "cache/", "tuner/text/", "tuner/problems/", "tuner/context/", "tuner/winners/"});
  return rule;
}

}  // namespace

const IncludeRules& house_rules() {
  // From the bottom up. Within runtime/ these are the stages that a problem passes through, in order; the one step
  // against that order is a device that brings its compiler along.
  static const IncludeRules rules{
      .folders =
          {
              {.folder = "kernel_templates/", .standard_library = false},
              {.folder = "cache/"},
              {.folder = kPublic},
              {.folder = kSdk, .may_include = {kPublic}},
              {.folder = "runtime/include/hone/mpi/",
               .may_include = {"runtime/include/hone/communicator.h", "runtime/include/hone/error.h"}},
              {.folder = kPrelude, .standard_library = false},
              {.folder = "runtime/trace/"},
              {.folder = "runtime/jit/", .may_include = {kPublic, kPrelude, "cache/digest.h", "runtime/trace/"}},
              {.folder = "runtime/device/nvml/", .may_include = {kPublic}},
              {.folder = "runtime/device/host/",
               .may_include = {kPublic, kPrelude, "runtime/jit/", "runtime/device/nvml/", "runtime/trace/"}},
              {.folder = "runtime/device/cuda/",
               .may_include = {kPublic, "runtime/jit/", "runtime/device/nvml/", "runtime/trace/"}},
              {.folder = "runtime/device/",
               .may_include = {kPublic, "runtime/device/host/", "runtime/device/cuda/", "runtime/jit/",
                               "kernel_templates/small_float.cuh"}},
              {.folder = "runtime/problem/", .may_include = {kPublic, "cache/shell_quoted.h"}},
              {.folder = "runtime/families/", .may_include = of_families(), .each_below = true},
              {.folder = "runtime/families/combine_ranks/",
               .may_include = of_families({"runtime/families/reduce/", "runtime/families/softmax/"})},
              {.folder = "runtime/families/custom/", .may_include = of_families({"runtime/families/reduce/"})},
              {.folder = "runtime/families/fused/", .may_include = of_families({"runtime/families/reduce/"})},
              {.folder = "runtime/families/reduce_axis/", .may_include = of_families({"runtime/families/reduce/"})},
              {.folder = "runtime/families/segmented_reduce/",
               .may_include = of_families({"runtime/families/reduce/"})},
              {.folder = "runtime/families/softmax/", .may_include = of_families({"runtime/families/reduce/"})},
              {.folder = "runtime/search/", .may_include = {kPublic, "runtime/families/"}},
              {.folder = "runtime/measure/", .may_include = {kPublic, "runtime/families/", "runtime/search/"}},
              {.folder = "runtime/choose/",
               .may_include = {kPublic, "runtime/trace/", "runtime/jit/", "runtime/families/", "runtime/search/",
                               "runtime/measure/"}},
              {.folder = "runtime/dispatch/",
               .may_include = {kPublic, "runtime/trace/", "runtime/jit/", "runtime/families/", "runtime/search/",
                               "runtime/measure/", "runtime/choose/", "cache/"}},
              // No command includes another one, but tune and plan, which take problems as campaigns do, and
              // transfer, which compiles as they do.
              {.folder = "tuner/text/", .may_include = {kPublic}},
              {.folder = "tuner/problems/", .may_include = {kPublic, "cache/", "tuner/text/"}},
              {.folder = "tuner/context/", .may_include = {kPublic, "cache/", "tuner/text/", "tuner/problems/"}},
              {.folder = "tuner/winners/",
               .may_include = {kPublic, "cache/", "tuner/text/", "tuner/problems/", "tuner/context/"}},
              {.folder = "tuner/campaign/", .may_include = {kPublic, "cache/", "tuner/text/", "tuner/problems/"}},
              command("tuner/array/"),
              command("tuner/cache/"),
              command("tuner/check/"),
              command("tuner/devices/"),
              command("tuner/emit/"),
              command("tuner/explain/"),
              command("tuner/inspect/"),
              command("tuner/occupancy/"),
              command("tuner/plan/", {"tuner/campaign/"}),
              command("tuner/report/"),
              command("tuner/shell/"),
              command("tuner/stats/"),
              command("tuner/transfer/", {"tuner/campaign/"}),
              command("tuner/tune/", {"tuner/campaign/"}),
              {.folder = "tuner/", .may_include = {kPublic, "cache/", "tuner/"}},
              {.folder = "examples/", .may_include = {kPublic}},
              {.folder = "examples/kernel_test/", .may_include = {kPublic}},
              {.folder = "benchmarks/", .may_include = {kPublic}},
              {.folder = "benchmarks/first_result/",
               .may_include = {kPublic, "benchmarks/common/", "benchmarks/tuner_regret/process.h", "cache/",
                               "runtime/trace/"}},
          },
      .libraries =
          {
              {.headers = {"sqlite3.h", "xxhash.h", "zlib.h"}, .folders = {"cache/"}},
              {.headers = {"cuda", "nvrtc.h"},
               .folders = {"runtime/device/cuda/", "runtime/jit/", "examples/", "benchmarks/"}},
              {.headers = {"cub/", "cublas_v2.h", "cusparse.h", "thrust/", "benchmark/", "cooperative_groups"},
               .folders = {"benchmarks/"}},
              {.headers = {"nvtx3/"}, .folders = {"runtime/trace/"}},
              {.headers = {"boost/context/", "sanitizer/"}, .folders = {"runtime/device/host/"}},
              {.headers = {"CLI/"}, .folders = {"tuner/", "benchmarks/"}},
              {.headers = {"nlohmann/"}, .folders = {"cache/", "tuner/", "benchmarks/"}},
              {.headers = {"toml++/"}, .folders = {"tuner/"}},
              {.headers = {"mpi.h"}, .folders = {"runtime/include/hone/mpi/", "examples/"}},
              {.headers = {"fmt/"},
               .folders = {"cache/", "runtime/device/", "runtime/jit/", "runtime/problem/", "runtime/families/",
                           "runtime/search/", "runtime/measure/", "runtime/choose/", "runtime/dispatch/", "tuner/",
                           "benchmarks/"}},
              {.headers = {"gmock/", "gtest/"}, .folders = {"examples/kernel_test/"}},
              // The operating system's and the compiler's.
              {.headers = {"cxxabi.h", "dlfcn.h", "elf.h", "fcntl.h", "gnu/", "grp.h", "link.h", "poll.h", "pthread.h",
                           "pwd.h", "sched.h", "signal.h", "spawn.h", "sys/", "time.h", "ucontext.h", "unistd.h"},
               .folders = {"cache/", "runtime/device/", "runtime/jit/", "runtime/trace/", "runtime/dispatch/", "tuner/",
                           "benchmarks/"}},
          },
      // Code that describes and decides knows neither sessions nor the tuned_…() calls, which all need this header.
      .hidden = {{.header = "runtime/include/hone/session.h",
                  .from = {"runtime/problem/", "runtime/families/", "runtime/jit/", "runtime/device/",
                           "runtime/search/", "runtime/measure/", "runtime/choose/", kSdk}}},
      .roots = {"kernel_templates/", "cache/", "runtime/", "tuner/", "examples/", "benchmarks/"},
  };
  return rules;
}

}  // namespace hone::layering
