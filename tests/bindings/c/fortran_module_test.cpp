// The module for Fortran has what the C header declares: functions, constants and structs, by their names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace hone::test {
namespace {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string without(const std::string& text, const char* pattern) {
  return std::regex_replace(text, std::regex(pattern), "");
}

/// The text of all headers.
const std::string& header() {
  static const std::string text = [] {
    std::string all;
    for (const auto& file : std::filesystem::recursive_directory_iterator(HONE_C_FOLDER "/include"))
      if (file.is_regular_file()) all += text_of(file.path());
    return without(all, R"(/\*[^*]*(\*[^/][^*]*)*\*/)");
  }();
  return text;
}

/// Without comments and the ends of continued lines.
const std::string& module() {
  static const std::string text = without(without(text_of(HONE_C_FOLDER "/fortran/hone.f90"), "![^\n]*"), "&\\s*");
  return text;
}

/// Calls `describe` with each match and returns the results.
template <class Describe>
std::set<std::string> found(const std::string& text, const char* pattern, const Describe& describe) {
  const std::regex expression(pattern);
  std::set<std::string> all;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
    all.insert(describe(*match));
  return all;
}

/// "hone_free(1)": a function and how many parameters it has.
std::string function_of(const std::smatch& match) {
  const std::string parameters = match[2];
  const auto commas = std::count(parameters.begin(), parameters.end(), ',');
  const bool has_none = parameters.empty() || parameters == "void";
  return match[1].str() + "(" + std::to_string(has_none ? 0 : commas + 1) + ")";
}

/// "hone_choice: size source": a struct and its members, in their order.
std::string struct_of(const std::smatch& match, const char* member) {
  std::string all = match[1].str() + ":";
  const std::string body = match[2];
  const std::regex expression(member);
  for (std::sregex_iterator each(body.begin(), body.end(), expression), end; each != end; ++each)
    all += " " + (*each)[1].str();
  return all;
}

TEST(FortranModule, HasTheFunctionsOfTheHeader) {
  const auto declared = found(header(), R"(HONE_API [^;(]*\b(hone_\w+)\(([^)]*)\))", function_of);
  const auto bound = found(module(), R"((?:function|subroutine) (hone_\w+)\(([^)]*)\) bind\(c\))", function_of);
  EXPECT_GT(declared.size(), 60u);
  EXPECT_EQ(bound, declared);
}

TEST(FortranModule, HasTheConstantsOfTheHeader) {
  const auto whole = [](const std::smatch& match) { return match[0].str(); };
  const auto declared = found(header(), R"(HONE_[A-Z_]+ = \d+)", whole);
  EXPECT_GT(declared.size(), 20u);
  EXPECT_EQ(found(module(), R"(HONE_[A-Z_]+ = \d+)", whole), declared);
}

TEST(FortranModule, HasTheStructsOfTheHeader) {
  const auto declared = found(header(), R"(typedef struct (hone_\w+) \{([^}]*)\})",
                              [](const std::smatch& match) { return struct_of(match, R"((\w+);)"); });
  const auto bound = found(
      module(), R"(type, bind\(c\) :: (hone_\w+)\n((?:[^\n]*::[^\n]*\n)+)\s*end type)", [](const std::smatch& match) {
        const std::string members = without(match[2], R"([^\n]*::)");
        std::string all = match[1].str() + ":";
        const std::regex word(R"(\w+)");
        for (std::sregex_iterator each(members.begin(), members.end(), word), end; each != end; ++each)
          all += " " + each->str();
        return all;
      });
  EXPECT_GT(declared.size(), 8u);
  EXPECT_EQ(bound, declared);
}

}  // namespace
}  // namespace hone::test
