// listed_json() and choose_gpu(): a device as JSON, and a GPU by its name or by a file of such JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include <hone/device_facts.h>

namespace hone::tuner {

/// Every field of DeviceFacts under its own name, but for the grid's limits, which are one list: max_grid_blocks.
nlohmann::ordered_json facts_json(const DeviceFacts& facts);

/// A device as `hone devices` shows it. `measured` has the limits that the cache file knows, `source` says where the
/// facts of a GPU known by name are from.
struct ListedDevice {
  std::string name;
  DeviceFacts facts;
  DeviceLimits measured = {};
  std::string compiler = {};
  std::string source = {};
};

/// facts_json() with everything else about a device. read_facts() reads each such object of a CUDA device.
nlohmann::ordered_json listed_json(const ListedDevice& device);

/// The facts of a CUDA device in a file: an object of facts_json() or of listed_json(), of which the limits of an SM
/// may be left out where the architecture is known. Throws Error(io_failed) when the file cannot be read, and
/// CommandError(usage) for what is no such object, for a field that does not exist, for one that is missing, and for
/// numbers that no GPU has.
DeviceFacts read_facts(const std::filesystem::path& path);

/// "auto" and the known GPUs, for completions.
std::vector<std::string> gpu_words();

/// The GPU that --gpu names: a known GPU ("h100", "NVIDIA H100 80GB HBM3"), a file that ends in .json, or a device of
/// this machine: "cuda:0", or "auto" for the first CUDA device. Throws CommandError(usage) with the known names, and
/// what read_facts() and Device::open() throw.
DeviceFacts choose_gpu(const std::string& gpu);

}  // namespace hone::tuner
