// hone explain --counters: what Nsight Compute counts in a winner's kernels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "cache/records.h"
#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace hone::tuner {

/// The subcommand, unknown to people, that runs a winner once: what Nsight Compute is started with.
inline constexpr std::string_view kCountedCommand = "winner-of-hone-explain";

/// Runs ncu on one cold call of the winner, whose counters go to standard output. Throws CommandError: usage where the
/// winner is no GPU's, not_tuned where its family is neither built in nor that of `kernel_file` ("": none), failed where
/// there is no ncu, with the command to run elsewhere, or where ncu fails.
void print_counters(const cache::StoredWinner& stored, const std::filesystem::path& cache,
                    const std::string& kernel_file, const Context& context);

/// `arguments`: the cache file, the winner's id, the device, and the kernel file if the winner is one's. Loads the winner
/// from the cache file, on buffers of zeros; never tunes, and writes nothing. Returns an exit code.
int run_counted(std::span<const std::string> arguments);

}  // namespace hone::tuner
