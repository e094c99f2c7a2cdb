// RegretOptions: what the program tuner_regret was asked for.
#pragma once

#include <string>
#include <vector>

namespace hone::benchmarks {

struct RegretOptions {
  std::string hone;
  std::string device = "auto";
  std::vector<std::string> parts{"regret", "stability", "interrupted", "untuned", "time"};
  std::vector<std::string> ops{"sum", "argmax"};
  std::vector<std::string> dtypes{"f32", "f16", "i8"};
  int first_exponent = 10;
  int last_exponent = 28;
  int budget_ms = 2000;
  int exhaustive_ms = 30000;
  int compare_ms = 1000;
  int compare_processes = 3;
  int time_limit_s = 540;
  bool standard = false;
  std::vector<std::string> families;  ///< of the part "families"; none: all of them
  int problems = 2;                   ///< of each family
  bool is_small = false;              ///< problems that suit the host device
  int seconds = 240;
  std::string keep;
  std::string out;
  std::string judge;  ///< file of rivalries; "": this is the study
};

}  // namespace hone::benchmarks
