// tuned_transpose() and tuned_copy() on a real device: every element size, at awkward shapes, pitches and addresses,
// and every class of policies.
#include <gmock/gmock.h>

#include <cstring>
#include <functional>

#include <fmt/format.h>

#include <hone/copy.h>
#include <hone/transpose.h>

#include "runtime/choose/compiled.h"
#include "runtime/families/transpose/transpose_policy.h"
#include "runtime/jit/binary_memo.h"
#include "runtime/measure/loaded_candidate.h"
#include "runtime/measure/workload.h"
#include "tests/runtime/support/allowed_policies.h"
#include "tests/runtime/support/device_fixture.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

constexpr std::byte kUntouched{0x5C};

std::vector<std::byte> random_bytes(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  std::vector<std::byte> values(bytes);
  for (std::byte& value : values) value = static_cast<std::byte>(random() >> 40);
  return values;
}

std::size_t span_bytes(std::int64_t rows, std::int64_t columns, std::int64_t pitch, std::size_t element_bytes) {
  return static_cast<std::size_t>((rows - 1) * pitch + columns) * element_bytes;
}

/// Returns what transposing must leave in an output that held `out` before.
std::vector<std::byte> transposed(const TransposeSpec& spec, const std::vector<std::byte>& in,
                                  std::vector<std::byte> out) {
  for (std::int64_t matrix = 0; matrix < spec.batch; ++matrix)
    for (std::int64_t row = 0; row < spec.rows; ++row)
      for (std::int64_t column = 0; column < spec.columns; ++column) {
        const auto from = static_cast<std::size_t>((matrix * spec.rows + row) * spec.input_pitch() + column);
        const auto to = static_cast<std::size_t>((matrix * spec.columns + column) * spec.output_pitch() + row);
        std::memcpy(out.data() + to * spec.element_bytes, in.data() + from * spec.element_bytes, spec.element_bytes);
      }
  return out;
}

class MovedResults : public DeviceTest {
 protected:
  std::vector<std::byte> fetch_bytes(const void* from, std::size_t bytes) const {
    std::vector<std::byte> values(bytes);
    device_->copy_to_host(values.data(), from, bytes, nullptr);
    device_->synchronize(nullptr);
    return values;
  }

  /// `offsets`: bytes of input and output behind aligned addresses.
  void expect_transposed(const TransposeSpec& spec, std::array<std::size_t, 2> offsets = {0, 0}) {
    const std::vector<std::byte> in =
        random_bytes(span_bytes(spec.batch * spec.rows, spec.columns, spec.input_pitch(), spec.element_bytes));
    const std::vector<std::byte> before(
        span_bytes(spec.batch * spec.columns, spec.rows, spec.output_pitch(), spec.element_bytes), kUntouched);
    const Array<std::byte> from = upload(in, offsets[0]), to = upload(before, offsets[1]);
    tuned_transpose(session(), spec, from.data, to.data, nullptr);
    EXPECT_TRUE(fetch_bytes(to.data, before.size()) == transposed(spec, in, before)) << describe(spec);
    EXPECT_TRUE(fetch_bytes(from.data, in.size()) == in) << describe(spec) << " changed its input";
  }

  void expect_transposed_in_place(const TransposeSpec& spec) {
    const std::vector<std::byte> in =
        random_bytes(span_bytes(spec.batch * spec.rows, spec.columns, spec.input_pitch(), spec.element_bytes));
    const Array<std::byte> array = upload(in);
    tuned_transpose(session(), spec, array.data, array.data, nullptr);
    EXPECT_TRUE(fetch_bytes(array.data, in.size()) == transposed(spec, in, in)) << describe(spec) << " in place";
  }

  void expect_copied(const CopySpec& spec, std::array<std::size_t, 2> offsets = {0, 0}) {
    const std::vector<std::byte> in =
        random_bytes(span_bytes(spec.rows, spec.columns, spec.input_pitch(), spec.element_bytes));
    std::vector<std::byte> expected(span_bytes(spec.rows, spec.columns, spec.output_pitch(), spec.element_bytes),
                                    kUntouched);
    const Array<std::byte> from = upload(in, offsets[0]), to = upload(expected, offsets[1]);
    tuned_copy(session(), spec, from.data, to.data, nullptr);
    for (std::int64_t row = 0; row < spec.rows; ++row)
      std::memcpy(expected.data() + static_cast<std::size_t>(row * spec.output_pitch()) * spec.element_bytes,
                  in.data() + static_cast<std::size_t>(row * spec.input_pitch()) * spec.element_bytes,
                  static_cast<std::size_t>(spec.columns) * spec.element_bytes);
    EXPECT_TRUE(fetch_bytes(to.data, expected.size()) == expected)
        << fmt::format("{} × {} elements of {} bytes, pitches {} and {}, offsets {} and {}", spec.rows, spec.columns,
                       spec.element_bytes, spec.input_pitch(), spec.output_pitch(), offsets[0], offsets[1]);
  }

  Session& session() {
    if (!session_) session_.emplace(device_, quick());
    return *session_;
  }

 private:
  static std::string describe(const TransposeSpec& spec) {
    return fmt::format("{} × {} × {} elements of {} bytes, pitches {} and {}", spec.batch, spec.rows, spec.columns,
                       spec.element_bytes, spec.input_pitch(), spec.output_pitch());
  }

  std::optional<Session> session_;
};

TEST_F(MovedResults, TransposesEveryElementSize) {
  for (const std::size_t bytes : {1, 2, 4, 8, 16}) {
    const auto width = static_cast<std::int64_t>(16 / bytes);
    // Both sides of the same octaves: tiles that are full, and that the matrix cuts, at rows of whole packs.
    expect_transposed({.element_bytes = bytes, .rows = 128, .columns = 128});
    expect_transposed({.element_bytes = bytes, .rows = 128 + width, .columns = 128 - width});
    expect_transposed({.element_bytes = bytes, .rows = 127, .columns = 129, .in_pitch = 144, .out_pitch = 128});
    // Rows at every address of an element.
    expect_transposed({.element_bytes = bytes, .rows = 127, .columns = 129}, {bytes, 0});
  }
}

TEST_F(MovedResults, TransposesShapesOfEveryKind) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 1000}, {1000, 1}, {3, 700}, {700, 7}, {37, 2100}}) {
    expect_transposed({.element_bytes = 4, .rows = rows, .columns = columns});
    if (is_cuda()) expect_transposed({.element_bytes = 2, .rows = rows, .columns = columns});
  }
  expect_transposed({.element_bytes = 2, .rows = 512, .columns = 8});
  expect_transposed({.element_bytes = 4, .rows = 90, .columns = 50, .batch = 5, .in_pitch = 60, .out_pitch = 93});
  expect_transposed({.element_bytes = 16, .rows = 20, .columns = 9}, {8, 0});
  // Smaller than any tile.
  expect_transposed({.element_bytes = 2, .rows = 33, .columns = 7});
  expect_transposed({.element_bytes = 1, .rows = 20, .columns = 21, .in_pitch = 32, .out_pitch = 32});
}

TEST_F(MovedResults, TransposesSquareMatricesInPlace) {
  for (const std::size_t bytes : {1, 2, 4, 8, 16}) {
    expect_transposed_in_place({.element_bytes = bytes, .rows = 96, .columns = 96, .batch = 2});
    if (is_cuda() || bytes == 4) {
      expect_transposed_in_place(
          {.element_bytes = bytes, .rows = 301, .columns = 301, .in_pitch = 304, .out_pitch = 304});
      expect_transposed_in_place({.element_bytes = bytes, .rows = 301, .columns = 301});
    }
  }
}

TEST_F(MovedResults, CopiesEveryElementSizeAtAnyPitchAndAddress) {
  for (const std::size_t bytes : {1, 2, 4, 8, 16}) {
    expect_copied({.element_bytes = bytes, .columns = 5003});
    expect_copied({.element_bytes = bytes, .columns = 5003}, {0, std::min<std::size_t>(bytes, 8)});
    // Every row lies otherwise, and as its copy does.
    expect_copied({.element_bytes = bytes, .rows = 37, .columns = 131, .in_pitch = 133, .out_pitch = 133 + 32});
  }
  expect_copied({.element_bytes = 1, .rows = 37, .columns = 3, .in_pitch = 5, .out_pitch = 7});
  expect_copied({.element_bytes = 4, .rows = 33, .columns = 1, .in_pitch = 1, .out_pitch = 2});
  expect_copied({.element_bytes = 4, .rows = 7, .columns = 700});
}

/// Launches policies of `largest` on it and on `others`, as the family verifies them.
class MovedPolicies : public DeviceTest {
 protected:
  void verify(const Problem& largest, std::size_t first, std::size_t step, const std::vector<Problem>& others = {},
              const std::function<bool(const Policy&)>& is_wanted = [](const Policy&) { return true; }) {
    std::vector<Unit> units;
    std::vector<Policy> policies, allowed;
    for (const Policy& policy : largest.family->space().all())
      if (is_wanted(policy) && reason_to_skip(largest, policy, device_->facts()).empty())
        allowed.push_back(policy);
    ASSERT_FALSE(allowed.empty()) << to_string(largest);
    for (std::size_t i = first % allowed.size(); i < allowed.size(); i += step)
      if (test::in_share(policies_met_++)) policies.push_back(allowed[i]);
    for (const Policy& policy : policies) units.push_back(unit_of(largest, policy));
    const std::vector<CompileOutcome> outcomes = BinaryMemo().compile(*device_, units);
    Workload workload(device_, largest, nullptr);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      ASSERT_TRUE(outcomes[i].binary) << outcomes[i].error;
      const CompiledCode code = load_policy(*device_, largest, policies[i], units[i], outcomes[i].binary);
      for (const std::int64_t max_blocks : {3, 1 << 20}) {
        const LoadedCandidate loaded{{policies[i], {max_blocks}}, code.module};
        std::vector<Problem> problems = largest.family->verifier().verified_problems(largest);
        problems.insert(problems.end(), others.begin(), others.end());
        for (const Problem& problem : problems) {
          const std::string fault = workload.verify(
              problem, loaded.candidate, "random", [&](const Problem& called, std::span<void* const> buffers) {
                loaded.enqueue(*device_, called, buffers, nullptr, nullptr);
              });
          EXPECT_EQ(fault, "") << to_string(problem) << " " << max_blocks << " × "
                               << largest.family->space().to_string(policies[i]);
        }
      }
    }
  }

  std::size_t policies_met_ = 0;  ///< those of all problems of a test share it
};

TEST_F(MovedPolicies, OfTransposesAreRightInEveryOrderAndTile) {
  const auto problem = [](std::size_t bytes, std::int64_t rows, std::int64_t columns, bool in_place = false) {
    return transpose_problem({.element_bytes = bytes, .rows = rows, .columns = columns}, kMaxAlignment, in_place);
  };
  verify(problem(4, 304, 204), 0, step(19), {problem(4, 12, 4), problem(4, 204, 304)});
  verify(problem(2, 304, 200), 0, step(17));
  verify(problem(1, 304, 208), 1, step(9));
  verify(problem(8, 150, 98), 5, step(41));
  verify(problem(16, 75, 99), 7, step(50));
  verify(problem(4, 203, 301), 3, step(31));
  verify(problem(2, 2000, 8), 1, step(13));
  verify(problem(2, 7, 1999), 1, step(11));
  verify(problem(2, 160, 160, true), 0, step(4));
  verify(problem(4, 160, 160, true), 0, step(2));
}

/// Rows at odd addresses: policies that shift what they load. Both ends of the matrices, and of their pitches, lie
/// within packs.
TEST_F(MovedPolicies, OfTransposesAreRightWhereRowsAreShifted) {
  const auto verify_shifted = [&](std::size_t bytes, std::int64_t rows, std::int64_t columns, std::size_t first) {
    const TransposeSpec spec{.element_bytes = bytes, .rows = rows, .columns = columns, .batch = 2};
    TransposeSpec pitched = spec, low = spec;
    pitched.in_pitch = columns + 3;
    pitched.out_pitch = rows + 5;
    low.batch = 1;
    low.rows = 130;
    const auto size = static_cast<std::uint32_t>(bytes);
    const auto is_shifted = [](const Policy& policy) {
      return policy.as<TransposePolicy>().staging == Staging::shifted;
    };
    verify(transpose_problem(spec, size, false), first, step(11),
           {transpose_problem(pitched, size, false), transpose_problem(low, size, false)}, is_shifted);
  };
  verify_shifted(1, 253, 255, 0);
  verify_shifted(2, 255, 251, 1);
  verify_shifted(4, 203, 241, 2);
  verify_shifted(8, 201, 151, 3);
}

/// One short side, and rows at odd addresses: policies whose tiles are strips. Both ends of the matrices, and of their
/// pitches, lie within packs.
TEST_F(MovedPolicies, OfTransposesAreRightInStrips) {
  const auto verify_strips = [&](std::size_t bytes, std::int64_t rows, std::int64_t columns, std::size_t first) {
    const TransposeSpec spec{.element_bytes = bytes, .rows = rows, .columns = columns, .batch = 2};
    TransposeSpec pitched = spec, short_of_both = spec;
    pitched.in_pitch = columns + 3;
    pitched.out_pitch = rows + 5;
    short_of_both.batch = 1;
    short_of_both.rows -= rows / 5;
    short_of_both.columns -= columns / 5;
    const auto size = static_cast<std::uint32_t>(bytes);
    const auto is_of_strips = [](const Policy& policy) {
      return policy.as<TransposePolicy>().staging == Staging::strips;
    };
    verify(transpose_problem(spec, size, false), first, step(7),
           {transpose_problem(pitched, size, false), transpose_problem(short_of_both, size, false)}, is_of_strips);
  };
  for (const bool is_low : {true, false}) {
    const auto verify_both = [&](std::size_t bytes, std::int64_t across, std::int64_t along, std::size_t first) {
      if (is_low) verify_strips(bytes, across, along, first);
      else verify_strips(bytes, along, across, first);
    };
    verify_both(1, 31, 2049, 0);
    verify_both(2, 1, 9001, 1);
    verify_both(2, 7, 4001, 2);
    verify_both(2, 31, 1301, 3);
    verify_both(2, 62, 1001, 4);
    verify_both(4, 20, 777, 5);
    verify_both(4, 31, 19, 6);
    verify_both(8, 13, 501, 7);
  }
}

TEST_F(MovedPolicies, OfCopiesAreRight) {
  verify(copy_problem({.element_bytes = 4, .columns = 70001}), 0, step(8));
  verify(copy_problem({.element_bytes = 2, .rows = 50, .columns = 333, .in_pitch = 341, .out_pitch = 349}), 1, step(8));
}

/// The device memory of these is not there: a refusal comes before anything is launched.
class MovedRefusals : public DeviceTest {
 protected:
  static constexpr std::uintptr_t kIn = 1 << 20, kOut = 1 << 24;

  static void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

  std::string refusal(const TransposeSpec& spec, std::uintptr_t in = kIn, std::uintptr_t out = kOut) const {
    return message([&](Session& session) { tuned_transpose(session, spec, at(in), at(out), nullptr); });
  }
  std::string refusal(const CopySpec& spec, std::uintptr_t in = kIn, std::uintptr_t out = kOut) const {
    return message([&](Session& session) { tuned_copy(session, spec, at(in), at(out), nullptr); });
  }

 private:
  template <class Call>
  std::string message(const Call& call) const {
    Session session(device_, quick());
    try {
      call(session);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
      return error.what();
    }
    return "was not refused";
  }
};

TEST_F(MovedRefusals, NameWhatIsWrong) {
  using testing::HasSubstr;
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_THAT(refusal(TransposeSpec{.element_bytes = 3, .rows = 2, .columns = 2}), Names("elements", "3 bytes"));
  EXPECT_THAT(refusal(TransposeSpec{.element_bytes = 32, .rows = 2, .columns = 2}), Names("1", "2", "4", "8", "16"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 2, .columns = 2}, 0), Names("'in'", "null"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 2, .columns = 2}, kIn, 0), Names("'out'", "null"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 2, .columns = 2}, kIn + 2), Names("not aligned", "4 bytes"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = -2, .columns = -2}), Names("no extent can be negative"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = kHuge, .columns = kHuge}), Names("no memory"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 2, .columns = 2, .batch = std::int64_t{1} << 61}),
              Names("no memory"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 8, .columns = 9, .in_pitch = 8}),
              Names("input", "pitch", "8"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 8, .columns = 9, .out_pitch = -8}),
              Names("output", "pitch", "-8"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 8, .columns = 9}, kIn, kIn), Names("square", "matrices"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 8, .columns = 8, .in_pitch = 9}, kIn, kIn), Names("equal", "pitches"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 8, .columns = 8}, kIn, kIn + 252), Names("overlap", "'in'"));
  EXPECT_THAT(refusal(TransposeSpec{.rows = 8, .columns = 8}, kIn + 252, kIn), Names("overlap", "'in'"));
  EXPECT_THAT(refusal(CopySpec{.element_bytes = 0, .columns = 2}), Names("elements", "0 bytes"));
  EXPECT_THAT(refusal(CopySpec{.columns = 2}, kIn, 0), Names("'out'", "null"));
  EXPECT_THAT(refusal(CopySpec{.columns = -2}), Names("no extent can be negative"));
  EXPECT_THAT(refusal(CopySpec{.rows = kHuge, .columns = kHuge}), Names("no memory"));
  EXPECT_THAT(refusal(CopySpec{.rows = 3, .columns = 9, .out_pitch = 8}), Names("output", "pitch", "8"));
  EXPECT_THAT(refusal(CopySpec{.columns = 9}, kIn, kIn), Names("overlap", "'in'"));
}

TEST_F(MovedRefusals, AreNoneForNeighboursAndEmptyMatrices) {
  Session session(device_, quick());
  EXPECT_EQ(tuned_transpose(session, {.rows = 0, .columns = 5}, nullptr, nullptr, nullptr).winner, nullptr);
  EXPECT_EQ(tuned_copy(session, {.rows = 5, .columns = 0}, nullptr, nullptr, nullptr).winner, nullptr);
  const auto array = upload(std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0});
  EXPECT_NE(tuned_transpose(session, array.data, 2, 3, array.data + 6, nullptr).winner, nullptr);
  EXPECT_EQ(fetch(array.data + 7), 4u);
}

TEST_F(MovedRefusals, AreNoneForRowsInTheGapsOfTheOthers) {
  Session session(device_, quick());
  const auto array = upload(std::vector<std::uint32_t>{1, 2, 0, 0, 3, 4, 0, 0});
  const CopySpec right_half{.rows = 2, .columns = 2, .in_pitch = 4, .out_pitch = 4};
  EXPECT_NE(tuned_copy(session, right_half, array.data, array.data + 2, nullptr).winner, nullptr);
  EXPECT_EQ(fetch(array.data + 2), 1u);
  EXPECT_EQ(fetch(array.data + 4), 3u);
  EXPECT_EQ(fetch(array.data + 7), 4u);
  EXPECT_THAT(refusal(CopySpec{.rows = 2, .columns = 3, .in_pitch = 4, .out_pitch = 4}, kIn, kIn + 8),
              Names("overlap", "'in'", "'out'"));
}

}  // namespace
}  // namespace hone
