// The words that choose what to work on: operations, dtypes, alignments, devices, miss policies.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hone/device.h>
#include <hone/dtype.h>
#include <hone/session.h>
#include <hone/tuned_reduce.h>

#include "tuner/problems/families.h"

namespace hone::tuner {

/// Each throws CommandError(usage) that lists the known words and suggests the one that was meant. Lists are
/// separated by commas, "all" is every word (of operations kEveryOp, for "all" is one of them); repetitions are dropped
/// and the order is kept.
inline constexpr std::string_view kEveryOp = "every", kAll = "all";
std::vector<ReduceOp> parse_ops(std::string_view text);

/// The words of closed sets, for those who parse them and for completions.
inline constexpr std::array<std::string_view, 3> kMissPolicyWords{"tune", "heuristic", "error"};
inline constexpr std::array<std::string_view, 5> kAlignmentWords{"1", "2", "4", "8", "16"};
inline constexpr std::array<std::string_view, 3> kContextWords{kLaunchContextNames[0], kLaunchContextNames[1], "both"};
inline constexpr std::array<std::string_view, 2> kNanWords{"propagate", "ignore"};
inline constexpr std::array<std::string_view, 3> kDeviceWords{"auto", "cuda:0", "host"};
inline constexpr std::array<std::string_view, 4> kCampaignDeviceWords{"auto", "cuda:0", "host", kAll};
std::vector<std::string> family_words();
std::vector<std::string> operation_words();  ///< of all built-in families
std::vector<std::string> dtype_words();

/// Indices into the family's operations().
std::vector<std::uint8_t> parse_operations(const KernelFamily& family, std::string_view text);

/// Names of operations that any of the families has, or that are among `others`, as those of a user's families in a
/// cache. The result lives as long as both.
std::vector<std::string_view> parse_operation_names(Families families, std::string_view text,
                                                    std::span<const std::string_view> others = {});

/// The name of one of the families, or one of `others`. The result lives as long as both.
std::string_view parse_family_name(std::string_view text, Families families, std::span<const std::string_view> others);

std::vector<DType> parse_dtypes(std::string_view text);
DType parse_one_dtype(std::string_view text);
std::optional<DType> parse_optional_dtype(std::string_view text);  ///< nullopt for "": an option that was not given
MissPolicy parse_miss_policy(std::string_view text);

/// Alignments in bytes: 1, 2, 4, 8 and 16, or "all".
std::vector<std::uint32_t> parse_alignments(std::string_view text);

/// "stream", "graph" or "both".
std::vector<LaunchContext> parse_contexts(std::string_view text);

/// "propagate" or "ignore".
NanPolicy parse_nan_policy(std::string_view text);

/// "fast" or "reproducible".
Numerics parse_numerics(std::string_view text);

/// "time" or "energy".
Objective parse_objective(std::string_view text);

/// The devices that a campaign works on: "auto" is the first there is, "all" every CUDA device, or else the host.
/// Throws as open_device(), without opening what exists.
std::vector<std::string> parse_devices(const std::string& text);

/// "cuda:0, host": the devices of this machine, for messages.
std::string known_devices();

/// Opens "auto", "cuda:N" or "host". Throws CommandError: usage where the name has another form, device where there is
/// no such device or no driver.
std::shared_ptr<Device> open_device(const std::string& name);

}  // namespace hone::tuner
