// parse_ncu(): the counters in what Nsight Compute prints. Pure: text in, figures out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone::tuner {

struct Counter {
  std::string metric;  ///< "dram__bytes_read.sum"
  std::string unit;    ///< as ncu spells it; "" where it spells none
  std::optional<double> value;  ///< nullopt: "n/a", or what is no number

  bool operator==(const Counter&) const = default;
};

/// One launch of a kernel.
struct CountedKernel {
  std::string name;
  std::vector<Counter> counters;  ///< in the order of the text

  /// The value of a metric in nanoseconds, bytes or whatever else its unit is; nullopt where it is not there.
  std::optional<double> value(std::string_view metric) const;

  bool operator==(const CountedKernel&) const = default;
};

/// Reads the output of `ncu --csv`: the raw page, which has a row for each launch below a row of names and one of
/// units, and the details page, which has a row for each metric. Whatever stands around the rows, such as "==PROF== …"
/// and what the program printed, is passed over; so are rows that are cut short.
std::vector<CountedKernel> parse_ncu(std::string_view printed);

/// The metrics of which a text says that ncu does not know them: "==ERROR== Failed to find metric …".
std::vector<std::string> unknown_metrics(std::string_view printed);

}  // namespace hone::tuner
