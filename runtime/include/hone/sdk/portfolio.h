// choose_portfolio() and choose_cover(): choose few winners that serve many sizes or shapes almost as well as their
// own; shapes_between(): the shapes between tuned ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hone/problem.h>

namespace hone {

/// The times of the same candidates at several sizes of one problem. Plain data.
struct TrialMatrix {
  std::vector<std::int64_t> sizes;  ///< ascending
  std::size_t candidates = 0;
  std::vector<double> us;           ///< us[size × candidates + candidate]; not positive: it cannot serve that size

  double at(std::size_t size, std::size_t candidate) const { return us[size * candidates + candidate]; }
};

/// A range of neighbouring sizes with one candidate.
struct PortfolioPart {
  std::size_t candidate = 0;
  std::size_t first = 0;  ///< indices of sizes, both included
  std::size_t last = 0;
  std::int64_t serves_from = 0;  ///< the sizes that it serves, measured or not, both ends included
  std::int64_t serves_to = 0;

  bool operator==(const PortfolioPart&) const = default;
};

struct Portfolio {
  std::vector<PortfolioPart> parts;  ///< in the order of the sizes; together they serve 0 to the largest integer
  double worst_regret = 0;           ///< at the measured sizes: time ÷ the best candidate's time there − 1
  double mean_regret = 0;
};

/// Splits the sizes into as few parts as possible, such that each part has a candidate that is within `most_regret`
/// (0.01: 1 %) of the best at every measured size of it. Among such splits it takes one with few different candidates,
/// and then one with a low regret. A size that no candidate can serve goes with the part below it (at the start, with
/// the first part). Empty if no candidate can serve any size.
///
/// Guarantee: at a measured size, the time is at most (1 + most_regret) × the best measured there. A part serves the
/// sizes from just above the last size of the part before it to its own last size. So a size n that was not measured,
/// between the measured a < n < b, has a candidate that keeps the bound at b. If times do not fall as n grows, n takes
/// at most (1 + most_regret) × the best time at b.
Portfolio choose_portfolio(const TrialMatrix& trials, double most_regret = 0.01);

/// The times of the same candidates at several shapes that differ in more than one extent. Plain data.
struct ShapeTrials {
  std::size_t shapes = 0;
  std::size_t candidates = 0;
  std::vector<double> us;  ///< us[shape × candidates + candidate]; not positive: it cannot serve that shape

  double at(std::size_t shape, std::size_t candidate) const { return us[shape * candidates + candidate]; }
};

/// A choice of few candidates for all shapes.
struct Cover {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::vector<std::size_t> candidate_of;  ///< for each shape; kNone if no candidate can serve it
  std::size_t winners = 0;                ///< the number of different candidates among them
  double worst_regret = 0;                ///< time ÷ the best candidate's time there − 1
  double mean_regret = 0;                 ///< over the shapes that have a candidate
  bool is_fewest = true;                  ///< false: the search ended early, and fewer may do
};

/// Gives each shape a candidate that is within `most_regret` of the best there, with as few different candidates as
/// possible; each shape gets the fastest of those chosen. Shapes have no order, so this is a set cover. It is searched
/// by branch and bound, starting from the greedy cover, for about a tenth of a second at most. The greedy cover has at
/// most 1 + ln(shapes) times as many candidates as necessary.
Cover choose_cover(const ShapeTrials& trials, double most_regret = 0.01);

/// The distance in octaves up to which the winner of a tuned shape serves another shape unmeasured. Further away
/// another kind of kernel wins (one block, one wave or many; a thread, a warp or a block per row), and the occupancy
/// model, which knows the shape itself, is the better guess.
inline constexpr double kFarthestServed = 2;

/// A class of shapes between tuned shapes, and the tuned shape whose winner serves it.
struct ShapeBetween {
  Extents extents{1, 1, 1};  ///< powers of two
  std::size_t served_by = 0; ///< index into the tuned shapes

  bool operator==(const ShapeBetween&) const = default;
};

/// The classes without a tuned shape that lie between tuned shapes: one is at or below them in every extent, and one at
/// or above. Each is served by the nearest tuned shape (shape_distance()) that is at least as large in every extent,
/// else by the nearest of all. If the tuned shapes differ in one extent only, that is the next larger size, however far
/// away. Otherwise, classes that are further than kFarthestServed from all tuned shapes are left out.
std::vector<ShapeBetween> shapes_between(std::span<const Extents> tuned);

}  // namespace hone
