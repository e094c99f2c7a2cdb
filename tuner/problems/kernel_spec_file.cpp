#include "tuner/problems/kernel_spec_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <hone/error.h>
#include <hone/sdk/kernel_file.h>
#include <hone/tune_arguments.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tuner/problems/numpy_reference.h"
#include "tuner/problems/selection.h"
#include "tuner/problems/shapes.h"
#include "tuner/text/document_reader.h"
#include "tuner/text/quantities.h"
#include "tuner/text/table.h"

namespace hone::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 19> kKernelFields{
    "name", "file", "source", "entry", "parameters", "where", "extents", "arguments", "block", "grid_stride",
    "elements_per_block", "elements_per_thread", "dynamic_smem_bytes", "cluster_blocks", "dependent_launch",
    "alignment", "reference", "tolerance", "inputs"};
constexpr std::string_view kSizes = "sizes";
constexpr std::array<std::string_view, 5> kArgumentKinds{"in", "out", "inout", "scalar", "extent"};
constexpr std::array<std::string_view, 9> kArgumentFields{"in",   "out",      "inout",         "scalar", "extent",
                                                          "type", "elements", "indices_below", "value"};
/// The fields that say something of some kinds of arguments alone.
struct FieldUse {
  std::string_view field;
  bool of_arrays;  ///< else of scalars
};
constexpr std::array<FieldUse, 3> kFieldUses{{{"elements", true}, {"indices_below", true}, {"value", false}}};
constexpr std::array<std::string_view, 3> kReferenceFields{"file", "source", "numpy"};

/// `hone tune` tunes this where neither --size nor the file says anything, for each number of extents.
constexpr std::array<std::string_view, 3> kUsualSizes{"2^24", "2^12x2^12", "2^8x2^8x2^8"};

class KernelReader : DocumentReader {
 public:
  KernelReader(std::string_view name, const fs::path& folder) : DocumentReader(name), folder_(folder) {}

  KernelFileContent read(const FileTable& table) {
    std::vector<std::string_view> known(kKernelFields.begin(), kKernelFields.end());
    known.push_back(kSizes);
    require_known(table, known, "a kernel");
    std::string sizes;
    for (const FileField& field : table) read_field(field, sizes);
    if (!numpy_.empty()) spec_.reference = numpy_reference(spec_, numpy_, numpy_place_);
    try {
      TunableKernel kernel(spec_);
      if (!spec_.file.empty()) add_file(spec_.file, kernel.family().sources());
      return {std::move(kernel), sizes, error(place_of(table, "arguments", ""), "").what(), files_};
    } catch (const KernelSpecError& problem) {
      throw error(place_of(table, problem.field(), problem.item()), problem.what());
    } catch (const Error& problem) {
      throw error(place_of(table, "file", ""), problem.what());
    }
  }

 private:
  void add_file(const fs::path& file, std::span<const SourceFile> headers) {
    files_.push_back(file);
    for (const SourceFile& header : headers) files_.push_back(file.parent_path() / header.name);
  }

  void read_field(const FileField& field, std::string& sizes) {
    const auto texts = [&] {
      std::vector<std::string> all;
      for (const FileValue* value : read_list(field)) all.push_back(read_word(field, *value));
      return all;
    };
    const auto word = [&] { return read_word(field, field.value); };
    if (field.name == "name") spec_.name = read_text(field);
    if (field.name == "file") spec_.file = folder_ / read_text(field);
    if (field.name == "source") spec_.source = read_text(field);
    if (field.name == "entry") spec_.entry = read_text(field);
    if (field.name == "parameters") {
      if (const auto* file = std::get_if<std::string>(&field.value.content))
        import_parameters(field, *file);
      else
        read_parameters(read_table(field, field.value));
    }
    if (field.name == "where") spec_.where = texts();
    if (field.name == "extents") spec_.extents = texts();
    if (field.name == "arguments")
      for (const FileValue* value : read_list(field))
        read_argument(value->at, read_table(field, *value, "a list of tables"));
    if (field.name == "block") spec_.block = texts();
    if (field.name == "elements_per_block") spec_.elements_per_block = texts();
    if (field.name == "elements_per_thread") spec_.elements_per_thread = texts();
    if (field.name == "grid_stride") spec_.grid_stride = read_flag(field);
    if (field.name == "dynamic_smem_bytes") spec_.dynamic_smem_bytes = word();
    if (field.name == "cluster_blocks") spec_.cluster_blocks = word();
    if (field.name == "dependent_launch") spec_.dependent_launch = word();
    if (field.name == "alignment") spec_.alignment = read_alignment(field);
    if (field.name == "reference") read_reference(field);
    if (field.name == "tolerance") spec_.tolerance = read_tolerance(field);
    if (field.name == "inputs") spec_.inputs = texts();
    if (field.name == kSizes) sizes = word();
  }

  std::uint32_t read_alignment(const FileField& field) const {
    const double bytes = read_number(field);
    for (const std::uint32_t known : {1u, 2u, 4u, 8u, 16u})
      if (bytes == known) return known;
    throw error(field.value.at, "'alignment' is 1, 2, 4, 8 or 16 bytes");
  }

  /// A number, or the text of one that the format has no spelling for.
  double read_scalar(const FileField& field) const {
    const auto* text = std::get_if<std::string>(&field.value.content);
    if (!text) return read_number(field);
    if (const std::optional<double> number = parse_number(*text)) return *number;
    throw error(field.value.at, fmt::format("'{}' is '{}', which is no number", field.name, printable(*text)));
  }

  double read_tolerance(const FileField& field) const {
    const double tolerance = read_number(field);
    if (!(tolerance >= 0 && std::isfinite(tolerance))) throw error(field.value.at, "'tolerance' is not below 0");
    return tolerance;
  }

  std::string_view keep(std::string text) { return names_.emplace_back(std::move(text)); }

  void read_parameters(const FileTable& table) {
    for (const FileField& field : table) {
      std::vector<std::int32_t> numbers;
      std::vector<std::string_view> texts;
      bool is_ordinal = true;
      for (const FileValue* value : read_list(field)) {
        if (const bool* flag = std::get_if<bool>(&value->content)) {
          texts.push_back(*flag ? "true" : "false");
          is_ordinal = false;
          continue;
        }
        const double* number = std::get_if<double>(&value->content);
        texts.push_back(keep(read_word(field, *value)));
        is_ordinal = is_ordinal && number && *number >= 1 && *number <= std::numeric_limits<std::int32_t>::max();
        if (is_ordinal) numbers.push_back(static_cast<std::int32_t>(*number));
      }
      const std::string_view name = keep(field.name);
      spec_.parameters.push_back(is_ordinal ? ordinal(name, numbers) : categorical(name, texts));
    }
  }

  /// Takes those of a cache file of Kernel Tuner, which is not closed while the tuning that writes it may go on. In one
  /// that Hone wrote, the grid is a parameter, too.
  void import_parameters(const FileField& field, const std::string& file) {
    DocumentText document = located(field.value.at, [&] { return read_document_file(folder_ / file, "Kernel Tuner"); });
    add_file(folder_ / file, {});
    std::string& text = document.text;
    text.erase(text.find_last_not_of(" \n\r\t") + 1);
    const std::string path = (folder_ / file).string();
    if (text.empty())
      throw error(field.value.at,
                  fmt::format("'{}' is empty; a cache file of Kernel Tuner was expected, with tune_params",
                              printable(path)));
    if (text.ends_with(',')) text.pop_back();
    if (!text.ends_with("}}") && !text.ends_with("}\n}")) text += "}}";
    const FileTable table = read_document(text, FileFormat::json, path);
    const auto space = std::ranges::find_if(table, [](const FileField& each) { return each.name == "tune_params"; });
    if (space == table.end())
      throw error(field.value.at,
                  fmt::format("'{}' has no tune_params, so it is no cache file of Kernel Tuner", printable(path)));
    KernelReader reader(path, folder_);
    FileTable parameters = reader.read_table(*space, space->value);
    const auto grid = std::ranges::find_if(table, [](const FileField& each) { return each.name == kGridMember; });
    if (grid != table.end())
      std::erase_if(parameters, [&](const FileField& each) { return each.name == reader.read_text(*grid); });
    reader.read_parameters(parameters);
    spec_.parameters = reader.spec_.parameters;
    names_ = std::move(reader.names_);
  }

  void read_argument(FilePosition at, const FileTable& table) {
    require_known(table, kArgumentFields, "an argument");
    KernelArgument argument;
    const FileField *kind = nullptr, *type = nullptr;
    for (const FileField& field : table) {
      const auto known = std::find(kArgumentKinds.begin(), kArgumentKinds.end(), field.name);
      if (known != kArgumentKinds.end()) {
        if (kind) throw error(field.at, fmt::format("an argument is either '{}' or '{}'", kind->name, field.name));
        kind = &field;
        argument.kind = static_cast<KernelArgument::Kind>(known - kArgumentKinds.begin());
        argument.name = read_word(field, field.value);
      }
      if (field.name == "type") {
        type = &field;
        const std::string text = read_text(field);
        argument.dtype = located(field.value.at, [&] { return parse_one_dtype(text); });
      }
      if (field.name == "elements") argument.elements = read_word(field, field.value);
      if (field.name == "indices_below") argument.below = read_word(field, field.value);
      if (field.name == "value") argument.value = read_scalar(field);
    }
    if (!kind)
      throw error(at, fmt::format("an argument has one of {}, with its name", fmt::join(kArgumentKinds, ", ")));
    if (!type) throw error(at, fmt::format("the argument '{}' has no type, such as \"f32\"", printable(argument.name)));
    for (const FieldUse& use : kFieldUses) {
      const auto field = std::ranges::find(table, use.field, &FileField::name);
      const bool is_fitting = use.of_arrays ? argument.is_array() : argument.kind == KernelArgument::Kind::scalar;
      if (field != table.end() && !is_fitting)
        throw error(field->at, fmt::format("'{}' is for {}, and '{}' is none", use.field,
                                           use.of_arrays ? "arrays" : "scalars", printable(argument.name)));
    }
    if (argument.kind == KernelArgument::Kind::extent) argument.elements = argument.name;
    spec_.arguments.push_back(std::move(argument));
  }

  void read_reference(const FileField& field) {
    if (const auto* text = std::get_if<std::string>(&field.value.content)) {
      if (*text == "default") return;
      throw error(field.value.at,
                  "'reference' is \"default\" (the default policy), { file = … }, { source = … } or { numpy = … }");
    }
    const FileTable& table = read_table(field, field.value);
    require_known(table, kReferenceFields, "a reference");
    if (table.size() != 1) throw error(field.value.at, "a reference has either a file, a source or a NumPy expression");
    const std::string text = read_text(table.front());
    if (table.front().name == "numpy") {
      if (text.find_first_not_of(" \n\r\t") == std::string::npos)
        throw error(table.front().value.at, "the NumPy expression is empty");
      numpy_ = text;
      numpy_place_ = error(table.front().value.at, "").what();
      return;
    }
    if (table.front().name == "source") return void(spec_.reference = KernelReference::kernel(text));
    try {
      const Unit unit = read_kernel_file(folder_ / text, {""});
      add_file(folder_ / text, unit.headers);
      spec_.reference = KernelReference::kernel(unit.source);
    } catch (const Error& problem) {
      throw error(table.front().value.at, problem.what());
    }
  }

  /// Where a field stands, or the one among its values that is `item`; the beginning of the file for what is not there.
  static FilePosition place_of(const FileTable& table, std::string_view name, std::string_view item) {
    const auto field = std::find_if(table.begin(), table.end(), [&](const auto& each) { return each.name == name; });
    if (field == table.end()) return {};
    return place_in(field->value, item).value_or(field->value.at);
  }

  static std::optional<FilePosition> place_in(const FileValue& value, std::string_view item) {
    if (const auto* text = std::get_if<std::string>(&value.content); text && *text == item) return value.at;
    if (const auto* list = std::get_if<FileList>(&value.content))
      for (const FileValue& each : *list)
        if (const auto at = place_in(each, item)) return at;
    if (const auto* table = std::get_if<FileTable>(&value.content))
      for (const FileField& field : *table) {
        if (field.name == item) return field.at;
        if (const auto at = place_in(field.value, item)) return at;
      }
    return std::nullopt;
  }

  fs::path folder_;
  KernelSpec spec_;
  std::string numpy_, numpy_place_;  ///< the expression of the reference, and "axpy.toml:10:23: "; "" if there is none
  std::deque<std::string> names_;  ///< what the parameters' views point into
  std::vector<fs::path> files_;    ///< as KernelFileContent has them
};

/// A kernel file that was read.
struct LoadedKernel {
  std::string path, typed_path, sizes, arguments_place;
  std::vector<fs::path> files;
  TunableKernel kernel;
  FamilyRow row;
  bool is_current = true;  ///< it was read for the command that runs
};

std::mutex mutex;

std::deque<LoadedKernel>& loaded_kernels() {
  static std::deque<LoadedKernel> kernels;
  return kernels;
}

DType dtype_of(const KernelSpec& spec) {
  return std::ranges::find_if(spec.arguments, &KernelArgument::is_array)->dtype;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

LoadedKernel& load(const fs::path& path) {
  const std::string absolute = fs::absolute(path).lexically_normal().string();
  const std::scoped_lock lock(mutex);
  for (LoadedKernel& known : loaded_kernels())
    if (known.is_current && known.path == absolute) return known;
  const DocumentText document = read_document_file(path, "kernel");
  const KernelFileContent content =
      read_kernel(document.text, document.format, printable(path.string()), path.parent_path());
  LoadedKernel& loaded = loaded_kernels().emplace_back(
      LoadedKernel{absolute, path.string(), content.sizes, content.arguments_place, content.files, content.kernel, {}});
  loaded.files.push_back(path);
  const KernelFamily& family = loaded.kernel.family();
  if (loaded.sizes.empty()) loaded.sizes = kUsualSizes[family.extent_names().size() - 1];
  loaded.row = {.family = [&family]() -> const KernelFamily& { return family; },
                .operations = "run",
                .dtypes = info(dtype_of(loaded.kernel.spec())).name,
                .shapes = loaded.sizes};
  return loaded;
}

const LoadedKernel* loaded_from_file(const KernelFamily& family) {
  const std::scoped_lock lock(mutex);
  for (const LoadedKernel& loaded : loaded_kernels())
    if (&loaded.kernel.family() == &family) return &loaded;
  return nullptr;
}

}  // namespace

bool names_kernel_file(std::string_view word) { return word.ends_with(".toml") || word.ends_with(".json"); }

KernelFileContent read_kernel(std::string_view text, FileFormat format, std::string_view name, const fs::path& folder) {
  return KernelReader(name, folder).read(read_document(text, format, name));
}

std::string with_typed_paths(const KernelFamily& family, std::string text) {
  const LoadedKernel* const loaded = loaded_from_file(family);
  const fs::path folder = loaded ? loaded->kernel.spec().file.parent_path() : fs::path();
  if (folder.empty()) return text;
  std::vector<std::string> names{loaded->kernel.spec().file.filename().string()};
  for (const SourceFile& header : family.sources()) names.push_back(header.name);
  const auto is_part = [](char c) { return is_word(c) || c == '.' || c == '/' || c == '-'; };
  for (const std::string& name : names) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
      const std::size_t end = at + name.size();
      const bool is_place = end < text.size() && (text[end] == ':' || text[end] == '(');
      if (is_place && (at == 0 || !is_part(text[at - 1]))) text.insert(at, (folder / "").string());
      at = text.find(name, at) + name.size();
    }
  }
  return text;
}

std::string message_for(const KernelFamily& family, const Error& error) {
  const LoadedKernel* const loaded = loaded_from_file(family);
  const auto* const of_field = dynamic_cast<const KernelSpecError*>(&error);
  const bool has_place = loaded && of_field && of_field->field() == "arguments";
  return (has_place ? loaded->arguments_place : "") + with_typed_paths(family, error.what());
}

void forget_kernel_files() {
  const std::scoped_lock lock(mutex);
  for (LoadedKernel& loaded : loaded_kernels()) loaded.is_current = false;
}

const FamilyRow& kernel_file_family(const fs::path& path) { return load(path).row; }

const TunableKernel& kernel_in_file(const fs::path& path) { return load(path).kernel; }

std::string kernel_file_of(const KernelFamily& family) {
  const LoadedKernel* const loaded = loaded_from_file(family);
  return loaded ? loaded->typed_path : "";
}

std::vector<fs::path> source_files(const KernelFamily& family) {
  const LoadedKernel* const loaded = loaded_from_file(family);
  return loaded ? loaded->files : std::vector<fs::path>();
}

std::string tune_words(const Problem& problem) {
  const LoadedKernel* const loaded = loaded_from_file(*problem.family);
  if (!loaded) return tune_arguments(problem);
  std::string words = fmt::format("{} --size {}", shell_quoted(loaded->typed_path), format_shape(problem));
  if (problem.alignment != kMaxAlignment) words += fmt::format(" --align {}", problem.alignment);
  if (problem.launch_context != LaunchContext::stream)
    words += fmt::format(" --context {}", name(problem.launch_context));
  return words;
}

std::string tune_command(const Problem& problem, const fs::path& cache) {
  return fmt::format("hone tune {} --cache {}", tune_words(problem), shell_quoted(cache.string()));
}

}  // namespace hone::tuner
