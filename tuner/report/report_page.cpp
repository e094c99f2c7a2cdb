#include "tuner/report/report_page.h"

#include <stdexcept>

namespace hone::tuner {
namespace {

std::string_view page_file(std::string_view name) {
  for (const SourceFile& file : embedded::report_page())
    if (file.name == name) return file.text;
  throw std::logic_error("the page has no file " + std::string(name));
}

}  // namespace

std::string report_page(std::string_view json) {
  constexpr std::string_view kOpen = "{{", kClose = "}}";
  std::string page;
  std::string_view left = page_file("page.html");
  for (std::size_t open; (open = left.find(kOpen)) != std::string_view::npos;) {
    const std::size_t close = left.find(kClose, open);
    const std::string_view name = left.substr(open + kOpen.size(), close - open - kOpen.size());
    page.append(left.substr(0, open)).append(name == "data" ? json : page_file(name));
    left.remove_prefix(close + kClose.size());
  }
  return page.append(left);
}

}  // namespace hone::tuner
