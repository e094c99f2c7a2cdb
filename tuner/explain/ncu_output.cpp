#include "tuner/explain/ncu_output.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <regex>
#include <utility>

namespace hone::tuner {
namespace {

using Row = std::vector<std::string>;

constexpr std::string_view kId = "ID", kKernel = "Kernel Name", kMetric = "Metric Name", kUnit = "Metric Unit",
                           kValue = "Metric Value";

/// The columns of the raw page that are no metrics have blanks or capitals in their names.
bool is_metric(std::string_view column) {
  return column.find("__") != std::string_view::npos && column.find(' ') == std::string_view::npos;
}

/// The cells of one line of quoted values; none where it is no such line, or one that is cut short.
Row cells_of(std::string_view line) {
  Row cells;
  for (std::size_t at = 0; at < line.size() && line[at] == '"'; ++at) {
    std::string& cell = cells.emplace_back();
    for (++at; at < line.size(); ++at) {
      if (line[at] == '"' && (at + 1 == line.size() || line[at + 1] != '"')) break;
      if (line[at] == '"') ++at;  // of two quotes
      cell += line[at];
    }
    if (at >= line.size()) return {};
    if (++at == line.size()) return cells;
    if (line[at] != ',') return {};
  }
  return {};
}

/// A number with separators of thousands: "1,234.5".
std::optional<double> number_in(std::string text) {
  std::erase(text, ',');
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::size_t column_of(const Row& names, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

/// Takes the rows of one table, line by line.
class Reader {
 public:
  void take(Row row) {
    if (!row.empty() && row.front() == kId) {
      names_ = std::move(row);
      units_.assign(names_.size(), "");
      kernel_ = column_of(names_, kKernel);
      last_id_.clear();
      return;
    }
    if (names_.empty() || row.size() != names_.size() || kernel_ == names_.size()) return;
    if (row.front().empty()) units_ = std::move(row);
    else if (column_of(names_, kMetric) < names_.size()) take_metric(row);
    else take_launch(row);
  }

  std::vector<CountedKernel> kernels() && { return std::move(kernels_); }

 private:
  void take_launch(const Row& row) {
    CountedKernel& kernel = kernels_.emplace_back(CountedKernel{row[kernel_], {}});
    for (std::size_t i = 0; i < row.size(); ++i)
      if (is_metric(names_[i])) kernel.counters.push_back({names_[i], units_[i], number_in(row[i])});
  }

  /// One row of the details page. Rows of rules have no metric.
  void take_metric(const Row& row) {
    const std::size_t unit = column_of(names_, kUnit), value = column_of(names_, kValue);
    const std::string& metric = row[column_of(names_, kMetric)];
    if (metric.empty() || std::max(unit, value) >= names_.size()) return;
    if (kernels_.empty() || row.front() != last_id_) kernels_.push_back({row[kernel_], {}});
    last_id_ = row.front();
    kernels_.back().counters.push_back({metric, row[unit], number_in(row[value])});
  }

  Row names_, units_;
  std::size_t kernel_ = 0;
  std::string last_id_;
  std::vector<CountedKernel> kernels_;
};

/// Calls visit(line) for each line, without its end.
template <class Visit>
void each_line(std::string_view text, Visit visit) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line);
  }
}

}  // namespace

std::optional<double> CountedKernel::value(std::string_view metric) const {
  using Unit = std::pair<std::string_view, double>;
  constexpr std::array<Unit, 12> kToBase{{{"us", 1e3},
                                          {"usecond", 1e3},
                                          {"ms", 1e6},
                                          {"msecond", 1e6},
                                          {"s", 1e9},
                                          {"second", 1e9},
                                          {"Kbyte", 1e3},
                                          {"KB", 1e3},
                                          {"Mbyte", 1e6},
                                          {"MB", 1e6},
                                          {"Gbyte", 1e9},
                                          {"GB", 1e9}}};
  const auto counter = std::ranges::find(counters, metric, &Counter::metric);
  if (counter == counters.end() || !counter->value) return std::nullopt;
  const auto unit = std::ranges::find(kToBase, counter->unit, &Unit::first);
  return *counter->value * (unit == kToBase.end() ? 1 : unit->second);
}

std::vector<CountedKernel> parse_ncu(std::string_view printed) {
  Reader reader;
  each_line(printed, [&](std::string_view line) { reader.take(cells_of(line)); });
  return std::move(reader).kernels();
}

std::vector<std::string> unknown_metrics(std::string_view printed) {
  static const std::regex kComplaint(R"(Failed to find metric (?:regex:\^?)?(\w+))");
  std::vector<std::string> names;
  each_line(printed, [&](std::string_view line) {
    std::cmatch found;
    if (std::regex_search(line.data(), line.data() + line.size(), found, kComplaint)) names.push_back(found[1]);
  });
  return names;
}

}  // namespace hone::tuner
