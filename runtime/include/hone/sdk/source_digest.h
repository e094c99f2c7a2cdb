// source_digest(): the digest by which the cache tells a kernel from what it was before an edit.
#pragma once

#include <string>

#include <hone/device_facts.h>
#include <hone/problem.h>

namespace hone {

/// A winner of `problem` on a device with these facts is stored under this, beside the problem: family_digest() of a
/// built-in family, whose sources are all in that. A program's family may make its kernels' text as it likes: the text
/// of the first policy that the problem may have counts, too, so that an edited kernel is another one even where its
/// code is not stored any more.
std::string source_digest(const Problem& problem, const DeviceFacts& facts);

}  // namespace hone
