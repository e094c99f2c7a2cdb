// The source files that are compiled into the library, by folder.
#pragma once

#include <span>

#include <hone/kernel.h>

namespace hone::embedded {

/// kernel_templates/: what every device compiles.
std::span<const SourceFile> kernel_templates();

/// runtime/device/host/prelude/: what the host device puts in front of kernel source.
std::span<const SourceFile> host_prelude();

}  // namespace hone::embedded
