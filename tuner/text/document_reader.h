// DocumentReader: takes the fields of a document as what they must be, and complains where they stand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/text/document.h"

namespace hone::tuner {

/// Every method throws error_at().
class DocumentReader {
 public:
  /// `name` is that of the file in messages, and must outlive the reader.
  explicit DocumentReader(std::string_view name) : name_(name) {}

  CommandError error(FilePosition at, std::string_view message) const { return error_at(name_, at, message); }
  CommandError wrong_kind(const FileField& field, const FileValue& value, std::string_view wanted) const;

  void require_known(const FileTable& table, std::span<const std::string_view> known, std::string_view what) const;

  bool read_flag(const FileField& field) const;
  std::string read_text(const FileField& field) const { return read_text(field, field.value); }
  std::string read_text(const FileField& field, const FileValue& value) const;
  double read_number(const FileField& field) const;
  const FileTable& read_table(const FileField& field, const FileValue& value,
                              std::string_view wanted = "a table") const;

  /// A text, or a whole number as one.
  std::string read_word(const FileField& field, const FileValue& value) const;

  /// The values of a list; a value alone is a list of one.
  std::vector<const FileValue*> read_list(const FileField& field) const;

  /// Returns what `work` returns; its complaints get the position.
  template <class Work>
  auto located(FilePosition at, Work work) const {
    try {
      return work();
    } catch (const CommandError& error) {
      throw this->error(at, error.what());
    }
  }

 private:
  std::string_view name_;
};

/// The text of a JSON or TOML file, and which of the two its name says it is.
struct DocumentText {
  std::string text;
  FileFormat format = FileFormat::json;
};

/// `what` is what the file is for, in messages: "campaign". Throws CommandError(input).
DocumentText read_document_file(const std::filesystem::path& path, std::string_view what);

}  // namespace hone::tuner
