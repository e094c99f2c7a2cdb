// Request and Answer: what a campaign tells its workers, and a worker its compilers, and what they tell back. On the
// wire each is one JSON object on a line of its own: {"kind": {its fields}}. Texts may have any bytes, as names of
// files do: each byte is the code point of its number there.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <hone/error.h>
#include <hone/kernel.h>
#include <hone/tuning.h>
#include <nlohmann/json_fwd.hpp>

#include "tuner/campaign/item.h"

namespace hone::tuner {

/// Opens the device and the cache files; → ReadyAnswer.
struct OpenRequest {
  std::string device;                 ///< "cuda:0"
  std::vector<std::string> compiler;  ///< the program that run_compiler() runs in, and its arguments; or none
  unsigned cores = 1;                 ///< of the machine, for this worker
  std::filesystem::path cache_path;
  std::int64_t max_bytes = 0;
  std::vector<std::filesystem::path> system_caches;
  bool load_binaries = true;
  Objective objective = Objective::time;
};

/// → LookedUpAnswer
struct LookUpRequest {
  std::vector<Problem> problems;
};

/// → ProgressAnswer …, then TunedAnswer
struct TuneRequest {
  Problem problem;
  double weight = 1;
  std::chrono::milliseconds budget{2000};
  bool exhaustive = false;
  InputState inputs = InputState::cold;
  std::vector<ExcludedCandidate> excluded = {};
  std::vector<Problem> next = {};  ///< TuningOptions::next
};

/// → ProgressAnswer …, then ConsolidatedAnswer
struct ConsolidateRequest {
  std::vector<Problem> problems;  ///< same_sweep(), ascending, each with a tuned winner of its own
  std::vector<bool> may_change;   ///< those whose winner may become another; the others were kept, and keep theirs;
                                  ///< unless none may change, and nothing between the problems is served
  double most_regret = 0.01;
  std::chrono::milliseconds budget{2000};  ///< for each size
  InputState inputs = InputState::cold;
  std::vector<ExcludedCandidate> excluded = {};
  std::vector<Problem> next = {};  ///< TuningOptions::next
};

/// Asks a compiler: → CompiledAnswer or CompileFailedAnswer
struct CompileRequest {
  std::string architecture;
  std::string name;
  std::string source;
  std::vector<std::string> entries;
  std::vector<std::string> include_folders;
  std::optional<std::vector<SourceFile>> headers;  ///< nullopt: those of the request before
};

/// Ends what runs early. Has no answer.
struct StopRequest {};

using Request = std::variant<OpenRequest, LookUpRequest, TuneRequest, ConsolidateRequest, CompileRequest, StopRequest>;

struct ReadyAnswer {
  std::string name;      ///< of the device: "NVIDIA H100 80GB HBM3"
  std::string kind;      ///< "cuda", "host"
  std::string identity;  ///< tuning_identity()
  std::int64_t free_memory_bytes = 0;
  double peak_gbps = 0;
  std::string seen;  ///< DeviceCondition::seen
};

struct ProgressAnswer {
  TuningProgress progress;
};

struct LookedUpAnswer {
  std::vector<CampaignItem> items;  ///< in the order of the problems
};

struct TunedAnswer {
  CampaignItem item;
};

struct ConsolidatedAnswer {
  SweepResult sweep;
  std::vector<CampaignItem> changed;  ///< problem, candidate and median_us of those that have another winner now
};

struct CompiledAnswer {
  Binary binary;
};

struct CompileFailedAnswer {
  ErrorCode code = ErrorCode::compile_failed;
  std::string message;
};

enum class WorkerFailure : std::uint8_t {
  other,
  device_lost,
  cache,   ///< a winner could not be stored
  files,   ///< what is needed to compile could not be written
  absent,  ///< the device cannot be opened
};

/// The worker gives up, and ends.
struct FailedAnswer {
  WorkerFailure failure = WorkerFailure::other;
  std::string message;
};

using Answer = std::variant<ReadyAnswer, ProgressAnswer, LookedUpAnswer, TunedAnswer, ConsolidatedAnswer,
                            CompiledAnswer, CompileFailedAnswer, FailedAnswer>;

/// The readers are strict: every field there, of its type, and none besides. They throw CommandError(failed), which
/// names the kind of the message and the field.
nlohmann::json to_json(const Request& request);
Request request_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Answer& answer);
Answer answer_from_json(const nlohmann::json& json);

}  // namespace hone::tuner
