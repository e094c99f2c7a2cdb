// Sums of CSR segments by cuSPARSE: the product of a sparse matrix and a vector of ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <cusparse.h>

#include <hone/device.h>
#include <hone/dtype.h>

namespace hone::benchmarks {

/// The segments are the rows of a matrix; the column of an element is its place in the row. Sums of f16 and f32 are
/// f32. Calls belong to one stream at a time.
class CusparseSums {
 public:
  /// `offsets` are in host memory and in device memory. What cuSPARSE learns of them beforehand is not timed.
  CusparseSums(const std::shared_ptr<Device>& device, std::span<const std::int32_t> offsets, void* offsets_on_device,
               DType dtype, const void* values, void* out);

  void enqueue(const void* values, Stream stream);

 private:
  template <auto kDestroy>
  struct Destroy {
    void operator()(auto* handle) const { kDestroy(handle); }
  };

  DeviceBuffer columns_, ones_, workspace_;
  std::unique_ptr<cusparseContext, Destroy<cusparseDestroy>> context_;
  std::unique_ptr<cusparseSpMatDescr, Destroy<cusparseDestroySpMat>> matrix_;
  std::unique_ptr<cusparseDnVecDescr, Destroy<cusparseDestroyDnVec>> vector_, sums_;
  void* offsets_ = nullptr;
};

}  // namespace hone::benchmarks
