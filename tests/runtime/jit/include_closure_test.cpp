#include "runtime/jit/include_closure.h"

#include <gmock/gmock.h>

#include <array>
#include <stdexcept>

namespace hone {
namespace {

using testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<SourceFile>& files) {
  std::vector<std::string> names;
  for (const SourceFile& file : files) names.push_back(file.name);
  return names;
}

std::vector<std::string> closure(std::initializer_list<std::string_view> roots) {
  static const std::array<SourceFile, 5> files{{{"a.cuh", "#include \"b.cuh\"\n#include <math.h>\n"},
                                                {"b.cuh", "#pragma once\n#include \"c.cuh\"\nint x;"},
                                                {"c.cuh", "#include \"b.cuh\"\n#include \"elsewhere.h\""},
                                                {"d.cuh", "#include \"a.cuh\""},
                                                {"e.cuh", "#include \""}}};
  return names_of(include_closure(files, std::span(roots.begin(), roots.size())));
}

TEST(IncludeClosure, IsWhatAFileIncludesDirectlyOrNot) {
  EXPECT_THAT(closure({"b.cuh"}), ElementsAre("b.cuh", "c.cuh")) << "which include each other";
  EXPECT_THAT(closure({"a.cuh"}), ElementsAre("a.cuh", "b.cuh", "c.cuh"));
  EXPECT_THAT(closure({"d.cuh"}), ElementsAre("a.cuh", "b.cuh", "c.cuh", "d.cuh"));
  EXPECT_THAT(closure({"e.cuh", "b.cuh", "b.cuh"}), ElementsAre("b.cuh", "c.cuh", "e.cuh"));
  EXPECT_THAT(closure({}), ElementsAre());
}

TEST(IncludeClosure, OfWhatIsNotThereIsAnError) { EXPECT_THROW(closure({"f.cuh"}), std::logic_error); }

}  // namespace
}  // namespace hone
