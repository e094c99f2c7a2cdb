// Transfer: winners for a GPU that nothing was tuned on, predicted from the trials of another one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hone/candidate.h>
#include <hone/device.h>
#include <hone/device_facts.h>
#include <hone/kernel_family.h>

namespace hone {

/// A candidate that was measured on another device, and what it should take on this one.
struct TransferredChoice {
  Candidate candidate;
  double predicted_us = 0;
};

/// The candidate that should be the fastest for `problem` on a device with the facts `to`, of those that `trials` (of
/// the same problem, on a device with the facts `from`) measured. A trial tells by what factor the occupancy model is
/// wrong about its candidate; the model's time for the other device, multiplied by that, is expected there. A
/// persistent grid has as many blocks on each SM. nullopt: no trial was measured, or none is valid there. Pure. Throws
/// Error(invalid_argument) for devices of different kinds.
std::optional<TransferredChoice> predict_transfer(const Problem& problem, const DeviceFacts& from,
                                                  std::span<const Trial> trials, const DeviceFacts& to);

/// A winner for the extents `sizes`, which was measured for `problem` on the device called `lender`.
struct TransferredWinner {
  Problem problem;
  std::array<SizeRange, 3> sizes;
  Candidate candidate;
  std::string lender;
};

enum class TransferOutcome : std::uint8_t {
  stored,
  kept,      ///< the file had it already
  unusable,  ///< it does not compile, or is not resident
};

/// Stores transferred winners in a cache file, as untuned (Loan::transfer), with the code of the device that they are
/// for: it compiles, and may be absent (make_absent_gpu()). Nothing is launched.
class TransferStore {
 public:
  TransferStore(std::shared_ptr<Device> device, std::filesystem::path cache);
  ~TransferStore();

  /// Called for each winner, given by its index, in their order, once it is stored.
  using Progress = std::function<void(std::size_t winner, TransferOutcome outcome)>;

  /// Compiles on all cores, a few for each at a time, and stores these together: what is interrupted goes on with the
  /// rest when it is repeated. Throws Error: unsupported (no compiler), cache_failed.
  void store(std::span<const TransferredWinner> winners, const Progress& on_done);

 private:
  void store_some(std::span<const TransferredWinner> winners, std::vector<TransferOutcome>& outcomes);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone
