// HeldAgain: how the blocks of row_held.cuh sum rows again, and write them, when no warp has a role any more.
#pragma once

#include "held_states.cuh"

namespace hone {

template <class Kernel, class Roles_, unsigned kTile>
struct HeldAgain : HeldStates<Kernel, Roles_> {
  using Parts = HeldStates<Kernel, Roles_>;
  using typename Parts::Part, typename Parts::Roles, typename Parts::State;
  using Parts::all, Parts::arguments, Parts::kMostRows, Parts::rows, Parts::shared;
  using Parts::kAgainRows, Parts::kRing;
  using Order = typename Kernel::Order;

  /// The Results of a row, unless it is to be summed again.
  template <class Results>
  struct KnownRow {
    Results results;
    bool is_again;
  };

  /// Row r when its State is known.
  __device__ auto known_row(unsigned r) const {
    const unsigned place = r % kMostRows;
    sleep_until_phase(shared.combined + place, r / kMostRows % 2);
    const State of_row = shared.of_row[place];
    const auto results = results_of(of_row, place);
    bool is_again = false;
    if constexpr (Order::kMaySumAgain) is_again = Kernel::sums_again(of_row, all);
    return KnownRow<decltype(results_of(of_row, place))>{results, is_again};
  }
  __device__ void note_again(unsigned r) const { atomicOr(shared.again + r / 32, 1u << r % 32); }

  /// Makes the State of row r once more, from the block's part in memory and those of others, with the one in
  /// shared.of_row[0], which it replaces. `number` counts the calls. All threads call it.
  __device__ void sum_again(unsigned r, unsigned number) const {
    const unsigned warp = threadIdx.x / kWarpThreads, lane = threadIdx.x % kWarpThreads;
    if (warp < Roles::kGroupWarps) {
      const State known = shared.of_row[0];
      const Part part = this->part(r, threadIdx.x);
      auto sums = Kernel::sums_of_part(part.row, r, all, known);
#pragma unroll 1
      for (unsigned c = 0; c < arguments.chunks; ++c)
        Kernel::template add_held<kTile>(sums, this->chunk_in_memory(part, c, threadIdx.x), all, known);
      const auto share = Order::in_all_lanes(Kernel::state_of(sums, all), all);
      if (lane == 0) shared.of_warp[0][warp] = share;
    }
    __syncthreads();
    if (warp == 0) {
      // Who publishes this State has the last one, for which all have published theirs, and so have read those before.
      TaggedState<State>* const states = this->states(kRing + number % kAgainRows);
      this->publish(states, 0, r, lane, Roles::kGroupWarps);
      const State of_row = this->template row_state<1>(states, r, lane);  // in few registers
      if (lane == 0) shared.of_row[0] = of_row;
    }
    __syncthreads();
  }

  /// Writes the rows that are left. All threads call it.
  __device__ void write_rows_again() const {
    unsigned number = 0;
#pragma unroll 1
    for (unsigned first = 0; first < rows; first += 32) {
#pragma unroll 1
      for (unsigned left = shared.again[first / 32]; left != 0; left &= left - 1) {
        const unsigned r = first + __ffs(static_cast<int>(left)) - 1;
        if (threadIdx.x == 0) shared.of_row[0] = State();
        __syncthreads();
#pragma unroll 1
        for (unsigned time = 0; time < 2; ++time) sum_again(r, number++);
        if (threadIdx.x < Roles::kGroupThreads) {
          const Part part = this->part(r, threadIdx.x);
          const auto results = Kernel::results_again_of(shared.of_row[0], all);
          part.row.write_singles(results, part.row.load_single());
#pragma unroll 1
          for (unsigned c = 0; c < arguments.chunks; ++c)
            Kernel::template write_held<1>(this->chunk_in_memory(part, c, threadIdx.x), results);
        }
        __syncthreads();
      }
    }
  }

 private:
  __device__ auto results_of(const State& of_row, unsigned place) const {
    if constexpr (Order::kKeepsShares) return Kernel::results_of(of_row, shared.of_block[place], all);
    else return Kernel::results_of(of_row, all);
  }
};

}  // namespace hone
