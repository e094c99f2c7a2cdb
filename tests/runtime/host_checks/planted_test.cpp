// Every planted bug is found by the check that it is meant for; the same kernels without their bug stay silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/runtime/host_checks/planted_kernels.h"
#include "tests/support/long_test.h"

namespace hone::test {

void PrintTo(const PlantedKernel& kernel, std::ostream* out) { *out << kernel.name; }

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr CheckedBuild kBuild = CheckedBuild::address;
#elif defined(__SANITIZE_THREAD__)
constexpr CheckedBuild kBuild = CheckedBuild::thread;
#else
constexpr CheckedBuild kBuild = CheckedBuild::plain;
#endif

struct Ended {
  int status = 0;  ///< exit code; −1 when a signal ended it
  std::string text;
};

Ended run(const PlantedKernel& kernel, const char* form) {
  const std::string command = std::string(HONE_PLANTED_KERNEL " ") + std::string(kernel.name) + " " + form + " 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  Ended ended;
  char buffer[4096];
  for (std::size_t bytes = 0; (bytes = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    ended.text.append(buffer, bytes);
  const int status = pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

/// "unit.cu:N" for each line that is marked as at fault.
std::vector<std::string> faulty_lines(const PlantedKernel& kernel) {
  std::istringstream lines(check_of(kernel, true).unit.source);
  std::vector<std::string> places;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with("// <-")) places.push_back("unit.cu:" + std::to_string(number));
  }
  return places;
}

class Planted : public LongTest, public testing::WithParamInterface<PlantedKernel> {};

TEST_P(Planted, BugIsFound) {
  const PlantedKernel& kernel = GetParam();
  const std::string_view finding = kernel.finding[static_cast<std::size_t>(kBuild)];
  if (finding.empty() && kernel.crashes_plain) GTEST_SKIP() << "what it does without a check is undefined";
  const Ended ended = run(kernel, "wrong");
  if (finding.empty()) {
    EXPECT_EQ(ended.status, 0) << "found after all: correct the table and docs/host-device.md\n" << ended.text;
    return;
  }
  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.text, testing::HasSubstr(std::string(finding)));
  // Three do not know the line, and two know it only of threads that have met others.
  const std::string_view without_line[] = {"depends on what shared memory holds", "wrong result",
                                           "accessed the address", "divided an integer by zero",
                                           "depends on when asynchronous copies land"};
  const bool says_where =
      std::find(std::begin(without_line), std::end(without_line), finding) == std::end(without_line);
  if (!says_where) return;
  std::vector<testing::Matcher<const std::string&>> places;
  for (const std::string& place : faulty_lines(kernel)) places.emplace_back(testing::HasSubstr(place));
  // A race is between two accesses, and both are named.
  if (finding == "depends on the order" || finding == "may lose one of the changes")
    EXPECT_THAT(ended.text, testing::AllOfArray(places));
  else
    EXPECT_THAT(ended.text, testing::AnyOfArray(places));
}

TEST_P(Planted, RightFormIsSilent) {
  const Ended ended = run(GetParam(), "right");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text, "");
}

INSTANTIATE_TEST_SUITE_P(Kernels, Planted, testing::ValuesIn(planted_kernels().begin(), planted_kernels().end()),
                         [](const auto& planted) { return std::string(planted.param.name); });

}  // namespace
}  // namespace hone::test
