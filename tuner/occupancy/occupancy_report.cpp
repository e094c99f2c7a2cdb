#include "tuner/occupancy/occupancy_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <ostream>
#include <utility>

#include "tuner/context/gpu_facts.h"
#include "tuner/text/command_error.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<int, 12> kUsualBlocks{32, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024};

/// ptxas gives a thread no more.
constexpr int kMostRegisters = 255;

RegisterStep with_registers(const OccupancyQuestion& question, int registers) {
  Resources resources = question.resources;
  resources.registers = registers;
  return {registers, resident_blocks(question.facts, resources, question.block_threads, question.dynamic_smem_bytes)};
}

void compare_registers(OccupancyReport& report) {
  const OccupancyQuestion& question = report.question;
  const int registers = question.resources.registers, blocks = report.limits.resident_blocks();
  if (registers == 0 || question.facts.registers_per_sm == 0) return;
  if (registers > 1) report.one_less = with_registers(question, registers - 1);
  if (registers < kMostRegisters) report.one_more = with_registers(question, registers + 1);
  for (int fewer = registers - 1; fewer > 0 && !report.next_more_blocks; --fewer)
    if (const RegisterStep step = with_registers(question, fewer); step.resident_blocks > blocks)
      report.next_more_blocks = step;
  for (int more = registers + 1; more <= kMostRegisters && !report.next_fewer_blocks; ++more)
    if (const RegisterStep step = with_registers(question, more); step.resident_blocks < blocks)
      report.next_fewer_blocks = step;
}

std::vector<BlockRow> block_rows(const OccupancyReport& report) {
  const OccupancyQuestion& question = report.question;
  std::vector<int> sizes(kUsualBlocks.begin(), kUsualBlocks.end());
  for (const int size : {question.block_threads, report.potential.threads})
    if (size > 0 && std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  std::sort(sizes.begin(), sizes.end());
  std::vector<BlockRow> rows;
  for (const int size : sizes)
    rows.push_back({size, occupancy_limits(question.facts, question.resources, size, question.dynamic_smem_bytes)});
  return rows;
}

std::string blocks_of(int blocks) {
  return blocks == OccupancyLimits::kUnlimited ? "any number" : fmt::format("{}", blocks);
}

std::string registers_of(const OccupancyQuestion& question) {
  const int registers = question.resources.registers;
  return registers == 0 ? "any number of registers" : count_text(registers, "register");
}

/// "threads", "threads and registers".
std::string limiting_text(const OccupancyLimits& limits) {
  std::string text;
  for (std::size_t i = 0; i < limits.by.size(); ++i)
    if (limits.is_limited_by(static_cast<SmResource>(i)))
      text.append(text.empty() ? "" : " and ").append(kSmResourceNames[i]);
  return text;
}

std::string room_text(const OccupancyLimits& limits) {
  std::string text;
  for (std::size_t i = 0; i < limits.by.size(); ++i)
    text += fmt::format("{}{} by {}", i == 0 ? "" : ", ", blocks_of(limits.by[i]), kSmResourceNames[i]);
  return text;
}

std::string registers_text(const OccupancyReport& report) {
  const auto step_text = [](const std::optional<RegisterStep>& step, std::string_view words) {
    return step ? fmt::format("{} ({}): {}", words, step->registers, count_text(step->resident_blocks, "block"))
                : std::string();
  };
  std::string text = step_text(report.one_less, "one less");
  text += (text.empty() || !report.one_more ? "" : "; ") + step_text(report.one_more, "one more");
  if (report.next_more_blocks)
    text += fmt::format("; {} fit with {} or fewer", count_text(report.next_more_blocks->resident_blocks, "block"),
                        report.next_more_blocks->registers);
  if (report.next_fewer_blocks)
    text += fmt::format("; {} with {} or more", report.next_fewer_blocks->resident_blocks,
                        report.next_fewer_blocks->registers);
  return text;
}

std::string waves_text(const OccupancyReport& report) {
  const Waves& waves = report.waves;
  if (waves.slots == 0) return "none: no block is resident";
  std::string text = fmt::format("{} in {} of {}", count_text(report.question.grid_blocks, "block"),
                                 count_text(waves.count(), "wave"), waves.slots);
  if (waves.last_blocks > 0)
    text += fmt::format("; the last has {}, {} of all slots stay idle", count_text(waves.last_blocks, "block"),
                        percent_text(waves.waste()));
  else
    text += "; all are full";
  return text;
}

std::string in_flight_text(const OccupancyReport& report) {
  const std::int64_t needed = report.bytes_in_flight_needed_per_sm, has = report.bytes_in_flight_per_sm;
  const int threads = report.resident_threads();
  std::string text;
  if (has >= needed)
    text = fmt::format("{} an SM, which is enough; ", format_bytes(has));
  else if (has > 0)
    text = fmt::format("{} an SM, {} of what is needed; ", format_bytes(has), share_text(double(has), double(needed)));
  text += fmt::format("Little's law asks for {} an SM", format_bytes(needed));
  if (threads > 0) text += fmt::format(", {:.3g} bytes a resident thread", double(needed) / threads);
  return text;
}

void print_blocks(const OccupancyReport& report, const Context& context) {
  Table table({{"block", Align::right},
               {"resident", Align::right},
               {"threads", Align::right},
               {"occupancy", Align::right},
               {"limited by"},
               {""}});
  for (const BlockRow& row : report.blocks) {
    const int resident = row.limits.resident_blocks();
    std::string mark;
    if (row.threads == report.question.block_threads) mark = "asked";
    if (row.threads == report.potential.threads)
      mark += mark.empty() ? "cudaOccupancyMaxPotentialBlockSize()" : ", cudaOccupancyMaxPotentialBlockSize()";
    table.add_row({fmt::format("{}", row.threads), fmt::format("{}", resident),
                   fmt::format("{}", row.resident_threads()),
                   percent_text(double(row.resident_threads()) / report.question.facts.max_threads_per_sm),
                   limiting_text(row.limits), mark});
  }
  table.print(context.out, context.environment.out_columns(), 2);
}

Json json_of(const std::optional<RegisterStep>& step) {
  if (!step) return nullptr;
  return {{"registers", step->registers}, {"resident_blocks", step->resident_blocks}};
}

Json json_of(const OccupancyLimits& limits) {
  const auto number = [&](SmResource resource) {
    return limits[resource] == OccupancyLimits::kUnlimited ? Json(nullptr) : Json(limits[resource]);
  };
  return {{"threads", number(SmResource::threads)},
          {"blocks", number(SmResource::blocks)},
          {"registers", number(SmResource::registers)},
          {"shared_memory", number(SmResource::smem)}};
}

Json json_of(const Waves& waves, std::int64_t grid_blocks) {
  if (grid_blocks == 0) return nullptr;
  return {{"grid_blocks", grid_blocks},       {"slots", waves.slots},   {"whole", waves.whole},
          {"last_blocks", waves.last_blocks}, {"waves", waves.count()}, {"idle_share", waves.waste()}};
}

}  // namespace

OccupancyReport report_occupancy(OccupancyQuestion question) {
  OccupancyReport report;
  report.potential = max_potential_block(question.facts, question.resources, question.dynamic_smem_bytes);
  if (question.block_threads == 0) question.block_threads = report.potential.threads;
  if (question.block_threads == 0)
    throw CommandError(
        ExitCode::usage,
        fmt::format("no block fits on {}: {} a thread and {} + {} bytes of shared memory a "
                    "block; an SM has {} and {}",
                    printable(question.facts.name), registers_of(question), question.resources.static_smem_bytes,
                    question.dynamic_smem_bytes, question.facts.registers_per_sm, question.facts.smem_bytes_per_sm));
  report.limits =
      occupancy_limits(question.facts, question.resources, question.block_threads, question.dynamic_smem_bytes);
  report.waves = waves_of(question.facts, report.limits.resident_blocks(), question.grid_blocks);
  report.bytes_in_flight_needed_per_sm = bytes_in_flight_needed(question.facts);
  report.question = std::move(question);
  const std::int64_t most_blocks = report.limits.resident_blocks();
  const std::int64_t grid = report.question.grid_blocks, sms = report.question.facts.sm_count;
  const std::int64_t blocks_of_sm = grid > 0 ? std::min(most_blocks, (grid + sms - 1) / sms) : most_blocks;
  report.bytes_in_flight_per_sm = blocks_of_sm * report.question.bytes_in_flight_per_block;
  compare_registers(report);
  report.blocks = block_rows(report);
  return report;
}

void print_report(const OccupancyReport& report, const Context& context) {
  const OccupancyQuestion& question = report.question;
  const DeviceFacts& facts = question.facts;
  std::ostream& out = context.out;
  out << printable(fmt::format("{} ({}): {} SMs, each with {} threads, {} blocks, {} registers and {} of shared memory",
                               facts.name, facts.architecture, facts.sm_count, facts.max_threads_per_sm,
                               facts.max_blocks_per_sm, facts.registers_per_sm, format_bytes(facts.smem_bytes_per_sm)))
      << '\n';
  if (!question.what.empty()) out << printable(question.what) << '\n';
  out << fmt::format("\nBlocks of {} threads, {} a thread, {} + {} bytes of shared memory\n",
                     question.block_threads, registers_of(question), question.resources.static_smem_bytes,
                     question.dynamic_smem_bytes);
  const int resident = report.limits.resident_blocks();
  out << fmt::format("  resident   {} an SM, {} of {} threads ({}); limited by {}\n", count_text(resident, "block"),
                     report.resident_threads(), facts.max_threads_per_sm,
                     percent_text(double(report.resident_threads()) / facts.max_threads_per_sm),
                     limiting_text(report.limits));
  out << fmt::format("  room for   {}\n", room_text(report.limits));
  if (const std::string text = registers_text(report); !text.empty()) out << fmt::format("  registers  {}\n", text);
  if (question.resources.local_bytes > 0)
    out << fmt::format("  local      {} bytes a thread: spilled registers, or arrays indexed at run time\n",
                       question.resources.local_bytes);
  if (question.grid_blocks > 0) out << fmt::format("  waves      {}\n", waves_text(report));
  if (report.bytes_in_flight_needed_per_sm > 0) out << fmt::format("  in flight  {}\n", in_flight_text(report));
  out << '\n';
  print_blocks(report, context);
}

Json to_json(const OccupancyReport& report) {
  const OccupancyQuestion& question = report.question;
  Json json{{"gpu", facts_json(question.facts)},
            {"what", question.what},
            {"block_threads", question.block_threads},
            {"registers", question.resources.registers > 0 ? Json(question.resources.registers) : Json(nullptr)},
            {"static_smem_bytes", question.resources.static_smem_bytes},
            {"dynamic_smem_bytes", question.dynamic_smem_bytes},
            {"local_bytes", question.resources.local_bytes},
            {"resident_blocks", report.limits.resident_blocks()},
            {"occupancy", double(report.resident_threads()) / question.facts.max_threads_per_sm},
            {"limited_by", limiting_text(report.limits)},
            {"room_for", json_of(report.limits)},
            {"one_register_less", json_of(report.one_less)},
            {"one_register_more", json_of(report.one_more)},
            {"more_blocks_with", json_of(report.next_more_blocks)},
            {"fewer_blocks_with", json_of(report.next_fewer_blocks)},
            {"waves", json_of(report.waves, question.grid_blocks)},
            {"bytes_in_flight_per_sm",
             report.bytes_in_flight_per_sm > 0 ? Json(report.bytes_in_flight_per_sm) : Json(nullptr)},
            {"bytes_in_flight_needed_per_sm", report.bytes_in_flight_needed_per_sm},
            {"max_potential_block",
             {{"threads", report.potential.threads},
              {"resident_blocks", report.potential.resident_blocks},
              {"grid_blocks", std::int64_t{report.potential.resident_blocks} * question.facts.sm_count}}},
            {"blocks", Json::array()}};
  for (const BlockRow& row : report.blocks)
    json["blocks"].push_back({{"threads", row.threads},
                              {"resident_blocks", row.limits.resident_blocks()},
                              {"limited_by", limiting_text(row.limits)}});
  return json;
}

}  // namespace hone::tuner
