// Problems, winners and code as the cache stores them, and back. Touches no file.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <hone/candidate.h>
#include <hone/device_facts.h>
#include <hone/kernel_family.h>
#include <hone/tuning.h>

#include "cache/records.h"

namespace hone {

cache::DeviceRecord device_record(const DeviceFacts& facts);

/// Limits of the device in this machine, measured now; without any, the key of a lookup.
cache::LimitsRecord limits_record(const DeviceFacts& facts, const DeviceLimits& limits = {});
DeviceLimits limits_of(const cache::LimitsRecord& record);

std::array<cache::RangeRecord, 3> range_records(const std::array<SizeRange, 3>& sizes);

/// "i32", "i32 in f64", "f16 in f64 to f16": of the elements, and of the accumulator and the result where chosen.
std::string dtypes_text(const Problem& problem);

std::string_view numerics_text(const Problem& problem);

/// Fills in the fields that cache::Query and cache::ProblemRecord share.
template <class Record>
void describe(Record& record, const Problem& problem) {
  record.family = problem.family->name();
  record.operation = problem.family->operations()[problem.operation];
  record.dtype = dtypes_text(problem);
  record.numerics = numerics_text(problem);
  record.launch_context = name(problem.launch_context);
  record.alignment = static_cast<int>(problem.alignment);
}

cache::WinnerRecord winner_record(const Problem& problem, const Winner& winner);
cache::TuningRecord tuning_record(const Tuning& tuning);

/// The winner of a row; nullopt where the row does not fit the family's space, and `misfit`, if given, says why.
std::optional<Winner> winner_of(const Problem& problem, const cache::WinnerRecord& winner,
                                const std::array<cache::RangeRecord, 3>& sizes, std::string* misfit = nullptr);

/// A tuning as far as it is stored: without code and roofline. Trials whose policy is not of the
/// family's space are left out.
Tuning tuning_of(const Problem& measured, const cache::TuningRecord& record);

/// `problem` at the size that its winner was measured at.
Problem measured_problem(const Problem& problem, const std::array<std::int64_t, 3>& tuned_extents);

/// A binary and the digest of the unit that it was compiled from. Two families, or two versions of one, may have the
/// same name and parameters.
struct StoredCode {
  Binary binary;
  std::string unit_digest;
};

cache::BinaryRecord binary_record(const Binary& binary, std::string_view unit_digest);

/// The inverse; nullopt where it is not known what the code was compiled from.
std::optional<StoredCode> stored_code(cache::BinaryRecord record);

}  // namespace hone
