// Numbers and names of operations, dtypes and sources of choices. The numbers are those of ReduceOp, DType and
// ChoiceSource, whose rows are only ever added at the end.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <hone/candidate.h>
#include <hone/reduce_op.h>

#include "bindings/c/handles.h"
#include "bindings/c/status.h"

namespace hone::c {
namespace {

/// The place of `name` in a table of rows with names; −1, and a last error, where it is none of them.
template <class Table>
std::int32_t number_of(const char* name, const Table& table, const char* what) noexcept {
  std::int32_t number = -1;
  const hone_status status = guarded([&] {
    const std::string_view wanted = &required(name, what);
    const auto row = std::find_if(table.begin(), table.end(), [&](const auto& known) { return known.name == wanted; });
    if (row != table.end()) {
      number = static_cast<std::int32_t>(row - table.begin());
      return;
    }
    std::string names;
    for (const auto& known : table) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    throw Error(ErrorCode::not_found, fmt::format("there is no {} '{}'; known are {}", what, wanted, names));
  });
  return status == HONE_OK ? number : -1;
}

template <class Table>
const typename Table::value_type* row_at(std::int32_t number, const Table& table) {
  return number >= 0 && static_cast<std::size_t>(number) < table.size() ? &table[static_cast<std::size_t>(number)]
                                                                        : nullptr;
}

}  // namespace

DType dtype_of(std::int32_t number, const char* what) {
  if (const DTypeInfo* row = row_at(number, kDTypes)) return row->dtype;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}: no dtype; see hone_dtype()", what, number));
}

std::optional<DType> optional_dtype(std::int32_t number, const char* what) {
  if (number == -1) return std::nullopt;
  return dtype_of(number, what);
}

ReduceOp op_of(std::int32_t number) {
  if (const ReduceOpInfo* row = row_at(number, kReduceOps)) return row->op;
  throw Error(ErrorCode::invalid_argument, fmt::format("op is {}: no operation; see hone_op()", number));
}

}  // namespace hone::c

using namespace hone;

// Names are literals of the tables, so they end with a zero.
int32_t hone_op(const char* name) { return c::number_of(name, kReduceOps, "operation"); }
int32_t hone_dtype(const char* name) { return c::number_of(name, kDTypes, "dtype"); }

const char* hone_op_name(int32_t op) {
  const auto* const row = c::row_at(op, kReduceOps);
  return row ? row->name.data() : nullptr;
}
const char* hone_dtype_name(int32_t dtype) {
  const auto* const row = c::row_at(dtype, kDTypes);
  return row ? row->name.data() : nullptr;
}
const char* hone_source_name(int32_t source) {
  const auto* const row = c::row_at(source, kChoiceSourceNames);
  return row ? row->data() : nullptr;
}

size_t hone_dtype_size(int32_t dtype) {
  const auto* const row = c::row_at(dtype, kDTypes);
  return row ? row->size_bytes : 0;
}
int32_t hone_op_outputs(int32_t op) {
  const auto* const row = c::row_at(op, kReduceOps);
  return row ? row->outputs : 0;
}
