#include "benchmarks/peers/cusparse_sums.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <hone/error.h>

namespace hone::benchmarks {
namespace {

constexpr float kOne = 1, kZero = 0;
constexpr auto kOperation = CUSPARSE_OPERATION_NON_TRANSPOSE;
constexpr auto kAlgorithm = CUSPARSE_SPMV_ALG_DEFAULT;

void require_success(cusparseStatus_t status, std::string_view what) {
  if (status != CUSPARSE_STATUS_SUCCESS)
    throw Error(ErrorCode::device_failed,
                fmt::format("cuSPARSE failed in {}: {}", what, cusparseGetErrorString(status)));
}

template <class T>
DeviceBuffer upload(const std::shared_ptr<Device>& device, const std::vector<T>& values) {
  DeviceBuffer memory(device, std::max<std::size_t>(values.size(), 1) * sizeof(T));
  device->copy_to_device(memory.data(), values.data(), values.size() * sizeof(T), nullptr);
  device->synchronize(nullptr);
  return memory;
}

}  // namespace

CusparseSums::CusparseSums(const std::shared_ptr<Device>& device, std::span<const std::int32_t> offsets,
                           void* offsets_on_device, DType dtype, const void* values, void* out)
    : offsets_(offsets_on_device) {
  const auto rows = static_cast<std::int64_t>(offsets.size()) - 1;
  std::vector<std::int32_t> columns;
  std::int32_t longest = 1;
  for (std::size_t row = 1; row < offsets.size(); ++row) {
    const std::int32_t length = offsets[row] - offsets[row - 1];
    for (std::int32_t column = 0; column < length; ++column) columns.push_back(column);
    longest = std::max(longest, length);
  }
  const bool is_half = dtype == DType::f16;
  const cudaDataType_t type = is_half ? CUDA_R_16F : CUDA_R_32F;
  const auto ones = static_cast<std::size_t>(longest);
  columns_ = upload(device, columns);
  ones_ = is_half ? upload(device, std::vector<std::uint16_t>(ones, 0x3c00)) : upload(device, std::vector(ones, 1.0f));

  cusparseHandle_t context = nullptr;
  require_success(cusparseCreate(&context), "cusparseCreate");
  context_.reset(context);
  cusparseSpMatDescr_t matrix = nullptr;
  require_success(cusparseCreateCsr(&matrix, rows, longest, offsets.back(), offsets_, columns_.data(),
                                    const_cast<void*>(values), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                                    CUSPARSE_INDEX_BASE_ZERO, type),
                  "cusparseCreateCsr");
  matrix_.reset(matrix);
  cusparseDnVecDescr_t vector = nullptr;
  require_success(cusparseCreateDnVec(&vector, longest, ones_.data(), type), "cusparseCreateDnVec");
  vector_.reset(vector);
  require_success(cusparseCreateDnVec(&vector, rows, out, CUDA_R_32F), "cusparseCreateDnVec");
  sums_.reset(vector);

  std::size_t bytes = 0;
  require_success(cusparseSpMV_bufferSize(context, kOperation, &kOne, matrix, vector_.get(), &kZero, sums_.get(),
                                          CUDA_R_32F, kAlgorithm, &bytes),
                  "cusparseSpMV_bufferSize");
  workspace_ = DeviceBuffer(device, std::max<std::size_t>(bytes, 1));
  require_success(cusparseSpMV_preprocess(context, kOperation, &kOne, matrix, vector_.get(), &kZero, sums_.get(),
                                          CUDA_R_32F, kAlgorithm, workspace_.data()),
                  "cusparseSpMV_preprocess");
  device->synchronize(nullptr);
}

void CusparseSums::enqueue(const void* values, Stream stream) {
  require_success(cusparseSetStream(context_.get(), static_cast<cudaStream_t>(stream)), "cusparseSetStream");
  require_success(cusparseCsrSetPointers(matrix_.get(), offsets_, columns_.data(), const_cast<void*>(values)),
                  "cusparseCsrSetPointers");
  require_success(cusparseSpMV(context_.get(), kOperation, &kOne, matrix_.get(), vector_.get(), &kZero, sums_.get(),
                               CUDA_R_32F, kAlgorithm, workspace_.data()),
                  "cusparseSpMV");
}

}  // namespace hone::benchmarks
