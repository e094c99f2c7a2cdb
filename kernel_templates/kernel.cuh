// The kernel of all built-in families: each of their launches runs an instantiation of this one template.
#pragma once

namespace hone {

template <auto kBody>
struct ArgumentsOf;
template <class Arguments, void (*kBody)(const Arguments&)>
struct ArgumentsOf<kBody> {
  using type = Arguments;
};

/// Runs kBody with the arguments of the launch, one struct of *_arguments.h. kMinBlocks is the second argument of
/// __launch_bounds__; 0 leaves the number of registers to the compiler.
template <auto kBody, unsigned kBlockThreads, unsigned kMinBlocks = 0>
__global__ void __launch_bounds__(kBlockThreads, kMinBlocks)
    kernel(const __grid_constant__ typename ArgumentsOf<kBody>::type arguments) {
  kBody(arguments);
}

}  // namespace hone
