#include "tests/tuner/cache/cache_command_fixture.h"

namespace hone::tuner {

testing::CommandRun CacheCommand::hone(std::vector<std::string> words, std::istream* in) const {
  Environment environment = testing::isolated_environment(file_);
  environment.unix_time = [] { return kTime + 100 * 86'400; };
  environment.toolchains = [this]() -> std::vector<CurrentToolchain> {
    return {{.kind = "cuda",
             .architecture = "sm_90",
             .identity = "sm_count=132;l2=52428800;",
             .compiler = "nvrtc 13.0",
             .driver = driver_,
             .family_digests = {{"reduce", "0123456789abcdef"}}}};
  };
  if (in != nullptr) environment.in = in;
  words.insert(words.begin(), "cache");
  return testing::run_hone(words, environment);
}

nlohmann::json CacheCommand::json(std::vector<std::string> words) const {
  words.emplace_back("--json");
  const testing::CommandRun run = hone(words);
  nlohmann::json json = nlohmann::json::parse(run.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << run.out << run.err;
  return json;
}

void CacheCommand::fill(int count) const {
  for (int number = 0; number < count; ++number) put(file_, cache::numbered(number), kTime + number);
}

void expect_refusal(const testing::CommandRun& run, int code, const std::string& words) {
  EXPECT_EQ(run.code, code) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, ::testing::StartsWith("hone: "));
  EXPECT_THAT(run.err, ::testing::HasSubstr(words));
}

}  // namespace hone::tuner
