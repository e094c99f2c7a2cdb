// choose_portfolio(), choose_cover(): few winners that serve many sizes or shapes almost as well as each one's own;
// shapes_between(): what lies between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hone/problem.h>

namespace hone {

/// Times of the same candidates at several sizes of one problem. Pure numbers.
struct TrialMatrix {
  std::vector<std::int64_t> sizes;  ///< ascending
  std::size_t candidates = 0;
  std::vector<double> us;           ///< us[size × candidates + candidate]; not positive: it may not serve there

  double at(std::size_t size, std::size_t candidate) const { return us[size * candidates + candidate]; }
};

/// A run of neighbouring sizes with one candidate.
struct PortfolioPart {
  std::size_t candidate = 0;
  std::size_t first = 0;  ///< indices of sizes, both included
  std::size_t last = 0;
  std::int64_t serves_from = 0;  ///< the sizes that it serves, measured or not, both included
  std::int64_t serves_to = 0;

  bool operator==(const PortfolioPart&) const = default;
};

struct Portfolio {
  std::vector<PortfolioPart> parts;  ///< in the order of the sizes; together they serve 0 to the largest integer
  double worst_regret = 0;           ///< at the measured sizes: time ÷ the best candidate's time there − 1
  double mean_regret = 0;
};

/// Splits the sizes into as few parts as possible such that in each one candidate is within `most_regret` (0.01: 1 %)
/// of the best at every measured size; among such splits, one with few different candidates, and then with a low
/// regret. Sizes at which nothing may serve belong to no bound and go with the part below them (with the first part at
/// the start). Empty when no candidate may serve anywhere.
///
/// What is guaranteed: at a measured size the time is at most (1 + most_regret) × the best measured there. A part
/// serves from just above the last size of the part before it up to its own last size; so for a size n that was not
/// measured, between the measured a < n < b, the candidate is one that keeps the bound at b, and where times do not
/// fall as n grows it takes at most (1 + most_regret) × the best time at b.
Portfolio choose_portfolio(const TrialMatrix& trials, double most_regret = 0.01);

/// Times of the same candidates at several shapes, of which more than one extent differs. Pure numbers.
struct ShapeTrials {
  std::size_t shapes = 0;
  std::size_t candidates = 0;
  std::vector<double> us;  ///< us[shape × candidates + candidate]; not positive: it may not serve there

  double at(std::size_t shape, std::size_t candidate) const { return us[shape * candidates + candidate]; }
};

/// Few candidates for all shapes.
struct Cover {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::vector<std::size_t> candidate_of;  ///< of each shape; kNone where nothing may serve
  std::size_t winners = 0;                ///< different ones among them
  double worst_regret = 0;                ///< time ÷ the best candidate's time there − 1
  double mean_regret = 0;                 ///< over the shapes that something serves
  bool is_fewest = true;                  ///< false: the search for fewer was ended early
};

/// Gives each shape a candidate that is within `most_regret` of the best there, of as few different ones as possible:
/// of the chosen ones, the fastest at that shape. There is no order of shapes that could make the choice easy, as there
/// is of sizes: it is a set cover, searched in full as long as that takes less than a tenth of a second or so,
/// beginning with the greedy one, which has at most 1 + ln(shapes) times as many as necessary.
Cover choose_cover(const ShapeTrials& trials, double most_regret = 0.01);

/// Octaves up to which the winner of a tuned shape serves another one unmeasured. Further away kernels change their
/// kind (one block, one wave, many waves; a row a thread, a warp, a block), and the occupancy model, which knows the
/// shape itself, is the better guess.
inline constexpr double kFarthestServed = 2;

/// A class of shapes that lies between tuned ones, and the one whose winner serves it.
struct ShapeBetween {
  Extents extents{1, 1, 1};  ///< powers of two
  std::size_t served_by = 0; ///< index into the tuned shapes

  bool operator==(const ShapeBetween&) const = default;
};

/// The classes of shapes that have a tuned shape in no class of their own, but one at or below and one at or above it
/// in every extent. Served by the nearest one (shape_distance()) that is at least as large in every extent, else by the
/// nearest of all. Where one extent alone differs among the tuned ones, that is the next larger size, however far away;
/// otherwise classes further than kFarthestServed from all of them are left out.
std::vector<ShapeBetween> shapes_between(std::span<const Extents> tuned);

}  // namespace hone
