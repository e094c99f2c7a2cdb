#include "tuner/context/gpu_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include <hone/device.h>
#include <hone/error.h>
#include <hone/sdk/known_gpus.h>

#include "tuner/text/command_error.h"
#include "tuner/text/suggest.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr std::int64_t kTiB = std::int64_t{1} << 40;

/// A number among the facts. What lies outside of least … most is no GPU's of today, nor of the near future.
struct NumberField {
  std::string_view name;
  std::variant<int DeviceFacts::*, std::int64_t DeviceFacts::*> member;
  std::int64_t least = 0;
  std::int64_t most = 0;
  bool is_of_architecture = true;  ///< may be left out where the architecture is known
};

constexpr std::array<NumberField, 18> kNumbers{{
    {"compute_capability", &DeviceFacts::compute_capability, 50, 999},
    {"sm_count", &DeviceFacts::sm_count, 1, 4096, false},
    {"warp_threads", &DeviceFacts::warp_threads, 32, 32},
    {"max_threads_per_block", &DeviceFacts::max_threads_per_block, 32, 4096},
    {"max_threads_per_sm", &DeviceFacts::max_threads_per_sm, 32, 16384},
    {"max_blocks_per_sm", &DeviceFacts::max_blocks_per_sm, 1, 256},
    {"registers_per_sm", &DeviceFacts::registers_per_sm, 256, 1 << 22},
    {"registers_per_block", &DeviceFacts::registers_per_block, 256, 1 << 22},
    {"smem_bytes_per_sm", &DeviceFacts::smem_bytes_per_sm, 1024, 1 << 24},
    {"smem_bytes_per_block", &DeviceFacts::smem_bytes_per_block, 1024, 1 << 24},
    {"smem_bytes_per_block_optin", &DeviceFacts::smem_bytes_per_block_optin, 1024, 1 << 24},
    {"smem_bytes_reserved_per_block", &DeviceFacts::smem_bytes_reserved_per_block, 0, 1 << 20},
    {"l2_bytes", &DeviceFacts::l2_bytes, 1 << 16, kTiB, false},
    {"memory_bytes", &DeviceFacts::memory_bytes, 1 << 24, 64 * kTiB, false},
    {"sm_clock_khz", &DeviceFacts::sm_clock_khz, 0, 20'000'000, false},
    {"memory_clock_khz", &DeviceFacts::memory_clock_khz, 1000, 100'000'000, false},
    {"memory_bus_bits", &DeviceFacts::memory_bus_bits, 8, 1 << 16, false},
    {"max_cluster_blocks", &DeviceFacts::max_cluster_blocks, 0, 1024},
}};

/// A limit that cannot be beyond another one.
struct Order {
  std::string_view smaller, larger;
};
constexpr std::array<Order, 5> kOrders{{{"max_threads_per_block", "max_threads_per_sm"},
                                        {"max_blocks_per_sm", "max_threads_per_sm"},
                                        {"registers_per_block", "registers_per_sm"},
                                        {"smem_bytes_per_block", "smem_bytes_per_block_optin"},
                                        {"smem_bytes_per_block_optin", "smem_bytes_per_sm"}}};

std::int64_t value_of(const DeviceFacts& facts, const NumberField& field) {
  return std::visit([&](auto member) { return static_cast<std::int64_t>(facts.*member); }, field.member);
}

std::int64_t value_of(const DeviceFacts& facts, std::string_view name) {
  for (const NumberField& field : kNumbers)
    if (field.name == name) return value_of(facts, field);
  return 0;
}

/// Reads one object, and says of which file it is where something is wrong.
class FactsReader {
 public:
  FactsReader(const Json& json, std::string file) : json_(json), file_(std::move(file)) {}

  DeviceFacts read() const {
    if (!json_.is_object()) refuse("is no JSON object; hone devices --json lists such objects under \"devices\"");
    refuse_unknown_fields();
    DeviceFacts facts;
    const std::string architecture = text("architecture");
    const std::optional<DeviceFacts> of_architecture = architecture_facts(architecture);
    if (of_architecture) facts = *of_architecture;
    facts.architecture = architecture;
    facts.kind = json_.contains("kind") ? text("kind") : "cuda";
    if (facts.kind != "cuda") refuse(fmt::format("is of the kind '{}'; only CUDA GPUs can be planned for", facts.kind));
    facts.name = text("name");
    if (facts.name.empty()) refuse("has an empty 'name'");
    if (json_.contains("driver")) facts.driver = text("driver");
    for (const NumberField& field : kNumbers) read_number(field, of_architecture.has_value(), facts);
    if (json_.contains("has_dependent_launch")) {
      if (!json_["has_dependent_launch"].is_boolean()) refuse("has a has_dependent_launch that is not true or false");
      facts.has_dependent_launch = json_["has_dependent_launch"].get<bool>();
    }
    read_grid(facts);
    check(facts);
    return facts;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw CommandError(ExitCode::usage, fmt::format("'{}' {}", printable(file_), printable(what)));
  }

  void refuse_unknown_fields() const {
    const Json listed = listed_json({});
    std::vector<std::string_view> known;
    for (const auto& field : listed.items()) known.push_back(field.key());
    for (const auto& field : json_.items())
      if (!listed.contains(field.key()))
        refuse(fmt::format("has a field '{}' that no GPU has{}", field.key(), did_you_mean(field.key(), known)));
  }

  std::string text(const std::string& field) const {
    if (!json_.contains(field)) refuse(fmt::format("has no '{}'", field));
    if (!json_[field].is_string()) refuse(fmt::format("has a {} that is no text", field));
    return json_[field].get<std::string>();
  }

  void read_number(const NumberField& field, bool is_architecture_known, DeviceFacts& facts) const {
    const std::string name(field.name);
    if (!json_.contains(name)) {
      const bool may_be_missing = field.is_of_architecture ? is_architecture_known : field.least == 0;
      if (may_be_missing) return;
      refuse(fmt::format("has no '{}'{}", name,
                         field.is_of_architecture
                             ? fmt::format("; the architecture '{}' is not known, so that all its limits must be "
                                           "there. Known are {}",
                                           facts.architecture, fmt::join(known_architectures(), ", "))
                             : ""));
    }
    const Json& json = json_[name];
    // JSON knows one kind of numbers, so 1.32e2 is one of them.
    const double number = json.is_number() ? json.get<double>() : std::nan("");
    if (number != std::trunc(number)) refuse(fmt::format("has {} = {}, which is no whole number", name, json.dump()));
    const auto value = static_cast<std::int64_t>(std::clamp(number, -0x1p62, 0x1p62));
    if (value < field.least || value > field.most)
      refuse(fmt::format("has {} = {}, which no GPU has; {} … {} are possible", name, json.dump(), field.least,
                         field.most));
    std::visit([&](auto member) { facts.*member = static_cast<std::decay_t<decltype(facts.*member)>>(value); },
               field.member);
  }

  void read_grid(DeviceFacts& facts) const {
    if (facts.max_grid_x == 0) facts.max_grid_x = kMaxInt, facts.max_grid_y = facts.max_grid_z = 65535;
    if (!json_.contains("max_grid_blocks")) return;
    const Json& grid = json_["max_grid_blocks"];
    const auto is_limit = [](const Json& each) {
      return each.is_number_integer() && each.get<std::int64_t>() >= 1 && each.get<std::int64_t>() <= kMaxInt;
    };
    if (!grid.is_array() || grid.size() != 3 || !std::all_of(grid.begin(), grid.end(), is_limit))
      refuse(fmt::format("has max_grid_blocks = {}; three numbers from 1 to {} are possible", grid.dump(), kMaxInt));
    facts.max_grid_x = grid[0], facts.max_grid_y = grid[1], facts.max_grid_z = grid[2];
  }

  void check(const DeviceFacts& facts) const {
    std::string_view number = facts.architecture;
    if (number.starts_with("sm_")) number.remove_prefix(3);
    if (number.ends_with('a') || number.ends_with('f')) number.remove_suffix(1);
    if (number != fmt::format("{}", facts.compute_capability))
      refuse(fmt::format("has the architecture '{}' with compute_capability = {}; sm_{} belongs to that",
                         facts.architecture, facts.compute_capability, facts.compute_capability));
    for (const Order& order : kOrders) {
      const std::int64_t smaller = value_of(facts, order.smaller), larger = value_of(facts, order.larger);
      if (smaller > larger)
        refuse(fmt::format("has {} = {} above {} = {}", order.smaller, smaller, order.larger, larger));
    }
    if (facts.max_threads_per_sm % facts.warp_threads != 0)
      refuse(fmt::format("has max_threads_per_sm = {}, which is no multiple of a warp", facts.max_threads_per_sm));
    if (facts.has_dependent_launch && !has_dependent_launch(facts.compute_capability))
      refuse(fmt::format("has has_dependent_launch with compute_capability = {}; that begins with 90",
                         facts.compute_capability));
    if (facts.max_cluster_blocks > 0 && max_cluster_blocks(facts.compute_capability) == 0)
      refuse(fmt::format("has max_cluster_blocks = {} with compute_capability = {}; clusters begin with 90",
                         facts.max_cluster_blocks, facts.compute_capability));
  }

  const Json& json_;
  std::string file_;
};

}  // namespace

Json facts_json(const DeviceFacts& facts) {
  Json json{{"kind", facts.kind}, {"name", facts.name}, {"architecture", facts.architecture}};
  for (const NumberField& field : kNumbers) json[std::string(field.name)] = value_of(facts, field);
  json["max_grid_blocks"] = {facts.max_grid_x, facts.max_grid_y, facts.max_grid_z};
  json["has_dependent_launch"] = facts.has_dependent_launch;
  json["driver"] = facts.driver;
  return json;
}

Json listed_json(const ListedDevice& device) {
  const auto or_null = [](double value) { return value > 0 ? Json(value) : nullptr; };
  const DeviceLimits& measured = device.measured;
  Json json{{"device", device.name}};
  json.update(facts_json(device.facts));
  json["peak_bandwidth_gbps"] = peak_bandwidth_gbps(device.facts);
  json["measured"] = {{"read_gbps", or_null(measured.read_gbps)},
                      {"stream_launch_us", or_null(measured.stream_launch_us)},
                      {"graph_launch_us", or_null(measured.graph_launch_us)},
                      {"enqueue_us", or_null(measured.enqueue_us)}};
  json["tuning_identity"] = tuning_identity(device.facts);
  json["compiler"] = device.compiler;
  json["source"] = device.source;
  return json;
}

DeviceFacts read_facts(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file)
    throw Error(ErrorCode::io_failed, fmt::format("'{}' cannot be read: {}", printable(path.string()),
                                                  std::generic_category().message(errno)));
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    throw CommandError(ExitCode::usage, fmt::format("'{}' is no JSON", printable(path.string())));
  return FactsReader(json, path.string()).read();
}

std::vector<std::string> gpu_words() {
  std::vector<std::string> words{"auto"};
  for (const KnownGpu& gpu : known_gpus()) words.emplace_back(gpu.name);
  return words;
}

DeviceFacts choose_gpu(const std::string& gpu) {
  if (gpu.ends_with(".json")) return read_facts(gpu);
  if (const KnownGpu* const known = find_known_gpu(gpu)) return known->facts;
  std::vector<std::string_view> names;
  for (const KnownGpu& known : known_gpus()) names.push_back(known.name);
  if (gpu.starts_with("cuda:") || (gpu == "auto" && cuda_unavailable_reason().empty()))
    return Device::open(gpu)->facts();
  const std::string what = gpu == "auto" ? "there is no CUDA device here; name a GPU with --gpu"
                                         : fmt::format("unknown GPU '{}'{}", printable(gpu), did_you_mean(gpu, names));
  throw CommandError(ExitCode::usage,
                     fmt::format("{}; known are {}, cuda:N, or a .json file of facts (hone devices --help)", what,
                                 fmt::join(names, ", ")));
}

}  // namespace hone::tuner
