// A program may keep a Session in a static object, whose destructor runs after main().
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hone/error.h>
#include <hone/kernel_family.h>
#include <hone/session.h>
#include <hone/tuned_reduce.h>

#include "tests/runtime/support/every_family.h"

namespace hone {
namespace {

/// What families say of a few problems each: names, parameters, numbers and inputs to verify with.
std::string said_by_families() {
  std::string text;
  for (const Problem& problem : sample_problems()) {
    const KernelFamily& family = *problem.family;
    text += to_string(problem) + family.refuse(problem) + family.space().to_string(family.space().all().front());
    for (const std::string_view name : family.extent_names()) text += name;
    for (const std::string_view kind : family.verifier().input_kinds(problem)) text += kind;
    for (const SourceFile& source : family.sources()) text += source.name;
    text += '\n';
  }
  return text;
}

/// Made before all families, and destroyed behind what was made later.
struct Last {
  Session session{Device::open("host"), {.on_miss = MissPolicy::heuristic, .cache_path = {}}};
  std::string said = {};

  ~Last() {
    if (said_by_families() != said) std::_Exit(1);
    if (sum_of_ones<double>() != 1000) std::_Exit(2);
  }

  /// Compiles a kernel for elements of `T`.
  template <class T>
  T sum_of_ones() {
    const std::vector<T> ones(1000, 1);
    T result = 0;
    tuned_reduce(session, hone::sum, ones.data(), 1000, &result, nullptr);
    session.device()->synchronize(nullptr);
    return result;
  }
};

TEST(StaticSessionDeathTest, ServesCallsAfterMain) {
  if (Device::open("host")->compiler_identity().empty()) GTEST_SKIP() << "there is no compiler for the host device";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has made no family yet
  EXPECT_EXIT(
      {
        static Last last;
        last.said = said_by_families();
        std::exit(last.sum_of_ones<float>() == 1000 ? 0 : 3);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hone
