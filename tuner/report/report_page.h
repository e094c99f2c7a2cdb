// report_page(): the page of `hone report`, with its data, styles and script inside.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <hone/kernel.h>

namespace hone::embedded {

/// The files of tuner/report/page/.
std::span<const SourceFile> report_page();

}  // namespace hone::embedded

namespace hone::tuner {

/// `json`: of report_data().
std::string report_page(std::string_view json);

}  // namespace hone::tuner
