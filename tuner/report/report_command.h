// hone report: the winners of a cache, or of two, as one page for a browser.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"
#include "tuner/winners/winner_filter.h"

namespace CLI {
class App;
}

namespace hone::tuner {

struct ReportOptions {
  FilterOptions filter;
  std::string output = "report.html";
  std::string compare;
  std::string cache;
};

void set_up_report(CLI::App& app, ReportOptions& options);
ExitCode run_report(const ReportOptions& options, const Context& context);

}  // namespace hone::tuner
