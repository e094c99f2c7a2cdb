#include "tuner/cache/verify_command.h"

#include <fmt/core.h>

#include <hone/tune_arguments.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <ostream>
#include <utility>
#include <vector>

#include "cache/maintenance/verify.h"
#include "cache/store.h"
#include "tuner/cache/cache_output.h"
#include "tuner/context/cache_path.h"
#include "tuner/text/option_values.h"
#include "tuner/text/table.h"
#include "tuner/winners/misfit.h"

namespace hone::tuner {
namespace {

using cache::VerifyReport;

/// The winners that are not used; none are told of a file that is damaged.
std::vector<Misfit> misfits_in(const std::filesystem::path& path, const VerifyReport& report) {
  const bool is_readable = report.schema_version > 0 && report.intact();
  return is_readable ? misfits_of(cache::Store(path).winners()) : std::vector<Misfit>{};
}

void print_report(const std::filesystem::path& path, const VerifyReport& report, const std::vector<Misfit>& misfits,
                  const Context& context) {
  const std::string file = printable(path.string());
  const std::string looked_at =
      fmt::format("{}, {}, {} of {}, {}", count_text(report.winners, "winner"), count_text(report.binaries, "binary"),
                  count_text(report.trials, "trial"), count_text(report.tunings, "tuning"),
                  count_text(report.devices, "device"));
  if (!misfits.empty()) {
    for (const Misfit& misfit : misfits)
      context.out << printable(fmt::format("winner {} is not used: {}", misfit.id, misfit.why)) << '\n';
    context.err << fmt::format("hone: {} of {} in {} {} not used; how to tune again is said by: hone inspect ID "
                               "--cache {}\n",
                               misfits.size(), count_text(report.winners, "winner"), file,
                               misfits.size() == 1 ? "is" : "are", printable(shell_quoted(path.string())));
    return;
  }
  if (report.intact()) {
    context.out << fmt::format("{} is intact: {}\n", file, looked_at);
    return;
  }
  for (const cache::Finding& finding : report.findings) {
    context.out << fmt::format("{}: {}\n", printable(finding.where), printable(finding.what));
  }
  const auto listed = static_cast<std::int64_t>(report.findings.size());
  if (report.damaged > listed) context.out << fmt::format("… and {} more\n", report.damaged - listed);
  context.err << fmt::format("hone: {} is damaged: {} in {}; save the rest with: hone cache repair --cache {}\n", file,
                             count_text(report.damaged, "finding"), looked_at,
                             printable(shell_quoted(path.string())));
}

}  // namespace

void set_up_cache_verify(CLI::App& cache, CacheVerifyOptions& options) {
  CLI::App* sub = cache.add_subcommand("verify");
  file_name(sub->add_option("--cache", options.cache)->take_last());
  sub->add_flag("--json", options.json)->disable_flag_override();
}

ExitCode run_cache_verify(const CacheVerifyOptions& options, const Context& context) {
  const std::filesystem::path path = cache_file(options.cache, context);
  const VerifyReport report = cache::verify(path);
  const std::vector<Misfit> misfits = misfits_in(path, report);
  if (options.json) {
    nlohmann::ordered_json findings = nlohmann::ordered_json::array();
    for (const cache::Finding& finding : report.findings) {
      findings.push_back({{"where", finding.where}, {"what", finding.what}});
    }
    nlohmann::ordered_json unused = nlohmann::ordered_json::array();
    for (const Misfit& misfit : misfits) unused.push_back({{"winner", misfit.id}, {"what", misfit.why}});
    print_json({{"cache", path.string()},
                {"intact", report.intact()},
                {"schema_version", report.schema_version},
                {"devices", report.devices},
                {"winners", report.winners},
                {"winners_without_code", report.without_code},
                {"binaries", report.binaries},
                {"tunings", report.tunings},
                {"trials", report.trials},
                {"damaged", report.damaged},
                {"findings", std::move(findings)},
                {"misfits", std::move(unused)}},
               context);
  } else if (report.schema_version == 0) {
    say_nothing_there(path, context);
  } else {
    print_report(path, report, misfits, context);
  }
  return report.intact() && misfits.empty() ? ExitCode::ok : ExitCode::failed;
}

}  // namespace hone::tuner
