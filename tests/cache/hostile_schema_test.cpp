// Files whose schema was made to do something: nothing of it is run.
#include <chrono>

#include "cache/maintenance/merge.h"
#include "cache/maintenance/verify.h"
#include "tests/cache/store_fixture.h"

namespace hone::cache {
namespace {

constexpr std::string_view kEndless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT ";

class CacheHostileSchema : public CacheStore {
 protected:
  CacheHostileSchema() { store_.publish(sample_); }

  /// Neither reading nor writing takes it, and nobody has to wait for that.
  void expect_foreign(const std::string& change, const std::string& words) {
    const std::vector<std::byte> intact = read_bytes(file_);
    sql(file_, change);
    const std::vector<std::byte> changed = read_bytes(file_);
    const auto start = std::chrono::steady_clock::now();
    const std::vector<std::function<void()>> actions{
        [&] { store_.find(query_); },
        [&] { store_.winners(); },
        [&] { store_.tuning(1); },
        [&] { store_.publish(sample_); },
        [&] { store_.is_claimed(sample_.key); },
        [&] { verify(file_); },
        [&] { merge(folder_ / "other.sqlite", std::vector{file_}, {}); },
    };
    for (std::size_t i = 0; i < actions.size(); ++i) {
      EXPECT_EQ(fault_of(actions[i], file_, words), StoreFault::foreign) << change << ", action " << i;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60)) << change;
    EXPECT_TRUE(read_bytes(file_) == changed) << change;
    write_bytes(file_, intact);
  }

  static std::string replace_view(const std::string& name, const std::string& statement) {
    return "DROP VIEW " + name + "; CREATE VIEW " + name + " AS " + statement;
  }
  /// Puts a statement of ours in the place of another, as only a hostile program does.
  static std::string replace_text(const std::string& name, const std::string& from, const std::string& to) {
    return "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '" + from + "', '" + to +
           "') WHERE name = '" + name + "'";
  }
};

TEST_F(CacheHostileSchema, View) {
  expect_foreign(replace_view("winners", "SELECT 1 AS id"), "the view winners was changed");
  expect_foreign(replace_view("trials", "SELECT load_extension('/tmp/x.so')"), "the view trials was changed");
  expect_foreign("CREATE VIEW more AS SELECT randomblob(1000000000)", "another view more");
}

TEST_F(CacheHostileSchema, ViewInThePlaceOfATable) {
  expect_foreign(
      "PRAGMA foreign_keys = OFF; DROP VIEW trials; DROP TABLE usage;"
      "CREATE VIEW usage AS SELECT 1 AS winner",
      "no table usage");
}

TEST_F(CacheHostileSchema, RecursiveQueryWithoutEnd) {
  expect_foreign(replace_view("winners", std::string(kEndless) + "count(*) FROM n"), "the view winners was changed");
  expect_foreign(replace_view("winners", "SELECT * FROM winners"), "the view winners was changed");
}

TEST_F(CacheHostileSchema, Trigger) {
  for (const std::string event : {"AFTER INSERT", "BEFORE DELETE", "AFTER UPDATE"}) {
    expect_foreign(
        "CREATE TRIGGER t " + event + " ON winner BEGIN DELETE FROM binary; " + std::string(kEndless) + "i FROM n; END",
        "another trigger t");
  }
}

TEST_F(CacheHostileSchema, GeneratedColumn) {
  expect_foreign("ALTER TABLE winner ADD COLUMN more BLOB AS (zeroblob(1000000000))", "the table winner was changed");
  expect_foreign(replace_text("device", "sm_count INTEGER NOT NULL", "sm_count INTEGER AS (7)"), "was changed");
}

TEST_F(CacheHostileSchema, ConstraintDefaultAndIndexOfAnExpression) {
  expect_foreign(replace_text("winner", "NOT NULL", "NOT NULL CHECK (abs(1) > 0)"), "was changed");
  expect_foreign("CREATE INDEX more ON winner (abs(registers))", "another index more");
  expect_foreign(replace_text("winner_binary", "binary)", "binary) WHERE registers > 0"), "was changed");
}

TEST_F(CacheHostileSchema, VirtualTable) {
  if (sql(folder_ / "probe.sqlite", "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").empty())
    GTEST_SKIP() << "this SQLite has no virtual table to make";
  expect_foreign("CREATE VIRTUAL TABLE more USING fts5 (x)", "another table more");
}

TEST_F(CacheHostileSchema, NewerFileMayHaveViewsButTheyAreNotRun) {
  sql(file_, "PRAGMA user_version = 10; " + replace_view("winners", std::string(kEndless) + "count(*) FROM n"));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(store_.find(query_));
  EXPECT_EQ(store_.winners().size(), 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace hone::cache
