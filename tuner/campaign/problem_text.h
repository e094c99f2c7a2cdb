// Problems, candidates and results of a campaign as JSON, and the problems of cache rows: how the processes of a
// campaign tell each other what to do, and how a campaign finds what a cache says of a problem.
#pragma once

#include <optional>
#include <string>

#include <hone/candidate.h>
#include <hone/problem.h>
#include <hone/tuning.h>
#include <nlohmann/json_fwd.hpp>

#include "cache/records.h"
#include "tuner/campaign/item.h"
#include "tuner/families.h"

namespace hone::tuner {

/// The problem of these extents that a row's columns describe; nullopt where they describe none of ours.
std::optional<Problem> problem_of(const cache::ProblemRecord& record, const Extents& extents,
                                  Families families = built_in_families());

/// Whether the problem is of the class that the columns describe.
bool is_described(const Problem& problem, const cache::ProblemRecord& record);

/// "sum f32 2^20", "reduce_rows sum f32 2^13x2^13", "softmax f16 2^13x2^13": of other families than the first, the
/// name, where the operation is not called the same; with what is not usual about it behind: "in f64", "to f16", "NaN
/// ignored", "align 4", "graph".
std::string problem_label(const Problem& problem);

/// The same without the size: what problems of one line have in common.
std::string line_label(const Problem& problem);

/// Same but for extents and pitches.
bool same_line(const Problem& a, const Problem& b);

/// Each throws nlohmann::json::exception, or CommandError(failed), for what is none.
nlohmann::json to_json(const Problem& problem);
Problem problem_from_json(const nlohmann::json& json, Families families = built_in_families());
nlohmann::json to_json(const Candidate& candidate, const Problem& problem);
Candidate candidate_from_json(const nlohmann::json& json, const Problem& problem);
nlohmann::json to_json(const CampaignItem& item);
CampaignItem item_from_json(const nlohmann::json& json);
nlohmann::json to_json(const LineResult& line);
LineResult line_from_json(const nlohmann::json& json);
nlohmann::json to_json(const TuningProgress& progress);
TuningProgress progress_from_json(const nlohmann::json& json);

}  // namespace hone::tuner
