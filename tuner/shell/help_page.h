// HelpPage: the parts of a help text, for manual pages and completions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hone::tuner {

/// A heading and what follows it, line by line as it stands.
struct HelpSection {
  std::string heading;  ///< "Options", or "" for paragraphs without one
  std::vector<std::string> lines;
};

struct HelpPage {
  std::string command;  ///< "hone cache list"
  std::string summary;  ///< "list what is in the cache, by device, toolchain and family"
  std::string usage;    ///< "hone cache list [OPTIONS]"
  std::vector<HelpSection> sections;
};

/// A help text has "COMMAND: summary.", "Usage: …", paragraphs that begin in the first column, and headings there that
/// end with a colon, with indented lines below.
HelpPage parse_help(std::string_view text);

/// The text behind an option, up to the first sentence, semicolon or parenthesis: "the cache file". "": there is none.
std::string option_summary(std::string_view text, std::string_view option);

/// A manual page of section 1, as roff.
std::string man_page(const HelpPage& page, std::string_view version);

}  // namespace hone::tuner
