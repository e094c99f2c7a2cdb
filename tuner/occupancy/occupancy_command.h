// hone occupancy: how many blocks of a kernel are resident on a GPU, present or not, and why not more.
#pragma once

#include <string>

#include "tuner/context/context.h"
#include "tuner/text/command_error.h"

namespace CLI {
class App;
}

namespace hone::tuner {

/// The options as typed; run_occupancy() gives them their meaning.
struct OccupancyOptions {
  std::string kernel;  ///< a .cu file, a winner's id, or "" for numbers
  std::string entry;
  std::string gpu = "auto";
  std::string block;
  std::string registers;
  std::string smem = "0";
  std::string grid;
  std::string size;
  std::string per_thread = "1";
  std::string in_flight;
  std::string sm_threads;
  std::string sm_blocks;
  std::string cache;
  bool json = false;
};

void set_up_occupancy(CLI::App& app, OccupancyOptions& options);
ExitCode run_occupancy(const OccupancyOptions& options, const Context& context);

}  // namespace hone::tuner
