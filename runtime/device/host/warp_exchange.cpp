#include "runtime/device/host/warp_exchange.h"

#include <algorithm>
#include <bit>

namespace hone {
namespace {

using hone_host::WarpCall;
using hone_host::WarpOp;
using Calls = WarpCall* const (&)[32];

template <class Visit>
void for_each_lane(unsigned mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
}

/// The lane that `lane` reads, as PTX's shfl.sync computes it.
int shuffle_source(const WarpCall& call, int lane) {
  const int first = lane & -call.width;
  const int last = first + call.width - 1;
  const int argument = call.argument & 31;
  int source = lane;
  switch (call.op) {
    case WarpOp::shuffle_up: source = lane - argument; return source >= first ? source : lane;
    case WarpOp::shuffle_down: source = lane + argument; break;
    case WarpOp::shuffle_xor: source = lane ^ argument; break;
    default: source = first | (argument & (call.width - 1)); break;
  }
  return source <= last ? source : lane;
}

std::optional<ExchangeError> shuffle(Calls calls, unsigned mask) {
  std::optional<ExchangeError> error;
  for_each_lane(mask, [&](int lane) {
    WarpCall& call = *calls[lane];
    if (call.width < 1 || call.width > 32 || !std::has_single_bit(static_cast<unsigned>(call.width))) {
      error = {lane, 0, true};
      return;
    }
    const int source = shuffle_source(call, lane);
    if ((mask >> source & 1) != 0) call.result = calls[source]->value;
    else error = {lane, source, false};
  });
  return error;
}

template <class Combine>
void reduce(Calls calls, unsigned mask, Combine combine) {
  unsigned total = static_cast<unsigned>(calls[std::countr_zero(mask)]->value);
  for_each_lane(mask & (mask - 1),
                [&](int lane) { total = combine(total, static_cast<unsigned>(calls[lane]->value)); });
  for_each_lane(mask, [&](int lane) { calls[lane]->result = total; });
}

unsigned ballot(Calls calls, unsigned mask) {
  unsigned votes = 0;
  for_each_lane(mask, [&](int lane) { votes |= static_cast<unsigned>(calls[lane]->value != 0) << lane; });
  return votes;
}

void match_any(Calls calls, unsigned mask) {
  for_each_lane(mask, [&](int lane) {
    unsigned equal = 0;
    for_each_lane(mask, [&](int other) {
      equal |= static_cast<unsigned>(calls[other]->value == calls[lane]->value) << other;
    });
    calls[lane]->result = equal;
  });
}

void match_all(Calls calls, unsigned mask) {
  const unsigned long long first = calls[std::countr_zero(mask)]->value;
  bool all = true;
  for_each_lane(mask, [&](int lane) { all = all && calls[lane]->value == first; });
  for_each_lane(mask, [&](int lane) {
    calls[lane]->result = all ? mask : 0;
    calls[lane]->all_match = all;
  });
}

void give_all(Calls calls, unsigned mask, unsigned result) {
  for_each_lane(mask, [&](int lane) { calls[lane]->result = result; });
}

}  // namespace

std::optional<ExchangeError> exchange(WarpCall* const (&calls)[32], unsigned mask) {
  const auto as_signed = [](auto choose) {
    return [choose](unsigned a, unsigned b) {
      return static_cast<unsigned>(choose(static_cast<int>(a), static_cast<int>(b)));
    };
  };
  const auto smaller = [](auto a, auto b) { return std::min(a, b); };
  const auto larger = [](auto a, auto b) { return std::max(a, b); };
  switch (calls[std::countr_zero(mask)]->op) {
    case WarpOp::sync: break;
    case WarpOp::shuffle_index:
    case WarpOp::shuffle_up:
    case WarpOp::shuffle_down:
    case WarpOp::shuffle_xor: return shuffle(calls, mask);
    case WarpOp::vote_any: give_all(calls, mask, ballot(calls, mask) != 0); break;
    case WarpOp::vote_all: give_all(calls, mask, ballot(calls, mask) == mask); break;
    case WarpOp::ballot: give_all(calls, mask, ballot(calls, mask)); break;
    case WarpOp::match_any: match_any(calls, mask); break;
    case WarpOp::match_all: match_all(calls, mask); break;
    case WarpOp::reduce_add: reduce(calls, mask, [](unsigned a, unsigned b) { return a + b; }); break;
    case WarpOp::reduce_min_signed: reduce(calls, mask, as_signed(smaller)); break;
    case WarpOp::reduce_max_signed: reduce(calls, mask, as_signed(larger)); break;
    case WarpOp::reduce_min_unsigned: reduce(calls, mask, smaller); break;
    case WarpOp::reduce_max_unsigned: reduce(calls, mask, larger); break;
    case WarpOp::reduce_and: reduce(calls, mask, [](unsigned a, unsigned b) { return a & b; }); break;
    case WarpOp::reduce_or: reduce(calls, mask, [](unsigned a, unsigned b) { return a | b; }); break;
    case WarpOp::reduce_xor: reduce(calls, mask, [](unsigned a, unsigned b) { return a ^ b; }); break;
  }
  return std::nullopt;
}

}  // namespace hone
