#include "tuner/campaign/problem_json.h"

#include <fmt/core.h>

#include <hone/kernel_family.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cache/records.h"
#include "tuner/problems/kernel_spec_file.h"
#include "tuner/problems/problem_text.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::json;

CommandError malformed(std::string_view what, std::string_view found) {
  return CommandError(ExitCode::failed, fmt::format("a message between processes has no {}: '{}'", what, found));
}

}  // namespace

Json to_json(const Problem& problem) {
  const auto dtype_text = [](std::optional<DType> dtype) { return dtype ? std::string(info(*dtype).name) : ""; };
  // Another process reads the file again.
  const std::string file = kernel_file_of(*problem.family);
  return {{"family", file.empty() ? std::string(problem.family->name()) : file},
          {"op", problem.family->operations()[problem.operation]},
          {"dtype", info(problem.dtype).name},    {"accumulator", dtype_text(problem.accumulator)},
          {"result", dtype_text(problem.result)}, {"numerics", name(problem.numerics)},
          {"ignores_nan", problem.nan == NanPolicy::ignore},
          {"alignment", problem.alignment},       {"extents", problem.extents},
          {"pitches", problem.pitches},           {"context", name(problem.launch_context)}};
}

Problem problem_from_json(const Json& json, Families families) {
  cache::ProblemRecord record{
      .family = json.at("family"),
      .operation = json.at("op"),
      .dtype = json.at("dtype"),
      .numerics = json.at("numerics"),
      .launch_context = json.at("context"),
      .alignment = json.at("alignment"),
      .sizes = {}};
  const std::string accumulator = json.at("accumulator");
  const std::string result = json.at("result");
  if (json.at("ignores_nan").get<bool>()) record.numerics += ", NaN ignored";
  if (!accumulator.empty()) record.dtype += " in " + accumulator;
  if (!result.empty()) record.dtype += " to " + result;
  if (names_kernel_file(record.family)) {
    families = std::span(&kernel_file_family(record.family), 1);
    record.family = families.front().family().name();
  }
  std::optional<Problem> problem = problem_of(record, json.at("extents").get<Extents>(), families);
  if (!problem) throw malformed("problem", json.dump(-1, ' ', false, Json::error_handler_t::replace));
  problem->pitches = json.at("pitches").get<Pitches>();
  return *problem;
}

Json to_json(const Candidate& candidate, const Problem& problem) {
  return {{"policy", problem.family->space().to_string(candidate.policy)},
          {"max_blocks", candidate.geometry.max_blocks}};
}

Candidate candidate_from_json(const Json& json, const Problem& problem) {
  const std::string text = json.at("policy");
  const std::optional<Policy> policy = problem.family->space().parse(text);
  if (!policy) throw malformed("policy", text);
  return {*policy, {.max_blocks = json.at("max_blocks")}};
}

}  // namespace hone::tuner
