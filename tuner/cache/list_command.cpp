#include "tuner/cache/list_command.h"

#include <fmt/core.h>

#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <ostream>
#include <string_view>
#include <tuple>
#include <vector>

#include "cache/store.h"
#include "tuner/cache/cache_output.h"
#include "tuner/context/cache_path.h"
#include "tuner/context/staleness.h"
#include "tuner/text/option_values.h"
#include "tuner/text/quantities.h"
#include "tuner/text/report.h"
#include "tuner/text/table.h"
#include "tuner/winners/device_filter.h"
#include "tuner/winners/winner_detail.h"

namespace hone::tuner {
namespace {

using cache::StoredWinner;
using Json = nlohmann::ordered_json;

/// The binaries of some winners, each counted once: winners share them.
struct Code {
  std::map<std::string_view, std::int64_t> bytes_of;  ///< by digest, which the winners own; evicted ones are left out

  void add(const StoredWinner& stored) {
    if (stored.binary_bytes > 0) bytes_of.emplace(stored.binary_digest, stored.binary_bytes);
  }

  std::int64_t bytes() const {
    return std::accumulate(bytes_of.begin(), bytes_of.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& binary) { return sum + binary.second; });
  }
};

/// Winners of one family that were found on one device with one toolchain.
struct Group {
  cache::KeyRecord key;
  Currency currency = Currency::unknown;
  std::int64_t winners = 0;
  std::int64_t tuned = 0;  ///< measured in their class
  std::int64_t lent = 0;   ///< measured at another size
  Code code = {};
  std::int64_t oldest = 0;
  std::int64_t newest = 0;
};

auto group_key(const cache::KeyRecord& key) {
  return std::tie(key.device.kind, key.device.name, key.device.architecture, key.device.identity, key.problem.family,
                  key.toolchain.compiler, key.toolchain.driver, key.toolchain.family_digest);
}

/// Sorts the winners, which the groups refer to.
std::vector<Group> group(std::vector<StoredWinner>& winners, const Context& context) {
  std::stable_sort(winners.begin(), winners.end(),
                   [](const StoredWinner& a, const StoredWinner& b) { return group_key(a.key) < group_key(b.key); });
  const std::vector<CurrentToolchain> current = context.environment.toolchains();
  std::vector<Group> groups;
  for (const StoredWinner& stored : winners) {
    if (groups.empty() || group_key(groups.back().key) != group_key(stored.key)) {
      groups.push_back({.key = stored.key,
                        .currency = currency(stored.key, current),
                        .oldest = stored.created_at,
                        .newest = stored.created_at});
    }
    Group& last = groups.back();
    ++last.winners;
    last.tuned += is_measured(stored) ? 1 : 0;
    last.lent += how_text(stored) == "lent" ? 1 : 0;
    last.code.add(stored);
    last.oldest = std::min(last.oldest, stored.created_at);
    last.newest = std::max(last.newest, stored.created_at);
  }
  return groups;
}

std::string_view currency_text(Currency currency) {
  if (currency == Currency::unknown) return kUnknown;
  return currency == Currency::stale ? "stale" : "current";
}

std::string age_text(const Group& group, std::int64_t now) {
  const std::string newest = format_age(now - group.newest), oldest = format_age(now - group.oldest);
  return newest == oldest ? newest : newest + " … " + oldest;
}

void print_table(const std::vector<Group>& groups, const Code& code, const Context& context) {
  Table table({{"device"},
               {"for", Align::left, 5},
               {"family"},
               {"compiler", Align::left, 3},
               {"driver", Align::left, 4},
               {"winners", Align::right},
               {"tuned", Align::right, 6},
               {"lent", Align::right, 6},
               {"code", Align::right, 2},
               {"state", Align::left, 1},
               {"age", Align::right, 7}});
  const std::int64_t now = context.environment.unix_time();
  for (const Group& group : groups) {
    const cache::KeyRecord& key = group.key;
    table.add_row({key.device.name, key.device.architecture, key.problem.family,
                   key.toolchain.compiler.empty() ? "none" : key.toolchain.compiler, key.toolchain.driver,
                   fmt::format("{}", group.winners), fmt::format("{}", group.tuned), fmt::format("{}", group.lent),
                   format_bytes(group.code.bytes()), std::string(currency_text(group.currency)), age_text(group, now)});
  }
  table.print(context.out, context.environment.out_columns());
  const auto binaries = static_cast<std::int64_t>(code.bytes_of.size());
  context.out << fmt::format("{}, {} in all\n", count_text(binaries, "binary"), format_bytes(code.bytes()));
}

Json to_json(const Group& group) {
  const cache::KeyRecord& key = group.key;
  Json state = nullptr;
  if (group.currency != Currency::unknown) state = group.currency == Currency::stale;
  return {{"device", key.device.name},
          {"kind", key.device.kind},
          {"architecture", key.device.architecture},
          {"identity", key.device.identity},
          {"family", key.problem.family},
          {"compiler", key.toolchain.compiler},
          {"driver", key.toolchain.driver},
          {"family_digest", key.toolchain.family_digest},
          {"winners", group.winners},
          {"tuned", group.tuned},
          {"lent", group.lent},
          {"binaries", group.code.bytes_of.size()},
          {"binary_bytes", group.code.bytes()},
          {"stale", state},
          {"oldest", group.oldest},
          {"newest", group.newest}};
}

}  // namespace

void set_up_cache_list(CLI::App& cache, CacheListOptions& options) {
  CLI::App* sub = cache.add_subcommand("list");
  file_name(sub->add_option("--cache", options.cache)->take_last());
  one_of(sub->add_option("--device", options.device)->take_last(), words_in(kDeviceKinds));
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_list(const CacheListOptions& options, const Context& context) {
  const std::filesystem::path path = cache_file(options.cache, context);
  std::uint64_t damaged = 0;
  std::vector<StoredWinner> winners = cache::Store(path).winners(&damaged);
  say_damaged(path, damaged, context);
  const std::size_t all = winners.size();
  std::erase_if(winners, [&](const StoredWinner& w) { return !matches_device(w.key.device, options.device); });
  if (all == 0)
    say_nothing_there(path, context, damaged);
  else if (winners.empty())
    context.err << fmt::format("hone: none of the {} in {} is for the device '{}'; list them with: hone cache list "
                               "--cache {}\n",
                               count_text(static_cast<std::int64_t>(all), "winner"), printable(path.string()),
                               printable(options.device), printable(shell_quoted(path.string())));
  const std::vector<Group> groups = winners.empty() ? std::vector<Group>{} : group(winners, context);
  Code code = {};
  for (const StoredWinner& stored : winners) code.add(stored);
  if (options.json) {
    Json json{{"cache", path.string()},
              {"binaries", code.bytes_of.size()},
              {"binary_bytes", code.bytes()},
              {"groups", Json::array()}};
    for (const Group& group : groups) json["groups"].push_back(to_json(group));
    print_json(json, context);
  } else if (!groups.empty()) {
    print_table(groups, code, context);
  }
  return all == 0 && damaged > 0 ? ExitCode::cache : ExitCode::ok;
}

}  // namespace hone::tuner
