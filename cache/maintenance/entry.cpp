#include "cache/maintenance/entry.h"

#include <algorithm>

#include "cache/field_digester.h"
#include "cache/fields.h"

namespace hone::cache {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes a run of digits off the front of `text`, without its leading zeros.
std::string_view take_number(std::string_view& text) {
  const auto end = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_digit) - text.begin());
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

std::string entry_digest(const Entry& entry) {
  Digest digest;
  each_key_field(entry.key.device, FieldDigester{digest});
  each_field(entry.key.toolchain, FieldDigester{digest});
  each_field(entry.key.problem, FieldDigester{digest});
  each_field(entry.winner, FieldDigester{digest});
  digest.add("created_at", entry.created_at).add("binary", std::string_view(entry.binary));
  if (!entry.tuning) return digest.hex();
  each_field(*entry.tuning, FieldDigester{digest});
  for (const TrialRecord& trial : entry.tuning->trials) each_field(trial, FieldDigester{digest});
  return digest.hex();
}

int winner_samples(const Entry& entry) {
  if (!entry.tuning) return 0;
  const CandidateRecord& winner = entry.winner.candidate;
  int samples = 0;
  for (const TrialRecord& trial : entry.tuning->trials) {
    if (trial.verdict != "ok" || trial.candidate.policy != winner.policy) continue;
    if (trial.candidate.max_blocks == winner.max_blocks) samples = std::max(samples, trial.samples);
  }
  return samples;
}

int compare_versions(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view left = take_number(a), right = take_number(b);
      if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
      if (const int order = left.compare(right); order != 0) return order;
      continue;
    }
    if (a.front() != b.front()) {
      return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front()) ? -1 : 1;
    }
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return static_cast<int>(!a.empty()) - static_cast<int>(!b.empty());
}

bool is_better(const Entry& a, const Entry& b) {
  if (a.winner.tuned != b.winner.tuned) return a.winner.tuned;
  const int drivers = compare_versions(a.key.toolchain.driver, b.key.toolchain.driver);
  if (drivers != 0) return drivers > 0;
  const int samples = winner_samples(a), other_samples = winner_samples(b);
  if (samples != other_samples) return samples > other_samples;
  if (a.created_at != b.created_at) return a.created_at > b.created_at;
  return entry_digest(a) > entry_digest(b);
}

}  // namespace hone::cache
