// The page in a real browser. Skipped where there is none; HONE_SCREENSHOTS names a folder for pictures of it.
#include <stdlib.h>

#include <set>

#include "tests/support/names.h"
#include "tests/tuner/report/browser.h"
#include "tests/tuner/report/report_fixture.h"

namespace hone::tuner {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using test::Names;

class ReportInABrowser : public ReportTest {
 protected:
  static void SetUpTestSuite() {
    const std::optional<std::string> program = testing::browser_program();
    if (program) browser_ = new testing::Browser(*program);
  }
  static void TearDownTestSuite() {
    delete browser_;
    browser_ = nullptr;
  }
  void SetUp() override {
    if (browser_ == nullptr) GTEST_SKIP() << "there is no Chromium here";
  }

  /// Opens the page of these options at an address.
  void open(const std::vector<std::string>& words = {}, const std::string& address = "", int width = 1280) {
    page(words);
    browser_->open("file://" + page_.string() + address, width);
  }

  json evaluate(const std::string& expression) { return browser_->evaluate(expression); }
  int count(const std::string& selector) { return evaluate("document.querySelectorAll('" + selector + "').length"); }

  /// Chooses in a filter, as a reader does.
  void choose(const std::string& select, const std::string& value) {
    evaluate("(async () => { const s = document.getElementById('" + select + "'); s.value = '" + value +
             "'; s.dispatchEvent(new Event('change')); await new Promise((done) => setTimeout(done, 100)); })()");
  }

  static inline testing::Browser* browser_ = nullptr;  ///< one for all tests: starting it takes seconds
};

TEST_F(ReportInABrowser, DrawsEverySectionWithoutAnError) {
  fill();
  open();
  EXPECT_THAT(browser_->messages(), IsEmpty());
  for (const char* id : {"answer-parameter", "answer-limit", "answer-far", "devices", "bandwidth", "shapes",
                         "parameters", "regret", "model", "rejected", "problem", "problem-search", "problem-predicted",
                         "problem-occupancy", "problem-flight", "problem-values", "trials", "winners"})
    EXPECT_EQ(count("#" + std::string(id)), 1) << id;
  EXPECT_EQ(evaluate("[...document.querySelectorAll('svg *')].filter((node) => [...node.attributes].some((a) => "
                     "/NaN|undefined|Infinity/.test(a.value))).map((node) => node.outerHTML)"),
            json::array());
  EXPECT_EQ(evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
}

TEST_F(ReportInABrowser, ShowsTheNumbersOfInspect) {
  fill();
  open();
  const json inspected = json::parse(hone({"inspect", "--json"}).out)["winners"];
  const json rows = evaluate(
      "[...document.querySelectorAll('#winner-table tbody tr')].map((row) => [Number(row.dataset.id), "
      "Number(row.dataset.us), Number(row.dataset.gbps), row.lastChild.textContent])");
  ASSERT_EQ(rows.size(), inspected.size());
  for (const json& winner : inspected) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const json& each) { return each[0] == winner["id"]; });
    ASSERT_NE(row, rows.end());
    EXPECT_EQ((*row)[3], winner["how"]);
    EXPECT_EQ((*row)[1], winner["median_us"].is_null() ? json(0) : winner["median_us"]);
    EXPECT_NEAR((*row)[2], winner["gbps"].is_null() ? 0 : winner["gbps"].get<double>(), 1e-9);
  }
}

TEST_F(ReportInABrowser, FiltersWhatIsShown) {
  fill();
  open();
  EXPECT_EQ(evaluate("document.getElementById('count').dataset.count"), "25");
  choose("filter-op", "max");
  EXPECT_EQ(evaluate("document.getElementById('count').dataset.count"), "10");
  choose("filter-dtype", "f16");
  EXPECT_EQ(evaluate("document.getElementById('count').dataset.count"), "5");
  EXPECT_EQ(evaluate("[...document.querySelectorAll('#winner-table tbody tr')].every((row) => "
                     "row.children[1].textContent === 'reduce max f16')"),
            true);
  EXPECT_THAT(evaluate("location.hash").get<std::string>(), HasSubstr("dtype=f16"));
  evaluate("document.getElementById('reset').click(); new Promise((done) => setTimeout(done, 100))");
  EXPECT_EQ(evaluate("document.getElementById('count').dataset.count"), "25");
  EXPECT_THAT(browser_->messages(), IsEmpty());
}

TEST_F(ReportInABrowser, EveryPointLeadsToItsTrial) {
  fill();
  open();
  const json inspected = json::parse(hone({"inspect", "5", "--json"}).out)["winners"][0];
  browser_->open("file://" + page_.string() + "#w=5&t=2", 1280);
  EXPECT_EQ(evaluate("document.querySelector('#trials tr.chosen').id"), "trial-2");
  EXPECT_THAT(evaluate("document.querySelector('#problem .lead').textContent").get<std::string>(),
              HasSubstr("Winner 5"));
  const json& trial = inspected["tuning"]["trials"][2];
  EXPECT_NEAR(evaluate("byKey.get('5').tuning.trials[2].us"), trial["median_us"].get<double>(),
              1e-4 * trial["median_us"].get<double>());
  EXPECT_EQ(
      evaluate("[...document.querySelectorAll('svg a')].filter((link) => { const p = new URLSearchParams("
               "link.getAttribute('href').slice(1)); const w = byKey.get(p.get('w')); return !w || (p.has('t') && "
               "!w.tuning.trials[p.get('t')]); }).length"),
      0);
  EXPECT_EQ(evaluate("document.querySelectorAll('#problem-search a').length"), 6);
  // A click does what the address does.
  evaluate(
      "document.querySelector('#problem-search a').dispatchEvent(new MouseEvent('click', {bubbles: true}));"
      "new Promise((done) => setTimeout(done, 100))");
  EXPECT_EQ(count("#trials tr.chosen"), 1);
}

TEST_F(ReportInABrowser, SearchIsInTheOrderOfMeasuringWhereThatIsKnown) {
  cache::Publication old = tuned_sum(24);
  for (cache::TrialRecord& trial : old.tuning->trials) trial.sequence = 0;
  store_.publish(std::vector{tuned_sum(20), old});
  open();
  const auto search_of = [&](const char* winner) {
    browser_->open("file://" + page_.string() + "#w=" + winner, 1280);
    return evaluate("document.querySelector('#problem-search').textContent").get<std::string>();
  };
  const std::string known = search_of("1"), unknown = search_of("2");
  EXPECT_THAT(known, Names("measuring", "6 of 6"));
  EXPECT_THAT(unknown, Names("not recorded", "model"));
}

TEST_F(ReportInABrowser, AParameterThatMattersInOneProblemIsNotHiddenByTheMean) {
  std::vector<cache::Publication> sums{tuned_sum(20), tuned_sum(24), tuned_sum(28)};
  for (cache::TrialRecord& trial : sums[1].tuning->trials)
    if (trial.candidate.policy.find("unroll=1") != std::string::npos) trial.median_us = 30 * sums[1].winner.median_us;
  store_.publish(sums);
  open();
  const std::string card = evaluate("document.getElementById('answer-parameter').textContent");
  EXPECT_THAT(card, Names("unroll", "30.0×", "3.70×", "2^24"));
  EXPECT_EQ(evaluate("document.querySelectorAll('#parameters-0 .mark.s2').length > 0"), true);
  EXPECT_THAT(browser_->messages(), IsEmpty());
}

TEST_F(ReportInABrowser, TheFastestWinnerIsNotMeasuredByItself) {
  cache::Publication fast = tuned_sum(28);
  fast.winner.median_us = 320;  // beyond what the model expects of the device
  store_.publish(fast);
  open();
  EXPECT_THAT(evaluate("document.getElementById('answer-limit').textContent").get<std::string>(),
              Names("ceiling itself"));
}

TEST_F(ReportInABrowser, NamesOutOfTheFileAreText) {
  cache::Publication hostile = tuned_sum(20, "<b id=\"planted\">sum</b>");
  hostile.key.device.name = "</script><script>window.planted = 1</script>";
  hostile.tuning->trials.back().reason = "<img src=x onerror='window.planted = 1'>";
  store_.publish(hostile);
  cache::Publication second = tuned_sum(24, "<b id=\"planted\">sum</b>");
  second.key.device.name = hostile.key.device.name;
  store_.publish(second);
  open();
  EXPECT_EQ(evaluate("window.planted === undefined && document.querySelectorAll('#planted, img').length === 0"), true);
  EXPECT_THAT(evaluate("document.body.innerText").get<std::string>(), HasSubstr("<b id=\"planted\">sum</b>"));
  EXPECT_THAT(browser_->messages(), IsEmpty());
}

TEST_F(ReportInABrowser, AnEmptyCacheAndAnEmptyChoiceSaySo) {
  open();
  EXPECT_EQ(count("#empty"), 1);
  fill();
  open({}, "#op=none&w=999&share=%E0%A4%A");
  EXPECT_EQ(evaluate("document.querySelectorAll('.empty').length"), 1);
  EXPECT_THAT(browser_->messages(), IsEmpty());
}

TEST_F(ReportInABrowser, ComparesTwoCachesSideBySide) {
  fill();
  const std::filesystem::path other = folder_ / "other.sqlite";
  cache::Publication faster = tuned_sum(20);
  faster.winner.median_us /= 2;
  cache::Store(other).publish(faster);
  open({"--compare", other.string()});
  EXPECT_EQ(count("#compare tbody tr"), 1);
  EXPECT_THAT(evaluate("document.querySelector('#compare .lead').textContent").get<std::string>(),
              HasSubstr("2.000 times"));
  EXPECT_THAT(browser_->messages(), IsEmpty());
}

TEST_F(ReportInABrowser, SavesAFigureAsAFileOfItsOwn) {
  fill();
  open();
  const std::string svg = evaluate("figureText('bandwidth-0')");
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_LT(svg.size(), 200U * 1024);
  EXPECT_EQ(evaluate("new DOMParser().parseFromString(figureText('shapes-0'), 'image/svg+xml')"
                     ".querySelectorAll('parsererror').length"),
            0);
}

TEST_F(ReportInABrowser, IsReadableInTheDark) {
  fill();
  open();
  const std::string colours =
      "[getComputedStyle(document.querySelector('#bandwidth-0 text')).fill, "
      "getComputedStyle(document.querySelector('section')).backgroundColor]";
  const json light = evaluate(colours);
  evaluate("document.getElementById('theme').click()");
  const json dark = evaluate(colours);
  EXPECT_NE(light[0], dark[0]);
  EXPECT_NE(light[1], dark[1]);
}

TEST_F(ReportInABrowser, FitsNarrowAndWideWindows) {
  fill();
  const char* pictures = getenv("HONE_SCREENSHOTS");
  for (const int width : {390, 820, 1400}) {
    open({}, "", width);
    EXPECT_EQ(evaluate("document.documentElement.scrollWidth <= innerWidth"), true) << width;
    if (pictures != nullptr)
      browser_->take_screenshot(std::filesystem::path(pictures) / ("report-" + std::to_string(width) + ".png"));
  }
}

}  // namespace
}  // namespace hone::tuner
