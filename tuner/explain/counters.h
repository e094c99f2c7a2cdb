// hone explain --counters: what Nsight Compute counts in a winner's kernels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cache/records.h"
#include "tuner/context/context.h"
#include "tuner/explain/ncu_output.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {

/// The subcommand, unknown to people, that runs a winner once: what Nsight Compute is started with.
inline constexpr std::string_view kCountedCommand = "winner-of-hone-explain";

/// Runs ncu on one cold call of the winner. Returns at least one kernel. Throws CommandError: usage where the winner is
/// no GPU's, not_tuned where its family is neither built in nor that of `kernel_file` ("": none), failed where there is
/// no ncu, with the command to run elsewhere, or where ncu fails; what ncu wrote goes to the errors then.
std::vector<CountedKernel> count_kernels(const cache::StoredWinner& stored, const std::filesystem::path& cache,
                                         const std::string& kernel_file, const Context& context);

/// A table of the counters that explain a time, a column for each kernel.
void print_counters(const std::vector<CountedKernel>& kernels, const Context& context);

/// Every counter, with the unit that ncu gave.
nlohmann::ordered_json to_json(const std::vector<CountedKernel>& kernels);

/// `arguments`: the cache file, the winner's id, the device, and the kernel file if the winner is one's. Loads the
/// winner from the cache file, on buffers of zeros; never tunes, and writes nothing. Returns an exit code.
int run_counted(std::span<const std::string> arguments);

}  // namespace hone::tuner
