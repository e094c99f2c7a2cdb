// Runs one planted kernel, wrong or right, in a process of its own: sanitizers report on standard error and end it.
#include <algorithm>
#include <iostream>
#include <string_view>

#include "tests/runtime/host_checks/planted_kernels.h"

int main(int argc, char** argv) {
  using namespace hone::test;
  const std::string_view name = argc == 3 ? argv[1] : "", form = argc == 3 ? argv[2] : "";
  const auto kernels = planted_kernels();
  const auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const auto& one) { return one.name == name; });
  if (kernel == kernels.end() || (form != "wrong" && form != "right")) {
    std::cerr << "usage: planted_kernel NAME wrong|right\n";
    return 2;
  }
  const hone::HostCheckReport report = hone::check_on_host(check_of(*kernel, form == "wrong"));
  if (report.ok()) return 0;
  std::cerr << report.failure << '\n';
  return 3;
}
