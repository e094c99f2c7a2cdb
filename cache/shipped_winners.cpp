#include "cache/shipped_winners.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <concepts>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>

#include "cache/identity.h"

namespace hone::cache {
namespace {

/// Raise it with every change that an earlier reader would not understand.
constexpr std::string_view kFormat = "1";

constexpr std::string_view kBetween = " | ";

/// Far more than a `full` campaign leaves; a larger file is another one.
constexpr std::uintmax_t kMostFileBytes = std::uintmax_t{64} << 20;

// --- writing ---

std::string range_text(const RangeRecord& range) {
  return range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}..{}", range.first, range.last);
}

/// Joined by `x`; extents of 1 at the end are left out.
template <class Value, class Text>
std::string extents_text(const std::array<Value, 3>& extents, const Value& one, const Text& text) {
  std::size_t count = extents.size();
  while (count > 1 && extents[count - 1] == one) --count;
  std::string joined = text(extents[0]);
  for (std::size_t i = 1; i < count; ++i) joined.append("x").append(text(extents[i]));
  return joined;
}

std::string group_text(const ProblemRecord& problem, const std::string& digest) {
  return fmt::format("[{1}{0}{2}{0}{3}{0}{4}{0}{5}{0}{6}{0}{7}{0}{8}]", kBetween, problem.family, problem.operation,
                     problem.dtype, problem.numerics, problem.objective, problem.launch_context, problem.alignment,
                     digest);
}

std::string row_text(const StoredWinner& stored) {
  const WinnerRecord& winner = stored.winner;
  const CandidateRecord& candidate = winner.candidate;
  return fmt::format("{} at {} us={:.4g} blocks={} resident={} threads={}: {}",
                     extents_text(stored.key.problem.sizes, RangeRecord{1, 1}, range_text),
                     extents_text(winner.tuned_extents, std::int64_t{1}, [](auto n) { return fmt::format("{}", n); }),
                     winner.median_us, candidate.max_blocks, candidate.resident_blocks, candidate.block_threads,
                     candidate.policy);
}

/// Rows of one group stand side by side, then those that may be joined along the first extent.
auto order_of(const StoredWinner& stored) {
  const ProblemRecord& problem = stored.key.problem;
  const auto& [first, second, third] = problem.sizes;
  return std::tie(problem.family, problem.operation, problem.dtype, problem.numerics, problem.objective,
                  problem.launch_context, problem.alignment, stored.key.toolchain.family_digest, third.first,
                  third.last, second.first, second.last, first.first, first.last);
}

bool continues(const StoredWinner& a, const StoredWinner& b) {
  ProblemRecord same = b.key.problem;
  const std::int64_t first = same.sizes[0].first;
  same.sizes[0] = a.key.problem.sizes[0];
  const CandidateRecord& one = a.winner.candidate;
  const CandidateRecord& other = b.winner.candidate;
  return same == a.key.problem && a.key.toolchain.family_digest == b.key.toolchain.family_digest &&
         a.key.problem.sizes[0].last + 1 == first && one.policy == other.policy && one.max_blocks == other.max_blocks;
}

// --- reading ---

/// Takes one part of a line after the other. Once something was not there, nothing is.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}

  void skip(std::string_view text) {
    is_good_ = is_good_ && rest_.starts_with(text);
    if (is_good_) rest_.remove_prefix(text.size());
  }

  bool has(std::string_view text) {
    if (!is_good_ || !rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  template <class Number>
  Number number() {
    Number value{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    is_good_ = is_good_ && error == std::errc{} && value >= Number{};
    if (is_good_) rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return is_good_ ? value : Number{};
  }

  std::string_view until(std::string_view mark) {
    const std::string_view text = rest_.substr(0, rest_.find(mark));
    rest_.remove_prefix(text.size());
    return text;
  }

  std::string_view rest() const { return rest_; }
  bool is_good() const { return is_good_; }

 private:
  std::string_view rest_;
  bool is_good_ = true;
};

template <class Value, class Read>
std::array<Value, 3> read_extents(Cursor& cursor, const Value& one, const Read& read) {
  std::array<Value, 3> extents{one, one, one};
  extents[0] = read();
  for (std::size_t i = 1; i < extents.size() && cursor.has("x"); ++i) extents[i] = read();
  return extents;
}

std::string_view next_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// A key of what no loan bridges, and of operation and dtype.
template <class Record>
std::string base_of(const Record& record) {
  return fmt::format("{1}{0}{2}{0}{3}{0}{4}{0}{5}", kBetween, record.family, record.operation, record.dtype,
                     record.numerics, record.objective);
}

}  // namespace

std::string shipped_text(const ShippedHeader& header, const std::vector<StoredWinner>& winners) {
  std::vector<StoredWinner> rows;
  for (const StoredWinner& stored : winners)
    if (stored.winner.tuned && !is_shipped(stored.winner)) rows.push_back(stored);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const StoredWinner& a, const StoredWinner& b) { return order_of(a) < order_of(b); });
  std::string text = fmt::format("{}{}\nversion {}\ndate {}\n", kShippedBegin, kFormat, header.version, header.date);
  text += fmt::format("kind {}\nname {}\narchitecture {}\nidentity {}\n", header.device.kind, header.device.name,
                      header.device.architecture, header.device.identity);
  text += fmt::format("sm_count {}\nmax_threads_per_sm {}\npeak_bandwidth_gbps {}\ncompiler {}\ndriver {}\n",
                      header.device.sm_count, header.device.max_threads_per_sm, header.device.peak_bandwidth_gbps,
                      header.compiler, header.driver);
  std::string group;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    StoredWinner row = rows[i];
    while (i + 1 < rows.size() && continues(row, rows[i + 1])) {
      const RangeRecord sizes{row.key.problem.sizes[0].first, rows[++i].key.problem.sizes[0].last};
      row = rows[i];  // measured at the largest of them
      row.key.problem.sizes[0] = sizes;
    }
    std::string its_group = group_text(row.key.problem, row.key.toolchain.family_digest);
    if (its_group != group) text.append("\n").append(its_group).append("\n");
    group = std::move(its_group);
    text.append(row_text(row)).append("\n");
  }
  return text;
}

void ShippedWinners::fail(std::size_t line, std::string_view what, const Report& report) const {
  if (report) report(fmt::format("{}, line {}: {}; it is left out", path_.native(), line, what));
}

void ShippedWinners::read_header(std::string_view line, std::size_t number, const Report& report) {
  Cursor cursor(line);
  const std::string_view name = cursor.until(" ");
  cursor.has(" ");
  const std::array<std::pair<std::string_view, std::string*>, 8> texts{{{"version", &header_.version},
                                                                        {"date", &header_.date},
                                                                        {"kind", &header_.device.kind},
                                                                        {"name", &header_.device.name},
                                                                        {"architecture", &header_.device.architecture},
                                                                        {"identity", &header_.device.identity},
                                                                        {"compiler", &header_.compiler},
                                                                        {"driver", &header_.driver}}};
  for (const auto& [known, value] : texts)
    if (name == known) {
      *value = cursor.rest();
      return;
    }
  if (name == "sm_count") header_.device.sm_count = cursor.number<int>();
  else if (name == "max_threads_per_sm") header_.device.max_threads_per_sm = cursor.number<int>();
  else if (name == "peak_bandwidth_gbps") header_.device.peak_bandwidth_gbps = cursor.number<double>();
  else return fail(number, "no such field of shipped winners", report);
  if (!cursor.is_good()) fail(number, "it has no number", report);
}

/// Finds the groups, without parsing their rows.
void ShippedWinners::read(const Report& report) {
  if (std::exchange(is_read_, true)) return;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status)) return;
  const auto refuse = [&](std::string_view why) {
    if (report) report(fmt::format("{} has no usable shipped winners: {}", path_.native(), why));
  };
  if (!std::filesystem::is_regular_file(status)) return refuse("it is not a regular file");
  if (std::filesystem::file_size(path_, error) > kMostFileBytes) return refuse("it is too large");
  errno = 0;
  std::ifstream file(path_, std::ios::binary);
  text_.assign(std::istreambuf_iterator<char>(file), {});
  if (!file) return refuse(errno != 0 ? std::generic_category().message(errno) : "it cannot be read");
  std::string_view text = text_;
  if (next_line(text) != fmt::format("{}{}", kShippedBegin, kFormat))
    return refuse(fmt::format("it does not begin with '{}{}'", kShippedBegin, kFormat));
  Group* group = nullptr;
  bool is_header = true;
  for (std::size_t number = 2; !text.empty(); ++number) {
    const char* const start = text.data();
    const std::string_view line = next_line(text);
    if (line.empty() || line.starts_with('#')) continue;
    if (!line.starts_with('[')) {
      if (is_header) read_header(line, number, report);
      else if (group)
        group->text = {group->text.data(), static_cast<std::size_t>(start + line.size() - group->text.data())};
      continue;
    }
    is_header = false;
    group = nullptr;  // rows of a damaged group are left out with it
    Group next{.problem = {}, .family_digest = {}, .first_line = number + 1, .text = {text.data(), 0}};
    Cursor cursor(line.substr(1));
    ProblemRecord& problem = next.problem;
    for (std::string* field : {&problem.family, &problem.operation, &problem.dtype, &problem.numerics,
                               &problem.objective, &problem.launch_context}) {
      *field = cursor.until(kBetween);
      cursor.skip(kBetween);
    }
    problem.alignment = cursor.number<int>();
    cursor.skip(kBetween);
    next.family_digest = cursor.until("]");
    cursor.skip("]");
    if (!cursor.is_good()) fail(number, "it names no problem", report);
    else group = &groups_[base_of(problem)].emplace_back(std::move(next));
  }
}

const std::vector<ShippedWinners::Row>& ShippedWinners::rows_of(Group& group, const Report& report) const {
  if (group.rows) return *group.rows;
  group.rows.emplace();
  std::string_view text = group.text;
  for (std::size_t number = group.first_line; !text.empty(); ++number) {
    const std::string_view line = next_line(text);
    if (line.empty() || line.starts_with('#')) continue;
    Cursor cursor(line);
    Row row;
    row.sizes = read_extents(cursor, RangeRecord{1, 1}, [&] {
      const auto first = cursor.number<std::int64_t>();
      return RangeRecord{first, cursor.has("..") ? cursor.number<std::int64_t>() : first};
    });
    CandidateRecord& candidate = row.winner.candidate;
    cursor.skip(" at ");
    row.winner.tuned_extents = read_extents(cursor, std::int64_t{1}, [&] { return cursor.number<std::int64_t>(); });
    cursor.skip(" us=");
    row.winner.median_us = cursor.number<double>();
    cursor.skip(" blocks=");
    candidate.max_blocks = cursor.number<std::int64_t>();
    cursor.skip(" resident=");
    candidate.resident_blocks = cursor.number<int>();
    cursor.skip(" threads=");
    candidate.block_threads = cursor.number<int>();
    cursor.skip(": ");
    candidate.policy = cursor.rest();
    row.winner.tuned = true;
    row.winner.lender = fmt::format("{}{}, {}, Hone {}, driver {}", kShippedMark, header_.device.name, header_.date,
                                    header_.version, header_.driver);
    const bool is_range = std::all_of(row.sizes.begin(), row.sizes.end(),
                                      [](const RangeRecord& range) { return range.first <= range.last; });
    if (cursor.is_good() && is_range && candidate.max_blocks > 0 && !candidate.policy.empty())
      group.rows->push_back(std::move(row));
    else
      fail(number, "it is no row of shipped winners", report);
  }
  return *group.rows;
}

std::vector<ShippedWinners::Group>* ShippedWinners::groups_for(const Query& query, const Report& report) {
  read(report);
  if (header_.device.kind != query.device.kind || !same_options(header_.compiler, query.toolchain.compiler))
    return nullptr;
  const auto found = groups_.find(base_of(query));
  return found == groups_.end() ? nullptr : &found->second;
}

std::optional<Hit> ShippedWinners::find(const Query& query, const Report& report) {
  if (query.code == CodeUse::required) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  std::vector<Group>* const groups = groups_for(query, report);
  if (!groups || !same_device(header_.device, query.device)) return std::nullopt;
  for (Group& group : *groups) {
    if (group.problem.launch_context != query.launch_context || group.problem.alignment != query.alignment ||
        group.family_digest != query.toolchain.family_digest)
      continue;
    for (const Row& row : rows_of(group, report))
      if (is_within(query.extents, row.sizes))
        return Hit{.winner = row.winner, .sizes = row.sizes, .binary = std::nullopt, .other_compiler = true};
  }
  return std::nullopt;
}

std::vector<NearWinner> ShippedWinners::find_near(std::span<const Query> queries,
                                                  const std::array<RangeRecord, 3>& extents, const Report& report) {
  std::vector<NearWinner> found;
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const Query& query = queries[i];
    std::vector<Group>* const groups = groups_for(query, report);
    if (!groups || same_device(header_.device, query.device) != (query.devices == Devices::same)) continue;
    for (Group& group : *groups)
      for (const Row& row : rows_of(group, report)) {
        if (!is_within(query.extents, row.sizes) && !is_within(row.winner.tuned_extents, extents)) continue;
        NearWinner& near = found.emplace_back(NearWinner{.query = i,
                                                         .winner = row.winner,
                                                         .device = header_.device,
                                                         .problem = group.problem,
                                                         .other_source =
                                                             group.family_digest != query.toolchain.family_digest});
        near.problem.sizes = row.sizes;
      }
  }
  return found;
}

}  // namespace hone::cache
