// The plain kernel of a family that has one (Verifier::has_reference_kernel()): running it, and whether it can be
// relied on.
#pragma once

#include <memory>
#include <span>

#include <hone/device.h>
#include <hone/kernel_family.h>

namespace hone {

/// Enqueues the plain kernel in one of Verifier::reference_orders().
void enqueue_reference(Device& device, const Module& reference, const Problem& problem, int order,
                       std::span<void* const> buffers, Stream stream);

/// Runs the plain kernel on Verifier::order_problems() in every order; waits for the stream. Throws
/// Error(invalid_argument) when at least two of the problems have results that depend on the order. `reference` is the
/// module of `problem`.
void require_one_result(const std::shared_ptr<Device>& device, const Problem& problem, const Module& reference,
                        Stream stream);

/// Throws Error(invalid_argument) with what Verifier::law_fault() says.
void require_laws(const Problem& problem);

}  // namespace hone
