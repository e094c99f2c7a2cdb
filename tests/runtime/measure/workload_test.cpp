#include "runtime/measure/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>

#include <hone/error.h>
#include <hone/segmented_reduce.h>

#include "tests/runtime/support/fake_device.h"
#include "tests/runtime/support/total_family.h"
#include "tests/support/names.h"

namespace hone {
namespace {

using test::Names;

class WorkloadTest : public testing::Test {
 protected:
  std::set<void*> inputs_of_a_round(Workload& workload, std::size_t most = 100000) {
    std::set<void*> inputs;
    while (inputs.size() < most && inputs.insert(workload.next()[0]).second) {
    }
    return inputs;
  }

  /// A call that adds up its input as a right kernel would, plus `error`.
  static auto adder(std::int64_t error = 0) {
    return [error](const Problem& problem, std::span<void* const> buffers) {
      const auto* in = static_cast<const std::int32_t*>(buffers[0]);
      std::int64_t total = error;
      for (std::int64_t i = 0; i < problem.extents[0]; ++i) total += in[i];
      std::memcpy(buffers[1], &total, sizeof(total));
    };
  }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  TotalFamily family_;
  Candidate candidate_{{128, 1, 0}, {1}};
};

TEST_F(WorkloadTest, CopiesTogetherAreLargerThanEightCaches) {
  for (std::int64_t n : {1, 100, 5000, 100000}) {
    Workload workload(device_, family_.problem(n), nullptr);
    const auto copies = static_cast<std::int64_t>(inputs_of_a_round(workload).size());
    const std::int64_t stride = (4 * n + 255) / 256 * 256;
    EXPECT_GT(copies * stride, 8 * device_->facts().l2_bytes) << n;
  }
}

TEST_F(WorkloadTest, MemoryIsNotFreedWhileItIsFilled) {
  {
    Workload workload(device_, family_.problem(1000), nullptr);
    workload.fill_all();
    workload.displace_cache();
  }
  EXPECT_EQ(device_->frees_in_flight(), 0);
}

TEST_F(WorkloadTest, CopiesDoNotOverlap) {
  Workload workload(device_, family_.problem(1000), nullptr);
  std::byte* last_end = nullptr;
  for (void* input : inputs_of_a_round(workload)) {
    EXPECT_GE(static_cast<std::byte*>(input), last_end);
    last_end = static_cast<std::byte*>(input) + 4000;
    EXPECT_EQ(device_->memory_kind(last_end - 1), MemoryKind::device);
  }
}

TEST_F(WorkloadTest, PointersHaveExactlyTheAlignmentOfTheProblem) {
  for (std::uint32_t alignment : {4u, 8u, 16u}) {
    Problem problem = family_.problem(777);
    problem.alignment = alignment;
    Workload workload(device_, problem, nullptr);
    for (void* input : inputs_of_a_round(workload)) EXPECT_EQ(alignment_of(input), alignment);
  }
}

TEST_F(WorkloadTest, InputsRepeatThePatternThroughAllCopies) {
  const Problem problem = family_.problem(5000);  // the pattern has 1009 elements
  Workload workload(device_, problem, nullptr);
  workload.fill_all();
  for (void* input : inputs_of_a_round(workload)) {
    const auto* values = static_cast<const std::int32_t*>(input);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(values[i], 1);
  }
}

TEST_F(WorkloadTest, WhatCannotRepeatIsWholeInEveryCopy) {
  Workload workload(device_, segmented_reduce_problem({}, DType::i32, 100, 5000), nullptr);
  workload.fill_all();
  std::set<void*> seen;
  while (seen.insert(workload.next()[1]).second) {
  }
  EXPECT_GT(seen.size(), 1u);
  for (void* copy : seen) {
    const auto* offsets = static_cast<const std::int32_t*>(copy);
    EXPECT_EQ(offsets[0], 0);
    EXPECT_TRUE(std::is_sorted(offsets, offsets + 101));
    EXPECT_EQ(offsets[100], 5000);
  }
}

TEST_F(WorkloadTest, VerifiesOnAPatternWithItsOwnPeriod) {
  Workload workload(device_, family_.problem(5000), nullptr);
  const std::string fault =
      workload.verify(family_.problem(5000), candidate_, "ramp", [](const Problem&, std::span<void* const> buffers) {
        const auto* in = static_cast<const std::int32_t*>(buffers[0]);
        for (int i = 0; i < 5000; ++i) ASSERT_EQ(in[i], i % 1009 - 500) << i;
        adder()({.extents = {5000, 1, 1}}, buffers);
      });
  EXPECT_EQ(fault, "");
}

TEST_F(WorkloadTest, AcceptsARightResultAndNamesAWrongOne) {
  const Problem problem = family_.problem(1234);
  Workload workload(device_, problem, nullptr);
  for (std::string_view kind : {"ones", "ramp"}) {
    EXPECT_EQ(workload.verify(problem, candidate_, kind, adder()), "");
    EXPECT_THAT(workload.verify(problem, candidate_, kind, adder(1)), Names("expected"));
  }
}

TEST_F(WorkloadTest, WritesAroundArraysAndToInputsAreFaults) {
  const Problem problem = family_.problem(1234);
  Workload workload(device_, problem, nullptr);
  const auto verify = [&](const std::function<void(std::int32_t* in, std::int64_t* out)>& write) {
    return workload.verify(problem, candidate_, "ones", [&](const Problem& called, std::span<void* const> buffers) {
      adder()(called, buffers);
      write(static_cast<std::int32_t*>(buffers[0]), static_cast<std::int64_t*>(buffers[1]));
    });
  };
  EXPECT_EQ(verify([](auto*, auto* out) { out[0] += 0; }), "");
  EXPECT_EQ(verify([](auto*, auto* out) { out[1] = 7; }), "wrote at byte 8 of 'out', which has 8 bytes");
  EXPECT_EQ(verify([](auto*, auto* out) { out[8000] = 7; }), "wrote at byte 64000 of 'out', which has 8 bytes");
  EXPECT_EQ(verify([](auto*, auto* out) { out[50000] = 7; }), "wrote at byte 400000 of 'out', which has 8 bytes");
  EXPECT_EQ(verify([](auto*, auto* out) { out[-3] = 7; }), "wrote 24 bytes before 'out' begins");
  EXPECT_EQ(verify([](auto* in, auto*) { in[1234] = 1; }), "wrote at byte 4936 of 'in', which has 4936 bytes");
  EXPECT_EQ(verify([](auto* in, auto*) { in[1000] = 2; }), "wrote to the input 'in', at byte 4000");
  EXPECT_EQ(verify([](auto* in, auto* out) { std::memcpy(out + 1, in + 1234, 8); }),
            "wrote at byte 8 of 'out', which has 8 bytes");
  EXPECT_EQ(verify([](auto*, auto*) {}), "") << "what a call has spoiled is there again for the next";
}

TEST_F(WorkloadTest, VerifiesSmallerProblemsToo) {
  Workload workload(device_, family_.problem(1234), nullptr);
  for (std::int64_t n : {1233, 1, 0})
    EXPECT_EQ(workload.verify(family_.problem(n), candidate_, "ramp", adder()), "") << n;
}

TEST_F(WorkloadTest, AKernelThatWritesNothingIsWrong) {
  const Problem problem = family_.problem(100);
  Workload workload(device_, problem, nullptr);
  EXPECT_EQ(workload.verify(problem, candidate_, "ones", adder()), "");  // leaves the right result behind
  EXPECT_NE(workload.verify(problem, candidate_, "ones", [](const Problem&, std::span<void* const>) {}), "");
}

TEST_F(WorkloadTest, TwoRunsMustAgree) {
  const Problem problem = family_.problem(100);
  Workload workload(device_, problem, nullptr);
  std::int64_t runs = 0;
  EXPECT_THAT(
      workload.verify(problem, candidate_, "ones",
                      [&](const Problem& called, std::span<void* const> buffers) { adder(runs++)(called, buffers); }),
      Names("different", "bits"));
}

TEST_F(WorkloadTest, ResultsMayNotDependOnWhatTheOutputHeld) {
  const Problem problem = family_.problem(100);
  Workload workload(device_, problem, nullptr);
  EXPECT_THAT(workload.verify(problem, candidate_, "ones",
                              [](const Problem& called, std::span<void* const> buffers) {
                                auto* const out = static_cast<std::int64_t*>(buffers[1]);
                                const std::int64_t held = *out;
                                adder(held)(called, buffers);
                              }),
              Names("depend", "held", "before"));
}

/// TotalFamily with an output of floats that a reference fills.
class FloatsFamily final : public KernelFamily, Verifier {
 public:
  std::string_view name() const override { return "floats"; }
  int version() const override { return 1; }
  const ParameterSpace& space() const override { return total_.space(); }
  std::span<const std::string_view> operations() const override { return total_.operations(); }
  std::span<const SourceFile> sources() const override { return total_.sources(); }
  std::string refuse(const Problem&) const override { return ""; }
  Reason is_valid(const ProblemClass&, const Policy&, const DeviceFacts&) const override { return {}; }
  Unit unit(const ProblemClass& of, const Policy& policy) const override { return total_.unit(of, policy); }
  WorkShape shape(const Problem& problem, const Policy& policy) const override { return total_.shape(problem, policy); }
  std::int64_t bytes_moved(const Problem& problem) const override { return total_.bytes_moved(problem); }
  void encode(const Problem&, const Candidate&, std::span<void* const>, void*, LaunchList&) const override {}
  std::vector<BufferSpec> buffers(const Problem& problem) const override {
    return {{.name = "in", .dtype = DType::f32, .elements = problem.extents[0]},
            {.name = "out", .is_input = false, .dtype = DType::f32, .elements = problem.extents[0]}};
  }
  const Verifier& verifier() const override { return *this; }
  bool has_reference_kernel() const override { return true; }

  /// As own kernels are: within a few units in the last place of 1.
  std::string compare(const Problem&, const Candidate&, ArrayBytes expected, ArrayBytes outputs) const override {
    for (std::size_t at = 0; at < expected[0].size(); at += sizeof(float)) {
      float right, found;
      std::memcpy(&right, &expected[0][at], sizeof right);
      std::memcpy(&found, &outputs[0][at], sizeof found);
      if (!(std::isnan(right) && std::isnan(found)) && !(std::fabs(right - found) <= 1e-6f)) return "differs";
    }
    return "";
  }

 private:
  TotalFamily total_;
};

TEST_F(WorkloadTest, ZerosThatAreNotWrittenAreMissing) {
  const FloatsFamily floats;
  const Problem problem{.family = &floats, .dtype = DType::f32, .extents = {100, 1, 1}};
  Workload workload(device_, problem, nullptr);
  const auto writer = [](std::int64_t written, float second_half) {
    return [=](const Problem&, std::span<void* const> buffers) {
      auto* const out = static_cast<float*>(buffers[1]);
      for (std::int64_t i = 0; i < written; ++i) out[i] = i < 50 ? 1.0f : second_half;
    };
  };
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(workload.verify(problem, candidate_, "uniform", writer(100, 0), writer(100, 0)), "");
  EXPECT_THAT(workload.verify(problem, candidate_, "uniform", writer(50, 0), writer(100, 0)),
              Names("differs", "not written"));
  EXPECT_THAT(workload.verify(problem, candidate_, "uniform", writer(50, 0), writer(100, nan)),
              Names("differs", "not written"));
  EXPECT_EQ(workload.verify(problem, candidate_, "uniform", writer(50, 0), writer(50, 0)), "")
      << "what the reference leaves alone is nobody's";
}

TEST_F(WorkloadTest, NothingIsWrittenBehindTheArrays) {
  Problem problem = family_.problem(1000);
  problem.alignment = 4;
  Workload workload(device_, problem, nullptr);
  workload.fill_all();  // the fake device's memory ends where the arrays do: AddressSanitizer would see it
  EXPECT_EQ(workload.verify(problem, candidate_, "ones", adder()), "");
}

TEST_F(WorkloadTest, WarmInputsStayWhereTheyAre) {
  Workload workload(device_, family_.problem(1234), nullptr, InputState::warm);
  const std::vector<void*> first = workload.next();
  for (int call = 0; call < 5; ++call) EXPECT_EQ(workload.next(), first);
  EXPECT_FALSE(workload.must_displace_cache());
}

TEST_F(WorkloadTest, ReplaysOfCopiesMustDisplaceTheCache) {
  const auto must_displace_cache = [&](std::int64_t n) {
    return Workload(device_, family_.problem(n), nullptr).must_displace_cache();
  };
  EXPECT_TRUE(must_displace_cache(1024));    // many copies in the cache
  EXPECT_TRUE(must_displace_cache(32768));   // part of one
  EXPECT_FALSE(must_displace_cache(32769));  // each is more than the cache
}

TEST_F(WorkloadTest, DisplacingTheCacheLeavesInputsAlone) {
  const Problem problem = family_.problem(1024);
  Workload workload(device_, problem, nullptr);
  workload.fill_all();
  const auto* const input = static_cast<const std::byte*>(workload.next()[0]);
  const std::vector<std::byte> before(input, input + 4096);
  workload.displace_cache();
  EXPECT_TRUE(std::equal(before.begin(), before.end(), input));
}

TEST_F(WorkloadTest, AnEmptyProblemHasAnOutputStill) {
  Workload workload(device_, family_.problem(0), nullptr);
  workload.fill_all();
  EXPECT_NE(workload.next()[1], nullptr);
  EXPECT_EQ(workload.verify(family_.problem(0), candidate_, "ones", adder()), "");
}

TEST_F(WorkloadTest, ReportsTooLittleMemoryAndFreesWhatItHad) {
  const std::size_t before = device_->live_allocations();
  device_->memory_limit = 100000;
  try {
    Workload workload(device_, family_.problem(1 << 20), nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  }
  EXPECT_EQ(device_->live_allocations(), before);
}

}  // namespace
}  // namespace hone
