#include "tuner/campaign/compilers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <hone/error.h>
#include <hone/gpu_compiler.h>

namespace hone::tuner {
namespace {

using ::testing::HasSubstr;

Unit unit(int number) {
  return {.name = "unit " + std::to_string(number),
          .source = "#include \"value.cuh\"\nextern \"C\" __global__ void f(int* out) { *out = value() + " +
                    std::to_string(number) + "; }\n",
          .headers = {{"value.cuh", "__device__ int value() { return " + std::to_string(number / 2) + "; }\n"}},
          .entries = {"f"}};
}

/// The code, or the error: what a machine without NVRTC has to say is the same in every process, too.
std::string outcome_of(const std::function<Binary()>& compile) {
  try {
    const Binary binary = compile();
    return binary.format + binary.architecture +
           std::string(reinterpret_cast<const char*>(binary.code.data()), binary.code.size());
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + error.what();
  }
}

TEST(Compilers, CompileWhatOneProcessWouldCompile) {
  Compilers compilers({HONE_COMMAND, std::string(kCompilerCommand)}, 2);
  std::vector<std::string> outcomes(8);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    threads.emplace_back([&, i] {
      outcomes[i] = outcome_of([&] { return compilers.compile(unit(static_cast<int>(i)), "sm_90"); });
    });
  threads.clear();
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    EXPECT_EQ(outcomes[i], outcome_of([&] { return compile_for_gpu(unit(static_cast<int>(i)), "sm_90"); })) << i;
}

TEST(Compilers, PassErrorsOnAndGoOn) {
  Compilers compilers({HONE_COMMAND, std::string(kCompilerCommand)}, 1);
  Unit broken = unit(1);
  broken.source = "no kernel";
  const auto here = [](const Unit& each) { return outcome_of([&] { return compile_for_gpu(each, "sm_90"); }); };
  const auto there = [&](const Unit& each) { return outcome_of([&] { return compilers.compile(each, "sm_90"); }); };
  EXPECT_EQ(there(broken), here(broken));
  EXPECT_EQ(there(unit(2)), here(unit(2)));
  EXPECT_EQ(outcome_of([&] { return compilers.compile(unit(2), "sm_1"); }),
            outcome_of([&] { return compile_for_gpu(unit(2), "sm_1"); }));
}

TEST(Compilers, AProcessThatDiesFailsItsUnitAlone) {
  Compilers compilers({"/bin/sh", "-c", "exit 3"}, 1);
  for (int i = 0; i < 3; ++i) {
    const std::string outcome = outcome_of([&] { return compilers.compile(unit(i), "sm_90"); });
    EXPECT_THAT(outcome, HasSubstr("the process that compiled \"unit " + std::to_string(i) + "\" ended with code 3"));
  }
}

}  // namespace
}  // namespace hone::tuner
