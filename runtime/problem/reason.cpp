#include <hone/reason.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <ostream>

#include <fmt/format.h>

namespace hone {
namespace {

/// `words` name each number where it stands, in the order of Reason::numbers; {detail} is the rest of the text.
struct Wording {
  ReasonCode code;
  std::string_view name;
  std::string_view words;
};

using Code = ReasonCode;

constexpr std::array kWordings{
    Wording{Code::none, "none", ""},
    Wording{Code::text, "text", "{detail}"},
    Wording{Code::pruned, "pruned", "pruned: {detail}"},
    Wording{Code::too_many_threads, "too_many_threads", "{threads} threads a block, the device allows {allowed}"},
    Wording{Code::cluster_too_large, "cluster_too_large", "clusters of {blocks} blocks, the device allows {allowed}"},
    Wording{Code::static_smem, "static_smem", "needs {needed} bytes of static shared memory, a block has {allowed}"},
    Wording{Code::device_smem, "device_smem", "needs {needed} bytes of shared memory, the device has {allowed}"},
    Wording{Code::no_block_fits, "no_block_fits", "no block of it fits an SM"},
    Wording{Code::not_resident, "not_resident",
            "no block is resident: {threads} threads of {registers} registers, {smem} bytes of shared memory"},
    Wording{Code::workspace, "workspace", "needs {needed} bytes of workspace, there are {available}"},
    Wording{Code::other_grid, "other_grid", "works with {blocks} blocks alone"},
    Wording{Code::covers_all_work, "covers_all_work", "{blocks} blocks already cover all of the work"},
    Wording{Code::spills, "spills", "spills: {bytes} bytes of local memory per thread"},
    Wording{Code::one_block, "one_block", "one block cannot draw the bandwidth of all SMs"},
    Wording{Code::bytes_in_flight, "bytes_in_flight", "has {bytes} bytes in flight per SM, memory needs {needed}"},
    Wording{Code::not_compiled_stopped, "not_compiled_stopped", "not compiled: the tuning was stopped"},
    Wording{Code::not_compiled_budget, "not_compiled_budget", "not compiled: the time budget was spent"},
    Wording{Code::not_compiled_near_roofline, "not_compiled_near_roofline",
            "not compiled: the leader is as fast as memory and launching allow"},
    Wording{Code::not_compiled_slower, "not_compiled_slower",
            "not compiled: it is not expected to improve on the leader, which takes {leader_us} µs"},
    Wording{Code::not_measured_stopped, "not_measured_stopped", "not measured: the tuning was stopped"},
    Wording{Code::not_measured_budget, "not_measured_budget", "not measured: the time budget was spent"},
    Wording{Code::not_measured_near_roofline, "not_measured_near_roofline",
            "not measured: the leader is as fast as memory and launching allow"},
    Wording{Code::not_measured_gain, "not_measured_gain",
            "not measured: {expected_us} µs are expected, the leader takes {leader_us}: a gain of {percent} % is not "
            "worth it"},
    Wording{Code::does_not_compile, "does_not_compile", "does not compile: {detail}"},
    Wording{Code::does_not_run, "does_not_run", "does not run: {detail}"},
    Wording{Code::wrong_result, "wrong_result", "gives a wrong result for {detail}"},
};
static_assert([] {
  for (std::size_t i = 0; i < kWordings.size(); ++i)
    if (static_cast<std::size_t>(kWordings[i].code) != i) return false;
  return true;
}(), "the wordings are in the order of the codes");

const Wording& wording(ReasonCode code) { return kWordings.at(static_cast<std::size_t>(code)); }

constexpr std::string_view kDetail = "{detail}";

/// Calls words(text) and place(name) for what the words of a code consist of, as long as they return true.
template <class Words, class Place>
bool for_each_part(std::string_view text, Words words, Place place) {
  while (!text.empty()) {
    const std::size_t open = text.find('{'), close = text.find('}');
    if (!words(text.substr(0, open))) return false;
    if (open == std::string_view::npos) break;
    if (!place(text.substr(open, close - open + 1))) return false;
    text.remove_prefix(close + 1);
  }
  return true;
}

/// Microseconds and percentages have two decimals, the other numbers none.
std::string spell_number(std::string_view place, double number) {
  const bool is_measured = place.ends_with("_us}") || place == "{percent}";
  return fmt::format("{:.{}f}", number, is_measured ? 2 : 0);
}

/// The text of a code with `number(place, i)` and `detail` in its places.
template <class Number>
std::string fill_in(std::string_view words, Number number, std::string_view detail) {
  std::string result;
  std::size_t at = 0;
  for_each_part(
      words, [&](std::string_view text) { return result += text, true; },
      [&](std::string_view place) {
        if (place == kDetail) result += detail;
        else result += number(place, at++);
        return true;
      });
  return result;
}

/// The reason of one code that a text is; nullopt where it is none.
std::optional<Reason> parse_as(const Wording& wording, std::string_view left) {
  if (!left.starts_with(wording.words.substr(0, wording.words.find('{')))) return std::nullopt;
  Reason reason;
  reason.code = wording.code;
  std::size_t at = 0;
  const bool fits = for_each_part(
      wording.words,
      [&](std::string_view words) {
        if (!left.starts_with(words)) return false;
        left.remove_prefix(words.size());
        return true;
      },
      [&](std::string_view place) {
        if (place == kDetail) {
          reason.detail = left;
          left = {};
          return true;
        }
        const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), reason.numbers.at(at++),
                                                  std::chars_format::fixed);
        if (error != std::errc{}) return false;
        left.remove_prefix(static_cast<std::size_t>(end - left.data()));
        return true;
      });
  return fits && left.empty() ? std::optional(reason) : std::nullopt;
}

Reason parse_reason(std::string_view given) {
  for (const Wording& each : kWordings)
    if (each.code != Code::text)
      if (std::optional<Reason> reason = parse_as(each, given)) return *std::move(reason);
  return given;
}

constexpr std::string_view kPolicies = " policies)";

}  // namespace

Reason::Reason(ReasonCode of, std::initializer_list<double> values) : code(of) {
  std::copy_n(values.begin(), std::min(values.size(), kMostNumbers), numbers.begin());
}
Reason::Reason(ReasonCode of, std::string message) : code(of), detail(std::move(message)) {}
Reason::Reason(std::string words) : code(words.empty() ? Code::none : Code::text), detail(std::move(words)) {}
Reason::Reason(std::string_view words) : Reason(std::string(words)) {}
Reason::Reason(const char* words) : Reason(std::string(words)) {}

std::string Reason::text() const {
  const auto number = [&](std::string_view place, std::size_t i) { return spell_number(place, numbers.at(i)); };
  return fill_in(wording(code).words, number, detail);
}

std::string Reason::general_text() const {
  const bool has_words = code == Code::text || code == Code::pruned;
  return fill_in(wording(code).words, [](std::string_view, std::size_t) { return "…"; }, has_words ? detail : "…");
}

bool Reason::is_like(const Reason& other) const {
  const bool has_words = code == Code::text || code == Code::pruned;
  return code == other.code && (!has_words || detail == other.detail);
}

std::string_view name(ReasonCode code) { return wording(code).name; }

std::ostream& operator<<(std::ostream& out, const Reason& reason) { return out << reason.text(); }

std::string CountedReason::text() const {
  return policies == 1 ? reason.text() : fmt::format("{} ({}{}", reason.text(), policies, kPolicies);
}

CountedReason CountedReason::parse(std::string_view text) {
  const std::size_t open = text.rfind(" (");
  int policies = 0;
  if (open != std::string_view::npos && text.ends_with(kPolicies)) {
    const char* const end = text.data() + text.size() - kPolicies.size();
    if (std::from_chars(text.data() + open + 2, end, policies).ptr != end) policies = 0;
  }
  if (policies < 1) return {parse_reason(text), 1};
  return {parse_reason(text.substr(0, open)), policies};
}

}  // namespace hone
