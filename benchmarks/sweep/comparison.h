// Comparison: Hone and its peers on one cell after the other, with the same buffers and clock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hone/own_stream.h>
#include <hone/session.h>

#include "benchmarks/common/ceilings.h"
#include "benchmarks/common/figures.h"
#include "benchmarks/common/input_arena.h"
#include "benchmarks/common/race_track.h"
#include "benchmarks/peers/peer.h"
#include "benchmarks/sweep/cells.h"

namespace hone::benchmarks {

/// The measurements of a cell at one address.
struct Row {
  Cell cell;
  int offset = 0;          ///< of Cell::offsets
  std::int64_t bytes = 0;  ///< that the operation must move
  Timing hone = {};
  std::string policy = {};      ///< Hone's winner
  std::string source = {};      ///< "tuned", "model", or the kind of a loan
  PlainTiming read = {};        ///< of as many bytes, from an aligned address on
  std::vector<PeerTiming> peers = {};

  Ceiling ceiling() const { return ceiling_of(read, hone, peers); }
  double percent_of_ceiling() const { return ceiling().percent(hone); }

  /// How many times as long the peer takes; NaN when it does not take part.
  double ratio_to(std::string_view peer) const;
};

/// A second way in which Hone solves each problem: with other numerics, or with the winners of another session.
struct OtherHone {
  std::string name;
  Session& session;
  Numerics numerics = Numerics::fast;
};

/// Allocates once, for the largest of `cells`. Not thread-safe.
class Comparison {
 public:
  Comparison(Session& session, std::vector<std::unique_ptr<Peer>> peers, const std::vector<Cell>& cells,
             TimingOptions options, std::optional<OtherHone> other = {});

  /// Prepares what is not prepared yet, then times everyone at once. One row for each offset of the cell.
  std::vector<Row> run(const Cell& cell);

  /// Replaces TimingOptions::cap_ms for the cells to come.
  void set_cell_ms(double cap_ms) { options_.cap_ms = cap_ms; }

  const std::vector<std::unique_ptr<Peer>>& peers() const { return peers_; }
  /// The time that preparing took.
  double tuning_seconds() const { return tuning_seconds_; }
  Stream stream() const { return stream_.get(); }
  InputArena& arena() { return arena_; }

 private:
  class Seat;

  Session& session_;
  std::vector<std::unique_ptr<Peer>> peers_;
  TimingOptions options_;
  std::optional<OtherHone> other_;
  InputArena arena_;
  RaceTrack track_;
  Ceilings ceilings_;
  OwnStream stream_;
  std::string filled_with_;  ///< the dtype that the arena is full of
  double tuning_seconds_ = 0;
};

}  // namespace hone::benchmarks
