// Reason: why a policy or a candidate is left out, as a code and numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>

namespace hone {

/// The kinds of reasons. Their words, with a place for each number, are the table in runtime/problem/reason.cpp.
enum class ReasonCode : std::uint8_t {
  none,
  text,    ///< Reason::detail in words: a limit of an algorithm, or what a program's own family says
  pruned,  ///< the words of a family's opinion

  // what the device cannot do
  too_many_threads,
  cluster_too_large,
  static_smem,
  device_smem,

  // what the occupancy query or the model says
  no_block_fits,
  not_resident,
  workspace,
  other_grid,
  covers_all_work,
  spills,
  one_block,
  bytes_in_flight,

  // what the search did not come to
  not_compiled_stopped,
  not_compiled_budget,
  not_compiled_near_roofline,
  not_compiled_slower,
  not_measured_stopped,
  not_measured_budget,
  not_measured_near_roofline,
  not_measured_gain,

  // what went wrong: the detail is the message of the compiler, the device or the verifier
  does_not_compile,
  does_not_run,
  wrong_result,
};

/// A reason, or none. Texts are reasons of their own, so that a family may return what it would print.
struct Reason {
  static constexpr std::size_t kMostNumbers = 3;

  ReasonCode code = ReasonCode::none;
  std::array<double, kMostNumbers> numbers{};
  std::string detail = {};  ///< words of `text` and `pruned`, or the message of what went wrong

  Reason() = default;
  Reason(ReasonCode code, std::initializer_list<double> numbers = {});  // NOLINT(google-explicit-constructor)
  Reason(ReasonCode code, std::string detail);
  Reason(std::string text);       // NOLINT(google-explicit-constructor): "" is none
  Reason(std::string_view text);  // NOLINT(google-explicit-constructor)
  Reason(const char* text);       // NOLINT(google-explicit-constructor)

  bool empty() const { return code == ReasonCode::none; }

  /// In words: "1024 threads a block, the device allows 512".
  std::string text() const;

  /// The words that all of its kind have in common: "… threads a block, the device allows …".
  std::string general_text() const;

  /// True if tools count the two as one: they have the same code, and of words in common the same.
  bool is_like(const Reason& other) const;

  bool operator==(const Reason&) const = default;
};

/// The name of a code where programs read it: "too_many_threads".
std::string_view name(ReasonCode code);

std::ostream& operator<<(std::ostream& out, const Reason& reason);

/// A reason and how many policies it holds for, as one text: "one block cannot draw the bandwidth of all SMs (8
/// policies)".
struct CountedReason {
  Reason reason;
  int policies = 1;

  std::string text() const;

  /// The inverse of text(). Words that no code has are a `text`.
  static CountedReason parse(std::string_view text);
};

}  // namespace hone
