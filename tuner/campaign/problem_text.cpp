#include "tuner/campaign/problem_text.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/kernel_family.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>

#include "tuner/command_error.h"
#include "tuner/shapes.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::json;

std::optional<DType> dtype_called(std::string_view word) {
  const auto found = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& row) { return row.name == word; });
  if (found == kDTypes.end()) return std::nullopt;
  return found->dtype;
}

/// Takes the word behind `mark` off the end of `text`: "f16 in f64" gives "f64" for " in ".
std::string take_suffix(std::string& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return {};
  std::string word = text.substr(at + mark.size());
  text.resize(at);
  return word;
}

/// Sets the dtypes that a row's column spells: "i32", "f16 in f64 to f16".
bool read_dtypes(std::string text, Problem& problem) {
  const std::string result = take_suffix(text, " to ");
  const std::string accumulator = take_suffix(text, " in ");
  const std::optional<DType> dtype = dtype_called(text);
  if (!dtype) return false;
  problem.dtype = *dtype;
  problem.accumulator = dtype_called(accumulator);
  problem.result = dtype_called(result);
  return accumulator.empty() == !problem.accumulator && result.empty() == !problem.result;
}

/// The problem of `family` and these extents that a row's other columns describe; nullopt where they describe none.
std::optional<Problem> problem_of(const cache::ProblemRecord& record, const Extents& extents,
                                  const KernelFamily& family) {
  const auto operations = family.operations();
  const auto operation = std::find(operations.begin(), operations.end(), record.operation);
  Problem problem{.family = &family, .extents = extents};
  if (operation == operations.end() || !read_dtypes(record.dtype, problem)) return std::nullopt;
  problem.operation = static_cast<std::uint8_t>(operation - operations.begin());
  problem.alignment = static_cast<std::uint32_t>(record.alignment);
  if (record.numerics == "reproducible, NaN ignored") {
    problem.nan = NanPolicy::ignore;
  } else if (record.numerics != "reproducible") {
    return std::nullopt;
  }
  const auto context = std::find(kLaunchContextNames.begin(), kLaunchContextNames.end(), record.launch_context);
  if (context == kLaunchContextNames.end()) return std::nullopt;
  problem.launch_context = static_cast<LaunchContext>(context - kLaunchContextNames.begin());
  if (!family.refuse(problem).empty()) return std::nullopt;
  return problem;
}

CommandError malformed(std::string_view what, std::string_view found) {
  return CommandError(ExitCode::failed, fmt::format("a worker's message has no {}: '{}'", what, found));
}

}  // namespace

std::optional<Problem> problem_of(const cache::ProblemRecord& record, const Extents& extents, Families families) {
  const FamilyRow* row = find_family(record.family, families);
  return row ? problem_of(record, extents, row->family()) : std::nullopt;
}

bool is_described(const Problem& problem, const cache::ProblemRecord& record) {
  if (problem.family->name() != record.family) return false;
  for (std::size_t axis = 0; axis < record.sizes.size(); ++axis)
    if (problem.extents[axis] < record.sizes[axis].first || problem.extents[axis] > record.sizes[axis].last)
      return false;
  const std::optional<Problem> described = problem_of(record, problem.extents, *problem.family);
  return described && same_line(problem, *described);
}

namespace {

std::string label(const Problem& problem, std::string_view shape) {
  const KernelFamily& family = *problem.family;
  const std::string_view operation = family.operations()[problem.operation];
  std::string label;
  if (&family != &built_in_families().front().family() && family.name() != operation)
    label.append(family.name()).append(" ");
  label += fmt::format("{} {}", operation, info(problem.dtype).name);
  if (!shape.empty()) label.append(" ").append(shape);
  if (problem.accumulator) label += fmt::format(" in {}", info(*problem.accumulator).name);
  if (problem.result) label += fmt::format(" to {}", info(*problem.result).name);
  if (problem.nan == NanPolicy::ignore) label += " NaN ignored";
  if (problem.alignment != kMaxAlignment) label += fmt::format(" align {}", problem.alignment);
  if (problem.pitches != Pitches{}) label += fmt::format(" pitch {}", fmt::join(problem.pitches, ","));
  if (problem.launch_context == LaunchContext::graph) label += " graph";
  return label;
}

}  // namespace

std::string line_label(const Problem& problem) { return label(problem, {}); }

std::string problem_label(const Problem& problem) { return label(problem, format_shape(problem)); }

bool same_line(const Problem& a, const Problem& b) {
  return a.family == b.family && a.operation == b.operation && a.dtype == b.dtype && a.accumulator == b.accumulator &&
         a.result == b.result && a.numerics == b.numerics && a.nan == b.nan && a.alignment == b.alignment &&
         a.launch_context == b.launch_context;
}

Json to_json(const Problem& problem) {
  const auto dtype_text = [](std::optional<DType> dtype) { return dtype ? std::string(info(*dtype).name) : ""; };
  return {{"family", problem.family->name()},
          {"op", problem.family->operations()[problem.operation]},
          {"dtype", info(problem.dtype).name},
          {"accumulator", dtype_text(problem.accumulator)},
          {"result", dtype_text(problem.result)},
          {"ignores_nan", problem.nan == NanPolicy::ignore},
          {"alignment", problem.alignment},
          {"extents", problem.extents},
          {"pitches", problem.pitches},
          {"context", name(problem.launch_context)}};
}

Problem problem_from_json(const Json& json, Families families) {
  cache::ProblemRecord record{
      .family = json.at("family"),
      .operation = json.at("op"),
      .dtype = json.at("dtype"),
      .numerics = json.at("ignores_nan").get<bool>() ? "reproducible, NaN ignored" : "reproducible",
      .launch_context = json.at("context"),
      .alignment = json.at("alignment"),
      .sizes = {}};
  const std::string accumulator = json.at("accumulator");
  const std::string result = json.at("result");
  if (!accumulator.empty()) record.dtype += " in " + accumulator;
  if (!result.empty()) record.dtype += " to " + result;
  std::optional<Problem> problem = problem_of(record, json.at("extents").get<Extents>(), families);
  if (!problem) throw malformed("problem", json.dump());
  problem->pitches = json.at("pitches").get<Pitches>();
  return *problem;
}

Json to_json(const Candidate& candidate, const Problem& problem) {
  return {{"policy", problem.family->space().to_string(candidate.policy)},
          {"max_blocks", candidate.geometry.max_blocks}};
}

Candidate candidate_from_json(const Json& json, const Problem& problem) {
  // Campaign files of earlier versions have another name for it.
  const std::string text = json.contains("policy") ? json["policy"] : json.at("variant");
  const std::optional<Policy> policy = problem.family->space().parse(text);
  if (!policy) throw malformed("policy", text);
  return {*policy, {.max_blocks = json.at("max_blocks")}};
}

Json to_json(const CampaignItem& item) {
  Json json{{"problem", to_json(item.problem)},
            {"weight", item.weight},
            {"outcome", item.outcome},
            {"reason", item.reason},
            {"measured_problem", to_json(item.measured_problem)},
            {"median_us", item.median_us},
            {"default_us", item.default_us},
            {"measured", item.measured},
            {"rejected", item.rejected},
            {"reasons", item.reasons},
            {"died", item.died},
            {"is_stale", item.is_stale},
            {"compile_ms", item.compile_ms},
            {"measure_ms", item.measure_ms},
            {"roofline_us", item.roofline_us},
            {"budget_spent", item.budget_spent},
            {"search_end", item.search_end},
            {"rank_correlation", item.rank_correlation},
            {"discarded_samples", item.discarded_samples},
            {"disturbance", item.disturbance}};
  if (item.candidate.policy.size() > 0) json["candidate"] = to_json(item.candidate, item.problem);
  return json;
}

CampaignItem item_from_json(const Json& json) {
  CampaignItem item{.problem = problem_from_json(json.at("problem")),
                    .weight = json.at("weight"),
                    .outcome = json.at("outcome").get<Outcome>(),
                    .reason = json.at("reason"),
                    .median_us = json.at("median_us"),
                    .measured_problem = problem_from_json(json.at("measured_problem")),
                    .default_us = json.at("default_us"),
                    .measured = json.at("measured"),
                    .rejected = json.at("rejected"),
                    .reasons = json.at("reasons"),
                    .died = json.at("died"),
                    .is_stale = json.at("is_stale"),
                    .compile_ms = json.at("compile_ms"),
                    .measure_ms = json.at("measure_ms"),
                    .roofline_us = json.at("roofline_us"),
                    .budget_spent = json.at("budget_spent"),
                    .search_end = json.at("search_end").get<SearchEnd>(),
                    .rank_correlation = json.at("rank_correlation"),
                    .discarded_samples = json.at("discarded_samples"),
                    .disturbance = json.at("disturbance")};
  if (json.contains("candidate")) item.candidate = candidate_from_json(json["candidate"], item.problem);
  return item;
}

Json to_json(const LineResult& line) {
  return {{"first", to_json(line.first)},
          {"sizes", line.sizes},
          {"winners_before", line.winners_before},
          {"winners", line.winners},
          {"worst_regret", line.worst_regret},
          {"mean_regret", line.mean_regret},
          {"filled", line.filled},
          {"measure_ms", line.measure_ms},
          {"failure", line.failure}};
}

LineResult line_from_json(const Json& json) {
  return {.first = problem_from_json(json.at("first")),
          .sizes = json.at("sizes"),
          .winners_before = json.at("winners_before"),
          .winners = json.at("winners"),
          .worst_regret = json.at("worst_regret"),
          .mean_regret = json.at("mean_regret"),
          .filled = json.at("filled"),
          .measure_ms = json.at("measure_ms"),
          .failure = json.at("failure")};
}

Json to_json(const TuningProgress& progress) {
  return {{"phase", progress.phase}, {"done", progress.done}, {"total", progress.total}, {"best_us", progress.best_us}};
}

TuningProgress progress_from_json(const Json& json) {
  return {.phase = json.at("phase").get<TuningPhase>(),
          .done = json.at("done"),
          .total = json.at("total"),
          .best_us = json.at("best_us")};
}

}  // namespace hone::tuner
