// take_sample(): what the first result of this process takes, step by step.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace hone::benchmarks {

/// The problem whose winner the cache files of the benchmark hold: sums of so many floats.
inline constexpr int kFirstResultElements = 1 << 20;

/// Makes the context, opens the device and a session on the cache file, sums an array, and waits for the sum; then once
/// more. Returns milliseconds: "context" and "device" first, then the "total" until the first sum is there with its
/// parts "session", "call" and "sync", the "second" call, and the "steps" inside of all these, each without the steps
/// inside of it. "compiles" and "has_compiler" say whether a compiler had to be called, and was loaded. Only the first
/// call in a process says anything. Throws Error, also where nothing was tuned.
nlohmann::ordered_json take_sample(const std::string& device, const std::filesystem::path& cache);

}  // namespace hone::benchmarks
