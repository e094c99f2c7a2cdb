// hone cache verify and repair.
#include <hone/kernel_family.h>
#include <hone/reduce_spec.h>

#include "tests/support/names.h"
#include "tests/tuner/cache/cache_command_fixture.h"

namespace hone::tuner {
namespace {

using ::testing::AllOf;
using testing::CommandRun;
using test::HasLine;
using test::Names;

class CacheRepairCommand : public CacheCommand {
 protected:
  CacheRepairCommand() { fill(6); }

  void damage_some() const {
    cache::sql(
        file_,
        "UPDATE winner SET registers = 1 WHERE operation = 'operation 0';"
        "UPDATE binary SET code = x'00'"
        " WHERE digest = (SELECT binary FROM winner WHERE operation = 'operation 2');"
        "UPDATE tuning SET trial_bytes = 1 WHERE winner = (SELECT id FROM winner WHERE operation = 'operation 3')");
  }
};

TEST_F(CacheRepairCommand, IntactFileIsCode0) {
  const CommandRun run = hone({"verify"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, file_.native() + " is intact: 6 winners, 6 binaries, 6 trials of 3 tunings, 1 device\n");
  EXPECT_EQ(json({"verify"})["intact"], true);
  const CommandRun repair = hone({"repair"});
  EXPECT_EQ(repair.code, 0);
  EXPECT_THAT(repair.out, Names("intact"));
  EXPECT_EQ(json({"repair"})["was_intact"], true);
}

TEST_F(CacheRepairCommand, DamageIsListedAndCode1) {
  damage_some();
  const CommandRun run = hone({"verify"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out, Names("winner", "1", "not hold", "binary", "trials", "4"));
  EXPECT_THAT(run.err,
              Names("damaged", "3 findings", "hone cache repair --cache " + file_.native()));
  const std::filesystem::path spaced = folder_ / "a b.sqlite";
  std::filesystem::copy_file(file_, spaced);
  EXPECT_THAT(hone({"verify", "--cache", spaced.native()}).err,
              Names("hone cache repair --cache '" + spaced.native() + "'\n"));
  const nlohmann::json report = json({"verify"});
  EXPECT_EQ(report["damaged"], 3);
  EXPECT_EQ(report["findings"].size(), 3u);
}

TEST_F(CacheRepairCommand, WinnersWhosePolicyTheirFamilyDoesNotHaveAreListedAndCode1) {
  cache::Publication publication = cache::numbered(6);
  publication.key.problem.operation = "sum";
  publication.key.problem.sizes[2] = {1, 1};
  publication.winner.tuned_extents = {512, 1, 1};
  publication.key.toolchain.family_digest = family_digest(reduce_family());
  publication.winner.candidate.policy = "bogus";
  put(file_, publication, kTime);
  const CommandRun run = hone({"verify"});
  EXPECT_EQ(run.code, 1);
  EXPECT_THAT(run.out, Names("winner 7 is not used", "'bogus' is no policy of reduce"));
  EXPECT_THAT(run.err, Names("1 of 7 winners", "hone inspect ID --cache " + file_.native()));
  const nlohmann::json report = json({"verify"});
  EXPECT_EQ(report["damaged"], 0);
  EXPECT_EQ(report["misfits"][0]["winner"], 7);
}

TEST_F(CacheRepairCommand, SavesTheRestAndSaysWhatWasLost) {
  damage_some();
  const CommandRun run = hone({"repair"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(Names("The damaged file is " + file_.native() + ".damaged\n"),
                             HasLine("5", "winners", "saved", "4", "binaries"),
                             HasLine("1", "winners", "lost", "found", "damaged"),
                             HasLine("1", "winners", "without", "code"),
                             HasLine("1", "winners", "without", "trials")));
  EXPECT_EQ(hone({"verify"}).code, 0);
}

TEST_F(CacheRepairCommand, JsonCounts) {
  damage_some();
  const nlohmann::json report = json({"repair"});
  EXPECT_EQ(report["was_intact"], false);
  EXPECT_EQ(report["backup"], file_.native() + ".damaged");
  EXPECT_EQ(report["winners"], 5);
  EXPECT_EQ(report["damaged_winners"], 1);
}

TEST_F(CacheRepairCommand, MoreThanAHundredFindingsAreCounted) {
  cache::sql(file_,
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)"
             " INSERT INTO binary SELECT 'digest ' || i, 'cubin', 'sm_90', x'00', '', 0 FROM n");
  EXPECT_THAT(hone({"verify"}).out, Names("50 more"));
}

TEST_F(CacheRepairCommand, WithoutAFileThereIsNothingToRepair) {
  std::filesystem::remove(file_);
  expect_refusal(hone({"repair"}), 5, "there is no such file");
}

}  // namespace
}  // namespace hone::tuner
