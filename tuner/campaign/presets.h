// The presets: campaign files of presets/, compiled into the command.
#pragma once

#include <span>

#include <hone/kernel.h>

namespace hone::embedded {

std::span<const SourceFile> campaign_presets();

}  // namespace hone::embedded
