#include "tuner/devices/devices_command.h"

#include <fmt/core.h>

#include <hone/device.h>
#include <hone/error.h>
#include <hone/sdk/known_gpus.h>
#include <hone/session.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tuner/context/gpu_facts.h"
#include "tuner/context/json_output.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

/// A device of this machine. `failure` says why it could not be opened; then there are no facts.
struct PresentDevice : ListedDevice {
  std::string failure;
};

std::vector<PresentDevice> list_devices(const SessionOptions& options) {
  std::vector<PresentDevice> devices;
  for (const std::string& name : device_names()) {
    PresentDevice& listed = devices.emplace_back();
    listed.name = name;
    try {
      const std::shared_ptr<Device> device = Device::open(name);
      listed.facts = device->facts();
      listed.compiler = device->compiler_identity();
      listed.measured = Session(device, options).stored_limits();
    } catch (const Error& error) {
      listed.failure = error.what();
    }
  }
  return devices;
}

std::string count_or_unknown(std::int64_t value) {
  return value > 0 ? fmt::format("{}", value) : std::string(kUnknown);
}

std::string bytes_or_unknown(std::int64_t bytes) { return bytes > 0 ? format_bytes(bytes) : std::string(kUnknown); }

std::string capability_text(int capability) {
  return capability > 0 ? fmt::format("{}.{}", capability / 10, capability % 10) : std::string(kUnknown);
}

std::string clock_or_unknown(int khz) {
  return khz > 0 ? fmt::format("{} MHz", khz / 1000) : std::string(kUnknown);
}

std::string grid_text(const ListedDevice& device) {
  const DeviceFacts& facts = device.facts;
  if (facts.max_grid_x == 0) return std::string(kUnknown);
  return fmt::format("{} × {} × {}", facts.max_grid_x, facts.max_grid_y, facts.max_grid_z);
}

std::string us_or_unknown(double us) { return us > 0 ? us_text(us) + " µs" : std::string(kUnknown); }

std::string gbps_or_unknown(double gbps) { return gbps > 0 ? fmt::format("{:.0f} GB/s", gbps) : std::string(kUnknown); }

struct FactRow {
  std::string_view label;
  std::string (*text)(const ListedDevice&);
};

// One row for each fact, one column for each device: facts outnumber devices.
constexpr std::array<FactRow, 26> kFactRows{{
    {"name", [](const ListedDevice& d) { return d.facts.name; }},
    {"compiles for", [](const ListedDevice& d) { return d.facts.architecture; }},
    {"compute capability", [](const ListedDevice& d) { return capability_text(d.facts.compute_capability); }},
    {"SMs", [](const ListedDevice& d) { return count_or_unknown(d.facts.sm_count); }},
    {"threads per warp", [](const ListedDevice& d) { return count_or_unknown(d.facts.warp_threads); }},
    {"threads per block", [](const ListedDevice& d) { return count_or_unknown(d.facts.max_threads_per_block); }},
    {"threads per SM", [](const ListedDevice& d) { return count_or_unknown(d.facts.max_threads_per_sm); }},
    {"blocks per SM", [](const ListedDevice& d) { return count_or_unknown(d.facts.max_blocks_per_sm); }},
    {"registers per SM", [](const ListedDevice& d) { return count_or_unknown(d.facts.registers_per_sm); }},
    {"registers per block", [](const ListedDevice& d) { return count_or_unknown(d.facts.registers_per_block); }},
    {"shared memory per SM", [](const ListedDevice& d) { return bytes_or_unknown(d.facts.smem_bytes_per_sm); }},
    {"shared memory per block", [](const ListedDevice& d) { return bytes_or_unknown(d.facts.smem_bytes_per_block); }},
    {"  with opt-in", [](const ListedDevice& d) { return bytes_or_unknown(d.facts.smem_bytes_per_block_optin); }},
    {"blocks per launch", grid_text},
    {"SM clock", [](const ListedDevice& d) { return clock_or_unknown(d.facts.sm_clock_khz); }},
    {"L2 cache", [](const ListedDevice& d) { return bytes_or_unknown(d.facts.l2_bytes); }},
    {"memory", [](const ListedDevice& d) { return bytes_or_unknown(d.facts.memory_bytes); }},
    {"memory clock", [](const ListedDevice& d) { return clock_or_unknown(d.facts.memory_clock_khz); }},
    {"memory bus",
     [](const ListedDevice& d) {
       return d.facts.memory_bus_bits > 0 ? fmt::format("{} bits", d.facts.memory_bus_bits) : std::string(kUnknown);
     }},
    {"implied bandwidth", [](const ListedDevice& d) { return gbps_or_unknown(peak_bandwidth_gbps(d.facts)); }},
    {"measured bandwidth", [](const ListedDevice& d) { return gbps_or_unknown(d.measured.read_gbps); }},
    {"launch in a stream", [](const ListedDevice& d) { return us_or_unknown(d.measured.stream_launch_us); }},
    {"launch in a graph", [](const ListedDevice& d) { return us_or_unknown(d.measured.graph_launch_us); }},
    {"  enqueued by the host in", [](const ListedDevice& d) { return us_or_unknown(d.measured.enqueue_us); }},
    {"driver", [](const ListedDevice& d) { return d.facts.driver.empty() ? std::string(kUnknown) : d.facts.driver; }},
    {"compiler", [](const ListedDevice& d) { return d.compiler.empty() ? std::string("none") : d.compiler; }},
}};

void print_table(const std::vector<PresentDevice>& devices, std::ostream& out) {
  std::vector<Column> columns{{"device"}};
  std::vector<const ListedDevice*> usable;
  for (const PresentDevice& device : devices) {
    if (!device.failure.empty()) continue;
    if (!usable.empty() && usable.back()->facts == device.facts && usable.back()->compiler == device.compiler) {
      // A row of equal GPUs is one column.
      columns.back().header = usable.back()->name + " … " + device.name;
      continue;
    }
    usable.push_back(&device);
    columns.push_back({device.name});
  }
  Table table(std::move(columns));
  for (const FactRow& fact : kFactRows) {
    std::vector<std::string> cells{std::string(fact.label)};
    for (const ListedDevice* device : usable) cells.push_back(fact.text(*device));
    table.add_row(std::move(cells));
  }
  table.print(out);
  for (const PresentDevice& device : devices) {
    if (!device.failure.empty()) out << "\n" << device.name << ": cannot be opened: " << device.failure << "\n";
  }
}

nlohmann::ordered_json device_json(const PresentDevice& device) {
  if (device.failure.empty()) return listed_json(device);
  return {{"device", device.name}, {"failure", device.failure}};
}

/// The GPUs that --gpu of other commands takes by name, present or not.
void print_known(const DevicesOptions& options, const Context& context) {
  Table table({{"--gpu"},
               {"name"},
               {"compiles for"},
               {"SMs", Align::right},
               {"L2 cache", Align::right, 2},
               {"GB/s", Align::right},
               {"facts from", Align::left, 1}});
  nlohmann::ordered_json json{{"gpus", nlohmann::ordered_json::array()}};
  for (const KnownGpu& gpu : known_gpus()) {
    const DeviceFacts& facts = gpu.facts;
    table.add_row({std::string(gpu.name), facts.name, facts.architecture, fmt::format("{}", facts.sm_count),
                   format_bytes(facts.l2_bytes), fmt::format("{:.0f}", peak_bandwidth_gbps(facts)),
                   std::string(gpu.source)});
    json["gpus"].push_back(
        listed_json({.name = std::string(gpu.name), .facts = facts, .source = std::string(gpu.source)}));
  }
  if (options.json) print_json(json, context);
  else table.print(context.out, context.environment.out_columns());
}

}  // namespace

void set_up_devices(CLI::App& app, DevicesOptions& options) {
  CLI::App* sub = app.add_subcommand("devices");
  sub->add_flag("--known", options.known)->disable_flag_override();
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_devices(const DevicesOptions& options, const Context& context) {
  if (options.known) {
    print_known(options, context);
    return ExitCode::ok;
  }
  SessionOptions session = context.environment.session_options();
  session.report_cache_failure = nullptr;
  session.stats_folder.clear();
  const std::vector<PresentDevice> devices = list_devices(session);
  const std::string reason = cuda_unavailable_reason();
  if (options.json) {
    nlohmann::ordered_json json{{"devices", nlohmann::ordered_json::array()}};
    for (const PresentDevice& device : devices) json["devices"].push_back(device_json(device));
    json["cuda_unavailable_reason"] = reason;
    print_json(json, context);
    return ExitCode::ok;
  }
  print_table(devices, context.out);
  if (!reason.empty()) context.out << "\nNo CUDA device: " << reason << "\n";
  return ExitCode::ok;
}

}  // namespace hone::tuner
