#include "tuner/campaign/messages.h"

#include <gmock/gmock.h>
#include <hone/kernel_family.h>
#include <hone/tuned_reduce.h>

#include <nlohmann/json.hpp>

#include "tests/support/names.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using test::Names;
using Json = nlohmann::json;
using std::chrono::milliseconds;

Problem with_everything() {
  Problem problem = reduce_problem(ReduceSpec{.op = ReduceOp::sum,
                                              .dtype = DType::f16,
                                              .nan = NanPolicy::ignore,
                                              .accumulator = DType::f64,
                                              .result = DType::f64},
                                   1000, 2);
  problem.launch_context = LaunchContext::graph;
  return problem;
}

Problem usual() { return reduce_problem(ReduceOp::argmax, DType::i8, 1 << 20); }

Candidate candidate() { return {with_everything().family->space().all().front(), {.max_blocks = 264}}; }

CampaignItem item() {
  return {.problem = with_everything(),
          .weight = 3,
          .outcome = Outcome::tuned,
          .reason = "why",
          .candidate = candidate(),
          .median_us = 1.5,
          .measured_problem = with_everything(),
          .default_us = 2,
          .measured = 4,
          .rejected = 5,
          .reasons = {{"rejected", {ReasonCode::spills, {8}}, 7, true}, {"failed", "why", 1}},
          .died = {"one"},
          .is_stale = true,
          .compile_ms = 6,
          .measure_ms = 7,
          .roofline_us = 2.5,
          .budget_spent = true,
          .search_end = SearchEnd::near_roofline,
          .rank_correlation = 0.5,
          .discarded_samples = 8,
          .disturbance = "seen"};
}

std::vector<Request> requests() {
  return {OpenRequest{.device = "cuda:1",
                      .compiler = {"hone", "compiler"},
                      .cores = 7,
                      .cache_path = "/a/cache.sqlite",
                      .max_bytes = 1 << 20,
                      .system_caches = {"/b", "/c"},
                      .load_binaries = false,
                      .objective = Objective::energy},
          LookUpRequest{{with_everything(), usual()}},
          TuneRequest{.problem = with_everything(),
                      .weight = 2.5,
                      .budget = milliseconds(1234),
                      .exhaustive = true,
                      .inputs = InputState::warm,
                      .excluded = {{candidate(), "it hung"}},
                      .next = {usual()}},
          TuneRequest{.problem = usual()},
          ConsolidateRequest{.problems = {with_everything(), with_everything()},
                             .may_change = {true, false},
                             .most_regret = 0.02,
                             .budget = milliseconds(99),
                             .inputs = InputState::warm,
                             .excluded = {{candidate(), "it died"}},
                             .next = {usual()}},
          CompileRequest{"sm_90", "unit", "source", {"first", "second"}, {"/a", "/b"}, {{{"a.cuh", "text"}}}},
          CompileRequest{"sm_90", "unit", "source", {"first"}, {}, std::nullopt},
          StopRequest{}};
}

std::vector<Answer> answers() {
  return {ReadyAnswer{"GPU", "cuda", "sm_count=132", 1 << 30, 3352.5, "another process"},
          ProgressAnswer{{.phase = TuningPhase::verifying, .done = 1, .total = 2, .best_us = 3.5}},
          LookedUpAnswer{{item(), {.problem = usual(), .measured_problem = usual()}}},
          TunedAnswer{item()},
          ConsolidatedAnswer{{.first = with_everything(),
                              .sizes = 9,
                              .winners_before = 5,
                              .winners = 2,
                              .worst_regret = 0.01,
                              .mean_regret = 0.005,
                              .filled = 7,
                              .measure_ms = 8.5,
                              .failure = "none"},
                             {item()}},
          CompiledAnswer{{"cubin", "sm_90", {std::byte{0}, std::byte{255}}, {"_Z5firstv", "second"}}},
          CompileFailedAnswer{ErrorCode::unsupported, "no compiler"},
          FailedAnswer{WorkerFailure::absent, "no device"}};
}

/// As it comes out of the other end of a pipe.
template <class Message>
Json received(const Message& message) {
  return Json::parse(to_json(message).dump());
}

TEST(CampaignMessages, EveryRequestComesBack) {
  std::vector<bool> kinds(std::variant_size_v<Request>);
  for (const Request& request : requests()) {
    const Request back = request_from_json(received(request));
    EXPECT_EQ(back.index(), request.index());
    EXPECT_EQ(to_json(back), to_json(request));
    kinds[request.index()] = true;
  }
  EXPECT_THAT(kinds, ::testing::Each(true));
}

TEST(CampaignMessages, EveryAnswerComesBack) {
  std::vector<bool> kinds(std::variant_size_v<Answer>);
  for (const Answer& answer : answers()) {
    const Answer back = answer_from_json(received(answer));
    EXPECT_EQ(back.index(), answer.index());
    EXPECT_EQ(to_json(back), to_json(answer));
    kinds[answer.index()] = true;
  }
  EXPECT_THAT(kinds, ::testing::Each(true));
}

TEST(CampaignMessages, ProblemsAndCandidatesAreWhatTheyWere) {
  const auto tune = std::get<TuneRequest>(request_from_json(received(requests()[2])));
  EXPECT_TRUE(same_sweep(tune.problem, with_everything()));
  EXPECT_EQ(tune.problem.extents, with_everything().extents);
  EXPECT_TRUE(same_sweep(tune.next.at(0), usual()));
  EXPECT_EQ(tune.budget, milliseconds(1234));
  EXPECT_EQ(tune.inputs, InputState::warm);
  ASSERT_EQ(tune.excluded.size(), 1U);
  EXPECT_EQ(tune.excluded[0].candidate, candidate());
  const auto tuned = std::get<TunedAnswer>(answer_from_json(received(answers()[3])));
  EXPECT_EQ(tuned.item.candidate, candidate());
  EXPECT_EQ(tuned.item.reasons, item().reasons);
  EXPECT_EQ(tuned.item.search_end, SearchEnd::near_roofline);
  const auto compiled = std::get<CompiledAnswer>(answer_from_json(received(answers()[5])));
  EXPECT_EQ(compiled.binary.entries, (std::vector<std::string>{"_Z5firstv", "second"}));
  EXPECT_EQ(compiled.binary.code.size(), 2U);
}

TEST(CampaignMessages, BytesThatAreNoUtf8ComeBack) {
  const std::string path = "/a/\xff\xc3\xa9\xc3.sqlite";
  const Request request =
      OpenRequest{.device = "host", .compiler = {path}, .cache_path = path, .system_caches = {path}};
  const auto open = std::get<OpenRequest>(request_from_json(received(request)));
  EXPECT_EQ(open.cache_path, path);
  EXPECT_EQ(open.compiler.at(0), path);
  EXPECT_EQ(open.system_caches.at(0), path);
  const Answer answer = FailedAnswer{WorkerFailure::cache, path};
  EXPECT_EQ(std::get<FailedAnswer>(answer_from_json(received(answer))).message, path);
}

std::string error_of(const Json& json) {
  try {
    request_from_json(json);
  } catch (const CommandError& error) {
    return error.what();
  }
  return "it was read";
}

TEST(CampaignMessages, EachFieldIsNeeded) {
  for (const Request& request : requests()) {
    const Json intact = to_json(request);
    const std::string& kind = intact.begin().key();
    for (const auto& [name, value] : intact.begin().value().items()) {
      if (name == "next" || name == "headers") continue;  // may be left out
      Json changed = intact;
      changed[kind].erase(name);
      EXPECT_THAT(error_of(changed), Names(kind, "'" + name + "'"));
      changed[kind][name] = Json::object({{"of", "another type"}});
      EXPECT_THAT(error_of(changed), Names(kind));
    }
  }
}

TEST(CampaignMessages, WhatIsUnknownIsNamed) {
  for (const Request& request : requests()) {
    Json changed = to_json(request);
    changed.begin().value()["surplus"] = 1;
    EXPECT_THAT(error_of(changed), Names("'surplus'"));
  }
  EXPECT_THAT(error_of(Json{{"dance", Json::object()}}), Names("dance"));
  for (const char* text : {"3", "[]", "{}", R"({"stop": {}, "tune": {}})", R"({"stop": true})"})
    EXPECT_NE(error_of(Json::parse(text)), "it was read") << text;
  EXPECT_NE(error_of(Json::parse("{", nullptr, false)), "it was read");
}

TEST(CampaignMessages, CandidateOfAnotherSpaceIsRefused) {
  Json changed = to_json(requests()[2]);
  changed["tune"]["excluded"][0]["candidate"]["policy"] = "size=large";
  EXPECT_THAT(error_of(changed), Names("size=large"));
}

}  // namespace
}  // namespace hone::tuner
