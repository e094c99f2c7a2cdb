// Which devices share winners, and which compilers share code.
#pragma once

#include <string_view>

#include "cache/records.h"

namespace hone::cache {

/// True if winners of one device serve on the other: kind and architecture are equal, and so is each `key=value;` of
/// their identities. Two fields are looser. A `name` that only one of them has is not compared: identities of GPUs had
/// one up to schema version 5. Memory clocks may differ by a tenth: drivers read them a little differently, and
/// different kinds of memory are further apart.
bool same_device(const DeviceRecord& a, const DeviceRecord& b);

/// True if code of one compiler may be run where the other is installed. The identity of a compiler is its file, `:`,
/// its size, and then `+` and the options that change what code it is, such as sanitizers; only these are compared. ""
/// is no compiler, with which any code agrees.
bool same_options(std::string_view compiler, std::string_view other);

}  // namespace hone::cache
