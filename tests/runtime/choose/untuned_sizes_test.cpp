// Tests the documented guarantee between sizes with the model's times: a portfolio of quarter octaves on
// an H100, asked at sizes that it does not know.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <hone/sdk/occupancy.h>
#include <hone/sdk/portfolio.h>
#include <hone/tuned_reduce.h>

#include "runtime/search/candidates.h"
#include "runtime/search/model.h"
#include "tests/runtime/support/invented_devices.h"

namespace hone {
namespace {

class UntunedSizes : public testing::Test {
 protected:
  static Problem sum_of(std::int64_t n) { return reduce_problem(ReduceOp::sum, DType::f32, n); }

  UntunedSizes() {
    // Geometries of the largest size: those of the others are among them.
    for (const RankedPolicy& ranked : rank_policies(facts_, sum_of(std::int64_t{1} << 28)).policies)
      for (const Geometry& geometry : geometries(facts_, shape(ranked.policy, 1 << 28), resident(ranked.policy)))
        candidates_.push_back({ranked.policy, geometry});
  }

  WorkShape shape(const Policy& policy, std::int64_t n) const { return reduce_family().shape(sum_of(n), policy); }
  int resident(const Policy& policy) const {
    const WorkShape work = shape(policy, 1 << 28);
    return resident_blocks(facts_, Resources{}, work.block_threads, work.dynamic_smem_bytes);
  }

  double us(const Candidate& candidate, std::int64_t n) const {
    const Problem problem = sum_of(n);
    return predict(facts_, shape(candidate.policy, n), problem.family->bytes_moved(problem),
                   resident(candidate.policy), candidate.geometry, problem.launch_context)
        .us();
  }

  double best_us(std::int64_t n) const {
    double best = std::numeric_limits<double>::infinity();
    for (const Candidate& candidate : candidates_) best = std::min(best, us(candidate, n));
    return best;
  }

  Portfolio portfolio_of(int first, int last) const {
    TrialMatrix matrix;
    matrix.candidates = candidates_.size();
    for (int each = kClassesPerOctave * first; each <= kClassesPerOctave * last; ++each) {
      matrix.sizes.push_back(class_center(each));
      for (const Candidate& candidate : candidates_) matrix.us.push_back(us(candidate, matrix.sizes.back()));
    }
    return choose_portfolio(matrix, 0.01);
  }

  /// As calls are dispatched: by the class of n.
  const Candidate& serving(const Portfolio& portfolio, std::int64_t n) const {
    const std::int64_t center = class_center(size_class(n));
    const auto part = std::find_if(portfolio.parts.begin(), portfolio.parts.end(), [&](const PortfolioPart& each) {
      return each.serves_from <= center && center <= each.serves_to;
    });
    return candidates_[part->candidate];
  }

  DeviceFacts facts_ = h100_facts();
  std::vector<Candidate> candidates_;
};

TEST_F(UntunedSizes, MeasuredSizesKeepTheBound) {
  const Portfolio portfolio = portfolio_of(10, 28);
  EXPECT_LT(portfolio.parts.size(), 15u) << "few winners for 73 sizes";
  for (int each = 10 * kClassesPerOctave; each <= 28 * kClassesPerOctave; ++each) {
    const std::int64_t n = class_center(each);
    EXPECT_LE(us(serving(portfolio, n), n), 1.01 * best_us(n) * (1 + 1e-12)) << n;
  }
}

TEST_F(UntunedSizes, SizesBelowAMeasuredOneTakeNoLongerThanIt) {
  const Portfolio portfolio = portfolio_of(10, 28);
  for (int exponent = 10; exponent < 28; ++exponent)
    for (const std::int64_t n : {(std::int64_t{9} << exponent) / 8, (std::int64_t{13} << exponent) / 8}) {
      const std::int64_t next = class_center(size_class(n));
      if (next < n) continue;
      EXPECT_LE(us(serving(portfolio, n), n), 1.01 * best_us(next) * (1 + 1e-12)) << n;
    }
}

TEST_F(UntunedSizes, LittleIsLostOnTheWholeAgainstAChoiceForThatVerySize) {
  const Portfolio portfolio = portfolio_of(10, 28);
  double sum = 0;
  int sizes = 0;
  for (int exponent = 10; exponent < 28; ++exponent)
    for (const std::int64_t n : {std::int64_t{3} << (exponent - 1), (std::int64_t{1} << exponent) * 6 / 5 + 1}) {
      sum += us(serving(portfolio, n), n) / best_us(n) - 1;
      ++sizes;
    }
  EXPECT_LE(sum / sizes, 0.03);
}

}  // namespace
}  // namespace hone
