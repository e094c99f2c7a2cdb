// The reference of a kernel file as a NumPy expression.
#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/support/names.h"
#include "tests/tuner/kernel_file_fixture.h"

namespace hone::tuner {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using testing::KernelFile;
using testing::kKernel;
using test::Names;
using ::testing::Not;
using testing::replaced;
using testing::write_file;

/// The kernel file with a NumPy expression for the reference, which begins in line 12, column 26.
std::string with_numpy(std::string_view expression) {
  return replaced(kKernel, "\n  ]\n}", "\n  ],\n  \"reference\": {\"numpy\": \"" + std::string(expression) + "\"}\n}");
}

bool has_numpy() {
  return std::system("${HONE_PYTHON:-python3} -c 'import numpy' > /dev/null 2>&1") == 0;
}

TEST_F(KernelFile, TheReferenceMayBeANumPyExpression) {
  if (!has_numpy()) GTEST_SKIP() << "there is no Python with NumPy; HONE_PYTHON may name one";
  write_file(folder_ / "right.json", with_numpy("a * x + y"));
  const CommandRun right = hone({"check", path("right.json"), "--order", "forward"});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  write_file(folder_ / "method.json", with_numpy("a * x + y + (x.sum() - np.sum(x)) * float(abs(0))"));
  const CommandRun method = hone({"check", path("method.json"), "--order", "forward"});
  EXPECT_EQ(method.code, 0) << method.out << method.err;
  write_file(folder_ / "axpy.json", with_numpy("np.add(a * x, y)"));
  EXPECT_EQ(tune().code, 0);

  write_file(folder_ / "wrong.json", with_numpy("1.01 * a * x + y"));
  const CommandRun wrong = hone({"check", path("wrong.json"), "--order", "forward"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.out, Names("4 of 4 policies", "y[0]", "reference"));
}

TEST_F(KernelFile, ComplaintsOfNumPyNameThePlaceOfTheExpression) {
  if (!has_numpy()) GTEST_SKIP() << "there is no Python with NumPy; HONE_PYTHON may name one";
  const auto complaint_of = [&](const char* name, const char* expression) {
    write_file(folder_ / name, with_numpy(expression));
    const CommandRun run = hone({"check", path(name), "--order", "forward"});
    EXPECT_EQ(run.code, 4) << expression;
    return run.err;
  };
  EXPECT_THAT(complaint_of("a.json", "a * z + y"), Names("a.json:12:26: reference.numpy", "NameError", "'z'"));
  EXPECT_THAT(complaint_of("b.json", "a * x +"), Names("b.json:12:26", "SyntaxError"));
  EXPECT_THAT(complaint_of("i.json", "a * x + y * 1j"), Names("i.json:12:26", "TypeError", "complex"));
  EXPECT_THAT(complaint_of("c.json", "x[:7]"), Names("c.json:12:26", "y has 1003 elements", "7"));
  EXPECT_THAT(complaint_of("d.json", "(x, y)"), Names("d.json:12:26", "2 results", "1 arrays"));
  EXPECT_THAT(complaint_of("e.json", "open('/dev/null')"), Names("e.json:12:26", "NameError", "'open'"));
  write_file(folder_ / "axpy.json", with_numpy("a * z + y"));
  const CommandRun tuned = tune();
  EXPECT_NE(tuned.code, 0);
  EXPECT_THAT(tuned.err, Names("axpy.json:12:26", "NameError"));
  EXPECT_THAT(hone({"inspect"}).out, Not(HasSubstr("axpy run")));
}

TEST_F(KernelFile, WhereThereIsNoPythonOrNoNumPyTheErrorSaysSo) {
  write_file(folder_ / "numpy.json", with_numpy("a * x + y"));
  write_file(folder_ / "numpy.py", "raise ImportError('not here')\n");
  const char* const before = std::getenv("HONE_PYTHON");
  const std::string python = before ? before : "";
  const auto complaint_with = [&](const char* variable, const std::string& value) {
    setenv(variable, value.c_str(), 1);
    const CommandRun run = hone({"check", path("numpy.json"), "--order", "forward"});
    EXPECT_NE(run.code, 0);
    return run.err;
  };
  if (std::system("${HONE_PYTHON:-python3} -c pass > /dev/null 2>&1") == 0) {
    EXPECT_THAT(complaint_with("PYTHONPATH", path("")), Names("NumPy", "not here", "pip", "HONE_PYTHON"));
    unsetenv("PYTHONPATH");
  }
  EXPECT_THAT(complaint_with("HONE_PYTHON", path("no_python")), Names("no_python", "NumPy", "HONE_PYTHON"));
  EXPECT_THAT(complaint_with("HONE_PYTHON", "/bin/false"), Names("/bin/false", "code 1", "HONE_PYTHON"));
  if (before) setenv("HONE_PYTHON", python.c_str(), 1);
  else unsetenv("HONE_PYTHON");
}

}  // namespace
}  // namespace hone::tuner
