// run_campaign(): tune a list of problems, with a worker process for each device, and say what became of each.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <hone/session.h>

#include "tuner/campaign/item.h"

namespace hone::tuner {

/// A problem, and how much it matters next to the others.
struct WeightedProblem {
  Problem problem;
  double weight = 1;
  std::string identity = {};      ///< of the device that it is for, as CampaignDevice has it; "": for all
  bool again_when_stale = false;  ///< a winner of another driver does not do
};

/// A device of a campaign, as its worker tells.
struct CampaignDevice {
  std::string name;   ///< "cuda:0"
  std::string label;  ///< "NVIDIA H100 80GB HBM3"
  std::string identity;  ///< the same for devices that share winners; see device_identity()
  std::int64_t free_memory_bytes = 0;  ///< when the campaign began; 0: not known
  double peak_gbps = 0;
};

inline std::string device_identity(std::string_view kind, std::string_view tuning_identity) {
  return std::string(kind).append(" ").append(tuning_identity);
}

/// True if devices with these device_identity() share winners.
bool share_winners(const std::string& identity, const std::string& other);

/// The time of all devices together, by what they did.
struct CampaignTimes {
  double waiting_for_compiler_ms = 0;
  double measuring_ms = 0;
  double verifying_ms = 0;
  double comparing_sizes_ms = 0;  ///< with compiling, verifying and storing what is chosen
  double storing_ms = 0;          ///< and whatever else a tuning does
  double hung_ms = 0;             ///< on candidates that hung or killed their worker, of problems that were tuned
  double failed_ms = 0;           ///< on problems that failed or could not be stored
  double idle_ms = 0;             ///< with opening the device and looking winners up
};

struct CampaignResult {
  std::vector<CampaignDevice> devices;
  std::vector<CampaignItem> items;  ///< in the order of the problems, once for each kind of device
  std::vector<SweepResult> sweeps;
  CampaignTimes times;
  bool interrupted = false;
  bool out_of_budget = false;  ///< the total budget ended it
  std::string cache_failure;   ///< winners could not be stored: why; ended the campaign
  std::string file_failure;    ///< what is needed to compile could not be written: why; ended the campaign
  std::string device_failure;  ///< a device was lost and cannot be opened again: why; what it had left was not reached
};

/// Called from the thread that runs the campaign. `lane` counts the devices.
class CampaignObserver {
 public:
  virtual ~CampaignObserver() = default;
  virtual void planned(const std::vector<CampaignDevice>& devices, std::size_t to_tune, std::size_t kept) = 0;
  virtual void started(std::size_t lane, const Problem& problem) = 0;
  virtual void consolidating(std::size_t lane, const Problem& smallest) = 0;
  virtual void progressed(std::size_t lane, const TuningProgress& progress) = 0;
  virtual void finished(const CampaignItem& item, std::size_t lane) = 0;
  virtual void consolidated(const SweepResult& sweep, std::size_t lane) = 0;
  virtual void warned(const std::string& what) = 0;
};

struct CampaignOptions {
  std::vector<std::string> devices{"host"};
  SessionOptions session;                                 ///< the cache files of the workers' sessions
  std::vector<std::string> worker;                        ///< the program that run_worker() runs in, and its arguments
  std::vector<std::string> compiler;                      ///< likewise of run_compiler(); none: workers compile
  std::chrono::milliseconds budget{5000};                 ///< per problem
  std::optional<std::chrono::milliseconds> total_budget;  ///< for all; the last problem's budget shrinks to fit
  bool again = false;                                     ///< tune even what has a tuned winner
  bool exhaustive = false;                                ///< TuningOptions::exhaustive
  InputState inputs = InputState::cold;                   ///< TuningOptions::inputs
  double most_regret = 0.01;                              ///< that the portfolio may cost; 0: each size keeps its own
  std::chrono::milliseconds patience{20000};              ///< a worker without a sign of life for longer hangs
  std::stop_token stop;
  std::function<std::chrono::steady_clock::time_point()> now = &std::chrono::steady_clock::now;
};

/// Tunes each problem that the cache has no tuned winner for, in this order; devices of one identity share the work,
/// others do all of it. A candidate that hangs or kills its worker is recorded as failed, and its problem tuned again
/// without it. When all sizes of a sweep are tuned, consolidate_winners() makes them few. A problem that fails does not
/// end the campaign; a stop, a spent total budget, a lost device or a cache that cannot be written does. Everything
/// finished by then is stored. Throws CommandError when a device cannot be opened or is too small for a problem.
CampaignResult run_campaign(std::span<const WeightedProblem> problems, const CampaignOptions& options,
                            CampaignObserver& observer);

}  // namespace hone::tuner
