// The results of a reduction: one element of its own type behind each of several pointers.
#pragma once

namespace hone {

template <unsigned... kNumbers>
struct Numbers {};

/// Numbers<0, 1, … kCount - 1>
template <unsigned kCount, unsigned... kNumbers>
struct NumbersBelow : NumbersBelow<kCount - 1, kCount - 1, kNumbers...> {};
template <unsigned... kNumbers>
struct NumbersBelow<0, kNumbers...> {
  using type = Numbers<kNumbers...>;
};

template <class... Out>
struct Outputs {
  template <class Op>
  static __device__ void write(typename Op::State state, typename Op::Index n, void* const* out) {
    write<Op>(state, n, out, typename NumbersBelow<sizeof...(Out)>::type());
  }

 private:
  template <class Op, unsigned... kNumbers>
  static __device__ void write(typename Op::State state, typename Op::Index n, void* const* out, Numbers<kNumbers...>) {
    Op::write(state, n, static_cast<Out*>(out[kNumbers])...);
  }
};

}  // namespace hone
