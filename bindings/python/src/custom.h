// Reduction: a reduction by CUDA C++ expressions, as a Python object.
#pragma once

#include <cstdint>
#include <string>

#include "src/calls.h"

namespace hone::python {

class Reduction {
 public:
  struct Expressions {
    std::string name, map, combine, identity, finish, declarations;
  };

  /// Dtypes are the library's numbers; a `result` of −1 is the accumulator's.
  Reduction(const Expressions& given, std::int32_t accumulator, std::int32_t result, double tolerance);
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;
  ~Reduction() { hone_reduction_destroy(reduction_); }

  nb::object operator()(nb::handle x, const CallOptions& options) const;
  Problem problem(nb::handle x) const;

 private:
  hone_reduction* reduction_ = nullptr;
  std::int32_t result_;
};

}  // namespace hone::python
