#include "benchmarks/sweep/comparison.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <hone/error.h>
#include <hone/tuned_reduce.h>

#include "benchmarks/common/numbers.h"
#include "benchmarks/common/prepared_call.h"

namespace hone::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

/// The arena is at least so many times the cache, so that mid-sized inputs have copies enough.
constexpr std::size_t kLeastArenaInCaches = 8;

std::size_t arena_bytes(const Device& device, const std::vector<Cell>& cells) {
  std::size_t bytes = kLeastArenaInCaches * cache_bytes(device.facts());
  for (const Cell& cell : cells)
    bytes = std::max(bytes, InputArena::bytes_for(cell.dtype, cell.n, input_count(problem_of(cell, 0))));
  return bytes;
}

/// Results agree up to the rounding of different orders of adding. A product that left the range says nothing, nor does
/// the last digit of a variance that may be divided by n or n − 1.
bool agree(std::string_view operation, const std::vector<long double>& ours, const std::vector<long double>& theirs) {
  if (ours.size() != theirs.size()) return false;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const long double a = ours[i], b = theirs[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const bool out_of_range = !std::isnormal(a) || !std::isnormal(b) || std::fabs(a) < 1e-30L || std::fabs(a) > 1e30L;
    if (operation == "product" && out_of_range) continue;
    const long double allowed = operation == "mean_variance" || operation == "product" ? 1e-2L : 1e-3L;
    if (!(std::fabs(a - b) <= allowed * std::max(std::fabs(a), std::fabs(b)))) return false;
  }
  return true;
}

/// Returns an address that a Mover can begin with: no later than `memory`, and within the same allocation, which is
/// aligned.
const void* aligned_down(const void* memory) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(memory) / kPackBytes * kPackBytes);
}

}  // namespace

double Row::ratio_to(std::string_view peer) const {
  for (const PeerTiming& one : peers)
    if (one.peer == peer) return one.timing.median_us / hone.median_us;
  return std::numeric_limits<double>::quiet_NaN();
}

/// Hone's calls of one problem: in a graph through a Plan, whose workspace the graph keeps.
class Comparison::Seat {
 public:
  Seat(Session& session, const InputArena& arena, const Cell& cell, int offset, int most_copies)
      : session_(session),
        call_(session, problem_of(cell, offset)),
        layout_(arena.layout(cell.dtype, cell.n, input_count(problem()), offset, most_copies)) {
    for (const BufferSpec& buffer : problem().family->buffers(problem())) {
      if (buffer.is_input) continue;
      specs_.push_back(buffer);
      outputs_.emplace_back(session.device(), buffer.size_bytes());
    }
    for (int copy = 0; copy < layout_.copies; ++copy) {
      std::vector<void*>& buffers = buffers_.emplace_back();
      for (int input = 0; input < layout_.inputs; ++input) buffers.push_back(arena.at(layout_, copy, input));
      for (const DeviceBuffer& output : outputs_) buffers.push_back(output.data());
    }
  }

  std::span<const void* const> inputs(int turn) const {
    return std::span(buffers_of(turn)).first(static_cast<std::size_t>(layout_.inputs));
  }

  int copies() const { return layout_.copies; }

  void enqueue(int turn, Stream stream) { call_.enqueue(buffers_of(turn), stream); }

  std::vector<long double> result(Stream stream) const {
    std::vector<long double> values;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      std::vector<std::byte> bytes(specs_[i].size_bytes());
      session_.device()->copy_to_host(bytes.data(), outputs_[i].data(), bytes.size(), stream);
      session_.device()->synchronize(stream);
      const std::vector<long double> more = decode(specs_[i].dtype, bytes);
      values.insert(values.end(), more.begin(), more.end());
    }
    return values;
  }

  const Problem& problem() const { return call_.problem(); }
  DType result_dtype() const { return specs_.front().dtype; }
  const Winner& winner() const { return call_.winner(); }
  std::string policy() const {
    return fmt::format("{} blocks<={}{}", call_.policy(), winner().candidate.geometry.max_blocks,
                       winner().tuned ? "" : " (not tuned)");
  }
  std::string_view source() const {
    return winner().loan != Loan::none ? name(winner().loan) : winner().tuned ? "tuned" : "model";
  }

 private:
  /// Made beforehand, so that no call allocates.
  const std::vector<void*>& buffers_of(int turn) const {
    return buffers_[static_cast<std::size_t>(turn % layout_.copies)];
  }

  Session& session_;
  PreparedCall call_;
  InputLayout layout_;
  std::vector<BufferSpec> specs_;
  std::vector<DeviceBuffer> outputs_;
  std::vector<std::vector<void*>> buffers_;  ///< by copy of the inputs
};

Comparison::Comparison(Session& session, std::vector<std::unique_ptr<Peer>> peers, const std::vector<Cell>& cells,
                       TimingOptions options, std::optional<OtherHone> other)
    : session_(session),
      peers_(std::move(peers)),
      options_(options),
      other_(std::move(other)),
      arena_(session.device(), arena_bytes(*session.device(), cells)),
      track_(session.device()),
      ceilings_(session.device(), track_),
      stream_(*session.device()) {
  arena_.fill(DType::f32, stream());
  filled_with_ = info(DType::f32).name;
}

std::vector<Row> Comparison::run(const Cell& cell) {
  if (filled_with_ != info(cell.dtype).name) arena_.fill(cell.dtype, stream());
  filled_with_ = info(cell.dtype).name;
  const std::string_view operation = reduce_family().operations()[cell.operation];

  std::vector<Row> rows;
  std::vector<std::unique_ptr<Seat>> seats, other_seats;
  std::vector<std::unique_ptr<PeerCall>> calls;
  std::vector<Contestant> contestants;
  for (const int offset : cell.offsets) {
    const auto start = Clock::now();
    seats.push_back(std::make_unique<Seat>(session_, arena_, cell, offset, options_.most_calls));
    if (other_) {
      Cell same = cell;
      same.numerics = other_->numerics;
      other_seats.push_back(std::make_unique<Seat>(other_->session, arena_, same, offset, options_.most_calls));
    }
    tuning_seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
    Seat& seat = *seats.back();
    Row row{.cell = cell, .offset = offset, .bytes = seat.problem().family->bytes_moved(seat.problem())};
    row.policy = seat.policy();
    row.source = seat.source();
    contestants.push_back({"Hone", [&seat](int turn, Stream stream) { seat.enqueue(turn, stream); }});

    seat.enqueue(0, stream());
    const std::vector<long double> ours = seat.result(stream());
    if (!other_seats.empty()) {
      Seat& other = *other_seats.back();
      other.enqueue(0, stream());
      row.peers.push_back({other_->name, {}, agree(operation, ours, other.result(stream()))});
      contestants.push_back({other_->name, [&other](int turn, Stream stream) { other.enqueue(turn, stream); }});
    }
    for (const auto& peer : peers_) {
      std::unique_ptr<PeerCall> planned = peer->plan({operation, cell.dtype, seat.result_dtype(), cell.n});
      if (!planned) continue;
      PeerCall& call = *calls.emplace_back(std::move(planned));
      call.enqueue(seat.inputs(0), stream());
      row.peers.push_back({std::string(peer->name()), {}, agree(operation, ours, call.result(stream()))});
      contestants.push_back({std::string(peer->name()),
                             [&seat, &call](int turn, Stream stream) { call.enqueue(seat.inputs(turn), stream); }});
    }
    rows.push_back(std::move(row));
  }

  if (rows.empty()) return rows;
  // The arrays of a call lie one behind the other.
  const Seat& first = *seats.front();
  const auto input_bytes = static_cast<std::size_t>(cell.n) * info(cell.dtype).size_bytes * first.inputs(0).size();
  std::vector<const void*> inputs;
  for (int copy = 0; copy < first.copies(); ++copy) inputs.push_back(aligned_down(first.inputs(copy).front()));
  const PlainMove& read = ceilings_.fastest(inputs, nullptr, input_bytes);
  contestants.push_back({read.name, [&](int turn, Stream stream) {
                           read.enqueue(inputs[static_cast<std::size_t>(turn) % inputs.size()], nullptr, stream);
                         }});

  const auto bytes = static_cast<std::size_t>(rows.front().bytes);
  const std::vector<Timing> timings = track_.time(stream(), cell.setting, contestants, bytes, options_);
  std::size_t next = 0;
  for (Row& row : rows) {
    row.hone = timings[next++];
    for (PeerTiming& peer : row.peers) peer.timing = timings[next++];
  }
  for (Row& row : rows) row.read = {read.name, timings[next]};
  return rows;
}

}  // namespace hone::benchmarks
