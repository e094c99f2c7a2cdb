// CampaignPlan: whose turn it is on which device, and what became of each problem. Knows no process, file or clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tuner/campaign/campaign.h"
#include "tuner/campaign/messages.h"

namespace hone::tuner {

/// Devices of one identity, and the problems that they share.
struct DeviceGroup {
  std::string identity;
  std::vector<std::size_t> devices;                  ///< indices into CampaignResult::devices
  std::vector<std::size_t> items = {};               ///< indices into CampaignResult::items
  std::deque<std::size_t> pending = {};              ///< of items, in their order
  std::map<std::size_t, std::size_t> sweep_of = {};  ///< numbers the sweep of each item
  std::map<std::size_t, std::size_t> device_of = {};  ///< the device that tunes a sweep, by its number; none: not begun
  std::deque<std::vector<std::size_t>> sweeps = {};  ///< items of each sweep whose winners are not consolidated yet
  bool is_looked_up = false;
};

struct TuneStep {
  std::size_t item = 0;
  TuneRequest request;
};

struct ConsolidateStep {
  ConsolidateRequest request;
};

/// The item fits no device: it has failed.
struct SkippedStep {
  std::size_t item = 0;
};

/// There is no time left to consolidate a sweep: the last one of CampaignResult::sweeps says so.
struct SweepLeftStep {};

/// A device does this next; monostate: nothing now.
using Step = std::variant<std::monostate, TuneStep, ConsolidateStep, SkippedStep, SweepLeftStep>;

/// Both references must outlive it.
class CampaignPlan {
 public:
  CampaignPlan(std::span<const WeightedProblem> problems, const CampaignOptions& options)
      : problems_(problems), options_(options) {}

  /// Takes all devices, and groups them.
  void set_devices(std::vector<CampaignDevice> devices);

  const std::vector<DeviceGroup>& groups() const { return groups_; }
  bool are_all_looked_up() const;

  /// True if nothing is left to be given to the devices of the group.
  bool is_done(const DeviceGroup& group) const;

  /// Returns the group's problems, in the order in which take_looked_up() is told what the cache has of them.
  std::vector<Problem> problems_of(const DeviceGroup& group) const;
  void take_looked_up(std::size_t group, std::size_t device, std::vector<CampaignItem> found);

  /// Takes a step of an idle device off the plan. `left` is the rest of the total budget; where it is spent, what was
  /// not begun is dropped (CampaignResult::out_of_budget).
  Step next_step(std::size_t device, std::chrono::milliseconds left);

  /// Returns the item.
  const CampaignItem& take_tuned(std::size_t item, std::size_t device, CampaignItem tuned,
                                 std::vector<std::string> died);
  const CampaignItem& take_failed(std::size_t item, std::size_t device, std::string reason,
                                  std::vector<std::string> died);
  const CampaignItem& take_not_stored(std::size_t item, std::size_t device, std::string reason);

  /// A device of the group is lost: another one, if there is one, tunes its sweeps and the item that it was at.
  void give_back(std::optional<std::size_t> item, std::size_t device);

  /// nullptr where nothing was left to do, else the sweep as it stands in the result.
  const SweepResult* take_consolidated(std::size_t device, const ConsolidatedAnswer& answer);
  const SweepResult& take_failed_sweep(std::size_t device, const ConsolidateRequest& request, std::string failure);

  CampaignResult& result() { return result_; }
  const CampaignResult& result() const { return result_; }

 private:
  using Sweep = std::vector<std::size_t>;

  bool is_for(const WeightedProblem& weighted, const DeviceGroup& group) const;
  std::deque<Sweep> list_sweeps(const DeviceGroup& group) const;
  std::deque<Sweep>::const_iterator ready_sweep(const DeviceGroup& group) const;
  ConsolidateRequest consolidate_request(const Sweep& sweep, DeviceGroup& group, std::size_t device) const;
  bool has_new_winner(const Sweep& sweep) const;
  DeviceGroup& group_of(std::size_t device);
  std::deque<std::size_t>::const_iterator next_pending(const DeviceGroup& group, std::size_t device) const;
  std::vector<Problem> next_problems(DeviceGroup& group, std::size_t device) const;

  const std::span<const WeightedProblem> problems_;
  const CampaignOptions& options_;
  std::vector<DeviceGroup> groups_;
  CampaignResult result_;
};

/// The problems without those that share a size class, and so a winner, with an earlier one.
std::vector<WeightedProblem> one_per_size_class(std::span<const WeightedProblem> problems);

/// Why none of these devices has room for the problem; "" where one has, or does not tell.
std::string memory_fault(std::span<const CampaignDevice> devices, const Problem& problem);

}  // namespace hone::tuner
