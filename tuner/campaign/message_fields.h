// each_field: the fields of each request and answer by their names on the wire, in one place for writing and reading.
#pragma once

#include <concepts>
#include <type_traits>

#include "tuner/campaign/messages.h"

namespace hone::tuner {

/// Message, or const Message.
template <class T, class Message>
concept Some = std::same_as<std::remove_const_t<T>, Message>;

template <class Visit>
void each_field(Some<OpenRequest> auto& request, Visit& visit) {
  visit("device", request.device);
  visit("compiler", request.compiler);
  visit("cores", request.cores);
  visit("cache_path", request.cache_path);
  visit("max_bytes", request.max_bytes);
  visit("system_caches", request.system_caches);
  visit("load_binaries", request.load_binaries);
  visit("objective", request.objective);
}

template <class Visit>
void each_field(Some<LookUpRequest> auto& request, Visit& visit) {
  visit("problems", request.problems);
}

template <class Visit>
void each_field(Some<TuneRequest> auto& request, Visit& visit) {
  visit("problem", request.problem);
  visit("weight", request.weight);
  visit("budget_ms", request.budget);
  visit("exhaustive", request.exhaustive);
  visit("inputs", request.inputs);
  visit("excluded", request.excluded);
  visit("next", request.next);
}

template <class Visit>
void each_field(Some<ConsolidateRequest> auto& request, Visit& visit) {
  visit("problems", request.problems);
  visit("may_change", request.may_change);
  visit("most_regret", request.most_regret);
  visit("budget_ms", request.budget);
  visit("inputs", request.inputs);
  visit("excluded", request.excluded);
  visit("next", request.next);
}

template <class Visit>
void each_field(Some<CompileRequest> auto& request, Visit& visit) {
  visit("architecture", request.architecture);
  visit("name", request.name);
  visit("source", request.source);
  visit("entries", request.entries);
  visit("include_folders", request.include_folders);
  visit("headers", request.headers);
}

template <class Visit>
void each_field(Some<StopRequest> auto&, Visit&) {}

template <class Visit>
void each_field(Some<ReadyAnswer> auto& answer, Visit& visit) {
  visit("name", answer.name);
  visit("kind", answer.kind);
  visit("identity", answer.identity);
  visit("free_memory_bytes", answer.free_memory_bytes);
  visit("peak_gbps", answer.peak_gbps);
  visit("seen", answer.seen);
}

template <class Visit>
void each_field(Some<ProgressAnswer> auto& answer, Visit& visit) {
  visit("phase", answer.progress.phase);
  visit("done", answer.progress.done);
  visit("total", answer.progress.total);
  visit("best_us", answer.progress.best_us);
}

template <class Visit>
void each_field(Some<LookedUpAnswer> auto& answer, Visit& visit) {
  visit("items", answer.items);
}

template <class Visit>
void each_field(Some<TunedAnswer> auto& answer, Visit& visit) {
  visit("item", answer.item);
}

template <class Visit>
void each_field(Some<ConsolidatedAnswer> auto& answer, Visit& visit) {
  visit("sweep", answer.sweep);
  visit("changed", answer.changed);
}

template <class Visit>
void each_field(Some<CompiledAnswer> auto& answer, Visit& visit) {
  visit("format", answer.binary.format);
  visit("architecture", answer.binary.architecture);
  visit("code", answer.binary.code);
  visit("entries", answer.binary.entries);
}

template <class Visit>
void each_field(Some<CompileFailedAnswer> auto& answer, Visit& visit) {
  visit("code", answer.code);
  visit("message", answer.message);
}

template <class Visit>
void each_field(Some<FailedAnswer> auto& answer, Visit& visit) {
  visit("failure", answer.failure);
  visit("message", answer.message);
}

template <class Visit>
void each_field(Some<SourceFile> auto& file, Visit& visit) {
  visit("name", file.name);
  visit("text", file.text);
}

template <class Visit>
void each_field(Some<ExcludedCandidate> auto& excluded, Visit& visit) {
  visit("candidate", excluded.candidate);
  visit("reason", excluded.reason);
}

template <class Visit>
void each_field(Some<Reason> auto& reason, Visit& visit) {
  visit("code", reason.code);
  visit("numbers", reason.numbers);
  visit("detail", reason.detail);
}

template <class Visit>
void each_field(Some<ReasonCount> auto& reason, Visit& visit) {
  visit("verdict", reason.verdict);
  visit("reason", reason.reason);
  visit("count", reason.count);
  visit("varies", reason.varies);
}

/// Without its device, which the campaign knows.
template <class Visit>
void each_field(Some<CampaignItem> auto& item, Visit& visit) {
  visit("problem", item.problem);
  visit("weight", item.weight);
  visit("outcome", item.outcome);
  visit("reason", item.reason);
  visit("candidate", item.candidate);
  visit("median_us", item.median_us);
  visit("measured_problem", item.measured_problem);
  visit("default_us", item.default_us);
  visit("measured", item.measured);
  visit("rejected", item.rejected);
  visit("reasons", item.reasons);
  visit("died", item.died);
  visit("is_stale", item.is_stale);
  visit("compile_ms", item.compile_ms);
  visit("measure_ms", item.measure_ms);
  visit("verify_ms", item.verify_ms);
  visit("roofline_us", item.roofline_us);
  visit("budget_spent", item.budget_spent);
  visit("search_end", item.search_end);
  visit("rank_correlation", item.rank_correlation);
  visit("discarded_samples", item.discarded_samples);
  visit("disturbance", item.disturbance);
}

/// Without its device.
template <class Visit>
void each_field(Some<SweepResult> auto& sweep, Visit& visit) {
  visit("first", sweep.first);
  visit("sizes", sweep.sizes);
  visit("winners_before", sweep.winners_before);
  visit("winners", sweep.winners);
  visit("worst_regret", sweep.worst_regret);
  visit("mean_regret", sweep.mean_regret);
  visit("filled", sweep.filled);
  visit("measure_ms", sweep.measure_ms);
  visit("failure", sweep.failure);
}

/// A value that has fields is an object on the wire.
template <class T>
concept HasFields = requires(T& value, void (*visit)(...)) {
  each_field(value, visit);
};

}  // namespace hone::tuner
