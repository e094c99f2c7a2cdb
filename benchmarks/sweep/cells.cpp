#include "benchmarks/sweep/cells.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hone/error.h>
#include <hone/tuned_reduce.h>

namespace hone::benchmarks {
namespace {

/// Every other one off the powers of two, and odd, between the centres of two size classes.
std::int64_t default_size(int exponent) {
  const std::int64_t power = std::int64_t{1} << exponent;
  return exponent % 4 == 0 ? power : power + power / 5 + 1;
}

constexpr std::string_view kHeadlineOperation = "sum", kHeadlineDtype = "f32";
constexpr int kHeadlineExponents[] = {8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
constexpr int kExponents[] = {12, 18, 22, 28};
constexpr int kMisalignedExponents[] = {22, 28};

[[noreturn]] void refuse_sizes(std::string_view text) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("'{}' is no list of sizes; write 1000, 2^20, 2^20+1 or 2^8..2^30/2, with commas between", text));
}

std::int64_t parse_number(std::string_view text, std::string_view whole) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) refuse_sizes(whole);
  return value;
}

/// K of "2^K".
int parse_exponent(std::string_view text, std::string_view whole) {
  if (!text.starts_with("2^")) refuse_sizes(whole);
  const std::int64_t exponent = parse_number(text.substr(2), whole);
  if (exponent < 0 || exponent > 40) refuse_sizes(whole);
  return static_cast<int>(exponent);
}

void add_sizes(std::string_view text, std::string_view whole, std::vector<std::int64_t>& sizes) {
  if (const std::size_t dots = text.find(".."); dots != std::string_view::npos) {
    std::string_view last = text.substr(dots + 2);
    std::int64_t step = 1;
    if (const std::size_t slash = last.find('/'); slash != std::string_view::npos) {
      step = parse_number(last.substr(slash + 1), whole);
      last = last.substr(0, slash);
    }
    const int to = parse_exponent(last, whole);
    if (step < 1) refuse_sizes(whole);
    for (std::int64_t exponent = parse_exponent(text.substr(0, dots), whole); exponent <= to; exponent += step)
      sizes.push_back(std::int64_t{1} << exponent);
    return;
  }
  if (!text.starts_with("2^")) {
    sizes.push_back(parse_number(text, whole));
  } else {
    const std::size_t sign = text.find_first_of("+-");
    const std::int64_t more = sign == std::string_view::npos ? 0 : parse_number(text.substr(sign + 1), whole);
    sizes.push_back((std::int64_t{1} << parse_exponent(text.substr(0, sign), whole)) +
                    (sign != std::string_view::npos && text[sign] == '-' ? -more : more));
  }
  if (sizes.back() < 1) refuse_sizes(whole);
}

bool is_selected(const std::vector<std::string>& names, std::string_view name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

/// Every name that was asked for must exist.
template <class Known>
void require_known(const std::vector<std::string>& names, const Known& known, std::string_view what) {
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(ErrorCode::not_found,
                  fmt::format("there is no {} '{}'; there are: {}", what, name, fmt::join(known, ", ")));
}

void add_pair(const CellSelection& selection, bool is_headline, Cell cell, std::vector<Cell>& cells) {
  const auto add = [&](std::int64_t n, bool misaligned) {
    cell.n = n;
    cell.offsets = selection.offsets;
    if (!misaligned) std::erase_if(cell.offsets, [](int offset) { return offset != 0; });
    for (const Setting& setting : selection.settings) {
      cell.setting = setting;
      if (!cell.offsets.empty()) cells.push_back(cell);
    }
  };
  if (!selection.sizes.empty()) {
    for (std::int64_t n : selection.sizes) add(n, true);
  } else if (is_headline) {
    for (int exponent : kHeadlineExponents) add(default_size(exponent), true);
  } else {
    for (int exponent : kExponents)
      add(default_size(exponent),
          std::find(std::begin(kMisalignedExponents), std::end(kMisalignedExponents), exponent) !=
              std::end(kMisalignedExponents));
  }
}

}  // namespace

std::vector<std::int64_t> parse_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    add_sizes(rest.substr(0, comma), text, sizes);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return sizes;
}

std::vector<std::array<std::int64_t, 2>> parse_shapes(std::string_view text) {
  std::vector<std::array<std::int64_t, 2>> shapes;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view shape = rest.substr(0, comma);
    const std::size_t cross = shape.find('x');
    const std::vector<std::int64_t> rows = parse_sizes(shape.substr(0, cross));
    const std::vector<std::int64_t> columns =
        cross == shape.npos ? std::vector<std::int64_t>{} : parse_sizes(shape.substr(cross + 1));
    if (rows.size() != 1 || columns.size() != 1 || rows[0] < 1 || columns[0] < 1)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' is no list of shapes; write 1024x64,2^20+1x2^6", text));
    shapes.push_back({rows[0], columns[0]});
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return shapes;
}

std::vector<Cell> choose_cells(const KernelFamily& family, const CellSelection& selection) {
  std::vector<std::string_view> dtype_names;
  for (const DTypeInfo& dtype : kDTypes) dtype_names.push_back(dtype.name);
  require_known(selection.operations, family.operations(), "reduction");
  require_known(selection.dtypes, dtype_names, "dtype");

  std::vector<Cell> cells;
  for (const DTypeInfo& dtype : kDTypes) {
    if (!is_selected(selection.dtypes, dtype.name)) continue;
    for (std::size_t operation = 0; operation < family.operations().size(); ++operation) {
      const std::string_view name = family.operations()[operation];
      const Cell cell{.operation = static_cast<std::uint8_t>(operation), .dtype = dtype.dtype, .n = 1,
                      .numerics = selection.numerics};
      const Problem problem = problem_of(cell, 0);
      if (!is_selected(selection.operations, name) || !refusal_of(problem).empty()) continue;
      if (problem.numerics != selection.numerics) continue;  // both are the same
      add_pair(selection, name == kHeadlineOperation && dtype.name == kHeadlineDtype, cell, cells);
    }
  }
  // The most important cells come first, since a run may end before everything is measured.
  std::stable_partition(cells.begin(), cells.end(), [&](const Cell& cell) {
    return family.operations()[cell.operation] == kHeadlineOperation && info(cell.dtype).name == kHeadlineDtype;
  });
  return cells;
}

Problem problem_of(const Cell& cell, int offset) {
  const auto offset_bytes = static_cast<std::uint32_t>(static_cast<std::size_t>(offset) * info(cell.dtype).size_bytes);
  const std::uint32_t alignment = offset == 0 ? kMaxAlignment : std::uint32_t{1} << std::countr_zero(offset_bytes);
  Problem problem = reduce_problem(
      {.op = static_cast<ReduceOp>(cell.operation), .dtype = cell.dtype, .numerics = cell.numerics}, cell.n,
      std::min(alignment, kMaxAlignment));
  problem.launch_context = cell.setting.context;
  return problem;
}

int input_count(const Problem& problem) {
  const std::vector<BufferSpec> buffers = problem.family->buffers(problem);
  return static_cast<int>(
      std::count_if(buffers.begin(), buffers.end(), [](const BufferSpec& b) { return b.is_input; }));
}

}  // namespace hone::benchmarks
