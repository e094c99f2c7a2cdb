#include "runtime/choose/policy_loader.h"

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

#include <hone/error.h>

namespace hone {

bool may_compile_meanwhile(const DeviceFacts& facts) {
  return facts.kind != "host" && std::thread::hardware_concurrency() > 1;
}

std::vector<CompileOutcome> PolicyLoader::compile(const SearchOrder::Wave& wave, Clock::time_point deadline,
                                                  const CompileProgress& on_progress) {
  const auto start = Clock::now();
  std::vector<CompileOutcome> outcomes = memo_.compile(device_, units_of(wave), stop_, on_progress, deadline);
  compile_ms_ += ms_since(start);
  return outcomes;
}

CompileOutcome PolicyLoader::compile(std::size_t place) const {
  const Unit unit = unit_at(place);
  return memo_.compile(device_, std::span(&unit, 1)).front();
}

BinaryMemo::Ahead PolicyLoader::compile_ahead(const SearchOrder::Wave& wave, Clock::time_point deadline) const {
  return memo_.compile_ahead(
      device_, [units = units_of(wave)] { return units; }, deadline);
}

const CompiledCode* PolicyLoader::load(std::size_t place, const CompileOutcome& outcome, Reason& why) {
  why = {ReasonCode::does_not_compile, outcome.error};
  if (!outcome.binary) return nullptr;
  try {
    return &code_.emplace_back(
        load_policy(device_, problem_, ranking_[place].policy, unit_at(place), outcome.binary, &memo_));
  } catch (const Error& error) {
    // Arguments that do not fit the kernel fit it in no policy.
    if (error.code() == ErrorCode::device_lost || error.code() == ErrorCode::invalid_argument) throw;
    why = {ReasonCode::does_not_run, error.what()};
    return nullptr;
  }
}

const CompiledCode& PolicyLoader::code_of(const Candidate& candidate) const {
  return *std::find_if(code_.begin(), code_.end(),
                       [&](const CompiledCode& code) { return code.compiled.policy == candidate.policy; });
}

std::vector<Unit> PolicyLoader::units_of(const SearchOrder::Wave& wave) const {
  std::vector<Unit> units;
  for (const std::size_t place : wave) units.push_back(unit_at(place));
  return units;
}

}  // namespace hone
