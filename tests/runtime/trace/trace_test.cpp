// The ranges that a profiler sees of calls, misses and tunings.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <hone/error.h>

#include "tests/runtime/support/session_fixture.h"
#include "tests/runtime/trace/nvtx_recorder.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// NVTX asks for it at its first use.
[[maybe_unused]] const int kIsSet = setenv("NVTX_INJECTION64_PATH", HONE_NVTX_RECORDER, 1);

class Trace : public FakeSessionTest {
 protected:
  /// The ranges since the last call: "0 call total …", the number of open ranges around it first.
  std::vector<std::string> take() {
    void* const recorder = dlopen(HONE_NVTX_RECORDER, RTLD_LAZY | RTLD_NOLOAD);
    if (recorder == nullptr) throw std::runtime_error("NVTX has not loaded the recorder");
    std::istringstream text(reinterpret_cast<TakeFunction>(dlsym(recorder, kTakeFunction))());
    std::vector<std::string> ranges;
    for (std::string line; std::getline(text, line);) {
      EXPECT_THAT(line, StartsWith("hone\t")) << "another domain, or a range that is still open";
      const std::size_t tab = line.find('\t') + 1;
      line.erase(0, tab);
      line.replace(line.find('\t'), 1, " ");
      ranges.push_back(line);
    }
    return ranges;
  }
};

TEST_F(Trace, AHitIsOneRangeWithProblemAndWinner) {
  Session session(device_, options());
  launch(session);
  take();
  const Choice choice = launch(session);
  EXPECT_EQ(choice.source, ChoiceSource::memory);
  const std::string policy = family_.space().to_string(choice.winner->candidate.policy);
  EXPECT_THAT(take(), ElementsAre(AllOf(StartsWith("0 call "), HasSubstr(to_string(family_.problem(kSize))),
                                        HasSubstr(policy))));
}

TEST_F(Trace, AMissContainsItsSteps) {
  Session session(device_, options());
  take();
  launch(session);
  const std::vector<std::string> ranges = take();
  EXPECT_THAT(ranges.front(), StartsWith("0 miss total"));
  EXPECT_THAT(ranges.back(), StartsWith("0 call total"));
  for (const char* step : {"1 lookup total", "1 measure total", "1 verify total", " load ", " compile "})
    EXPECT_THAT(ranges, Contains(HasSubstr(step))) << step;
}

TEST_F(Trace, AWinnerFromTheFileIsLookedUpAndLoaded) {
  {
    Session session(device_, options());
    launch(session);
  }
  Session session(device_, options());
  take();
  EXPECT_EQ(launch(session).source, ChoiceSource::cache);
  EXPECT_THAT(take(), ElementsAre(StartsWith("0 miss "), StartsWith("1 lookup "), "2 key", "2 open", "2 check schema",
                                  "2 find winner", "3 read code", StartsWith("2 load "), "2 occupancy",
                                  StartsWith("0 call ")));
}

TEST_F(Trace, APlansLaunchIsACall) {
  Session session(device_, options());
  const Plan plan = session.make_plan(family_.problem(kSize));
  take();
  const std::array<void*, 2> buffers{in_.data(), out_.data()};
  plan.launch(family_.problem(kSize), buffers, nullptr);
  EXPECT_THAT(take(), ElementsAre(StartsWith("0 call total")));
}

TEST_F(Trace, RangesAreClosedWhenACallFails) {
  device_->script = [](std::string_view) { return FakeKernel{.compile_error = "no"}; };
  Session session(device_, options());
  EXPECT_THROW(launch(session), Error);
  for (const std::string& range : take()) EXPECT_THAT(range, testing::Not(StartsWith("0 call")));
}

}  // namespace
}  // namespace hone
