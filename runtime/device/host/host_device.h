// The host device: runs kernel templates on the CPU.
#pragma once

#include <memory>

#include <hone/device.h>

namespace hone {

/// Opens the host device. Never fails: a missing compiler is reported by compile().
std::shared_ptr<Device> make_host_device();

}  // namespace hone
