// The host device: runs kernel templates on the CPU.
#pragma once

#include <memory>

#include <hone/device.h>

#include "runtime/device/host/host_options.h"

namespace hone {

/// Opens the host device with the compiler that HONE_CXX names, if it is set. Never fails: a missing compiler is
/// reported by compile().
std::shared_ptr<Device> make_host_device();

std::shared_ptr<Device> make_host_device(const HostOptions& options);

/// The defaults, with the compiler that HONE_CXX names, if it is set.
HostOptions usual_host_options();

}  // namespace hone
