// The help texts: files of help/, compiled into the command.
#pragma once

#include <span>

#include <hone/kernel.h>

namespace hone::embedded {

/// One file for each subcommand and hone.txt for the command itself.
std::span<const SourceFile> help_texts();

}  // namespace hone::embedded
