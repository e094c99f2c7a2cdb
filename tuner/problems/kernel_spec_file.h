// Kernel files: a KernelSpec in TOML or JSON, and the family that commands make of it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hone/error.h>
#include <hone/tunable_kernel.h>

#include "tuner/problems/families.h"
#include "tuner/text/command_error.h"
#include "tuner/text/document.h"

namespace hone::tuner {

/// True if a word names such a file where the name of a family may stand: it ends in .toml or .json.
bool names_kernel_file(std::string_view word);

/// The member of a cache file of Kernel Tuner that names the parameter which is none of the kernel's, but the grid.
inline constexpr std::string_view kGridMember = "hone_grid";

/// The content of a kernel file.
struct KernelFileContent {
  TunableKernel kernel;
  std::string sizes;            ///< what `hone tune` takes where --size says nothing; "" if the file does not say
  std::string arguments_place;  ///< of `arguments`, "axpy.toml:4:13: "
  std::vector<std::filesystem::path> files;  ///< that it names, and those that they include
};

/// Grammar, as fields of TOML or JSON; they mean what the members of KernelSpec mean:
///
///     kernel    := name: TEXT, file: TEXT | source: TEXT, entry: TEXT, parameters: {NAME: [value…]…} | TEXT,
///                  where: [expr…], extents: [TEXT…], arguments: [argument…], block: [expr…],
///                  elements_per_block: [expr…], elements_per_thread: [expr…], grid_stride: BOOL,
///                  dynamic_smem_bytes: expr, cluster_blocks: expr, dependent_launch: expr, alignment: NUMBER,
///                  reference: "default" | {file: TEXT} | {source: TEXT} | {numpy: TEXT}, tolerance: NUMBER,
///                  inputs: [TEXT…], sizes: TEXT
///     argument  := in: TEXT | out: TEXT | inout: TEXT | scalar: TEXT | extent: expr, type: DTYPE,
///                  elements: expr, indices_below: expr, value: NUMBER | TEXT
///     expr      := TEXT | NUMBER
///     value     := NUMBER | TEXT | BOOL; numbers above 0 alone are an ordinal parameter, all others categorical
///
/// Files that a kernel file names lie beside it; `parameters` may name a cache file of Kernel Tuner, whose parameters
/// are taken, but for the one that its member `hone_grid` names. Throws CommandError(input), with "name:line:column: "
/// in front, for all that is wrong with the specification.
KernelFileContent read_kernel(std::string_view text, FileFormat format, std::string_view name,
                              const std::filesystem::path& folder);

/// The family of a kernel file, with its usual sizes. Reads each file once in a command; the result lives as long as
/// the process. Throws CommandError(input).
const FamilyRow& kernel_file_family(const std::filesystem::path& path);

/// A command begins: kernel files, or what they name, may have changed since they were read, and are read again.
void forget_kernel_files();

/// A text about a family of a kernel file, in which source files have the path by which the user finds them,
/// "sub/axpy.cu:3" for `hone check sub/axpy.toml`: the library knows them by name alone.
std::string with_typed_paths(const KernelFamily& family, std::string text);

/// The message of an error that the library threw for a family, with_typed_paths(), and with the place in its kernel
/// file in front where the error is about a field of it: arguments that are not those of the compiled kernel.
std::string message_for(const KernelFamily& family, const Error& error);

/// Runs what calls or checks a kernel of a file with options that are right: what has no meaning then (a reference that
/// fails, arguments that are not those of the compiled kernel) is a fault of the file, CommandError(input).
template <class Work>
auto of_kernel_file(const KernelFamily& family, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw Error(error.code(), message_for(family, error));
    throw CommandError(ExitCode::input, message_for(family, error));
  }
}

/// The path of the file that a family was read from, as it was typed; "" for all other families.
std::string kernel_file_of(const KernelFamily& family);

/// The kernel file that a family was read from, and all files that were read for it; none for all other families.
std::vector<std::filesystem::path> source_files(const KernelFamily& family);

/// The arguments with which `hone tune` tunes one problem, as tune_arguments(), also of a family that was read from a
/// file: "'axpy.toml' --size 2^20".
std::string tune_words(const Problem& problem);

/// The command that tunes one problem and stores its winner in this cache file.
std::string tune_command(const Problem& problem, const std::filesystem::path& cache);

/// The kernel of a family that was read from a file.
const TunableKernel& kernel_in_file(const std::filesystem::path& path);

}  // namespace hone::tuner
