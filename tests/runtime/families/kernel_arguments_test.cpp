// The argument structs of kernels have the same layout to the host's compiler and to those that compile kernels.
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hone/device.h>
#include <hone/error.h>
#include <hone/sdk/gpu_compiler.h>

#include "kernel_templates/axis_arguments.h"
#include "kernel_templates/copy_arguments.h"
#include "kernel_templates/reduce_arguments.h"
#include "kernel_templates/rms_norm_arguments.h"
#include "kernel_templates/segments_arguments.h"
#include "kernel_templates/canonical_softmax_arguments.h"
#include "kernel_templates/transpose_arguments.h"
#include "runtime/jit/include_closure.h"

namespace hone {
namespace {

struct Field {
  std::string name;
  std::size_t offset;
};

struct Layout {
  std::string type;
  std::size_t bytes;
  std::vector<Field> fields;
};

#define FIELD(type, name) Field{#name, offsetof(type, name)}

template <class Acc>
Layout softmax_rows(const std::string& type) {
  using A = SoftmaxArguments<Acc>;
  return {type, sizeof(A),
          {FIELD(A, in), FIELD(A, out), FIELD(A, workspace), FIELD(A, rows), FIELD(A, columns), FIELD(A, in_pitch),
           FIELD(A, out_pitch), FIELD(A, scale), FIELD(A, chunks), FIELD(A, packs_per_thread), FIELD(A, lag)}};
}

template <class Acc>
Layout softmax_columns(const std::string& type) {
  using A = SoftmaxColumnsArguments<Acc>;
  return {type, sizeof(A),
          {FIELD(A, in), FIELD(A, out), FIELD(A, workspace), FIELD(A, outer), FIELD(A, reduced), FIELD(A, inner),
           FIELD(A, in_pitch), FIELD(A, out_pitch), FIELD(A, scale), FIELD(A, chunks)}};
}

std::vector<Layout> layouts() {
  using Copy = CopyArguments;
  using Transpose = TransposeArguments;
  using Reduce = ReduceArguments;
  using Rows = RowsArguments;
  using Columns = ColumnsArguments;
  using Staged = StagedArguments;
  using Parts = PartsArguments;
  using Norm = RmsNormArguments;
  using Segments = SegmentsArguments;
  return {
      {"CopyArguments", sizeof(Copy),
       {FIELD(Copy, in), FIELD(Copy, out), FIELD(Copy, rows), FIELD(Copy, columns), FIELD(Copy, windows),
        FIELD(Copy, in_pitch), FIELD(Copy, out_pitch)}},
      {"TransposeArguments", sizeof(Transpose),
       {FIELD(Transpose, in), FIELD(Transpose, out), FIELD(Transpose, batch), FIELD(Transpose, rows),
        FIELD(Transpose, columns), FIELD(Transpose, in_pitch), FIELD(Transpose, out_pitch)}},
      {"ReduceArguments", sizeof(Reduce),
       {FIELD(Reduce, in), FIELD(Reduce, n), FIELD(Reduce, workspace), FIELD(Reduce, out), FIELD(Reduce, partials)}},
      {"RowsArguments", sizeof(Rows),
       {FIELD(Rows, in), FIELD(Rows, out), FIELD(Rows, workspace), FIELD(Rows, rows), FIELD(Rows, columns),
        FIELD(Rows, pitch), FIELD(Rows, parts)}},
      {"ColumnsArguments", sizeof(Columns),
       {FIELD(Columns, in), FIELD(Columns, out), FIELD(Columns, workspace), FIELD(Columns, outer),
        FIELD(Columns, reduced), FIELD(Columns, inner), FIELD(Columns, pitch), FIELD(Columns, slice_pitch),
        FIELD(Columns, rows), FIELD(Columns, slice_tiles), FIELD(Columns, tile_columns), FIELD(Columns, folds),
        FIELD(Columns, parts)}},
      {"StagedArguments", sizeof(Staged),
       {FIELD(Staged, in), FIELD(Staged, out), FIELD(Staged, slices), FIELD(Staged, reduced), FIELD(Staged, inner),
        FIELD(Staged, slices_per_tile)}},
      {"PartsArguments", sizeof(Parts),
       {FIELD(Parts, workspace), FIELD(Parts, out), FIELD(Parts, reduced), FIELD(Parts, parts), FIELD(Parts, outputs)}},
      {"RmsNormArguments", sizeof(Norm),
       {FIELD(Norm, x), FIELD(Norm, residual), FIELD(Norm, weight), FIELD(Norm, y), FIELD(Norm, h), FIELD(Norm, rows),
        FIELD(Norm, columns), FIELD(Norm, in_pitch), FIELD(Norm, out_pitch), FIELD(Norm, mean_factor),
        FIELD(Norm, eps), FIELD(Norm, shared_packs), FIELD(Norm, chunks), FIELD(Norm, lag),
        FIELD(Norm, workspace)}},
      {"SegmentsArguments", sizeof(Segments),
       {FIELD(Segments, in), FIELD(Segments, offsets), FIELD(Segments, out), FIELD(Segments, workspace),
        FIELD(Segments, segments), FIELD(Segments, blocks)}},
      softmax_rows<float>("SoftmaxArguments<float>"),
      softmax_rows<double>("SoftmaxArguments<double>"),
      {"CanonicalSoftmaxArguments<float>", sizeof(CanonicalSoftmaxArguments<float>), {}},
      {"CanonicalSoftmaxArguments<double>", sizeof(CanonicalSoftmaxArguments<double>), {}},
      softmax_columns<float>("SoftmaxColumnsArguments<float>"),
      softmax_columns<double>("SoftmaxColumnsArguments<double>"),
  };
}

#undef FIELD

/// A kernel that compiles only where the layouts are these.
Unit unit_of(const std::vector<Layout>& all) {
  Unit unit{.name = "layouts",
            .source = "",
            .headers = kernel_sources({"axis_arguments.h", "canonical_softmax_arguments.h", "copy_arguments.h",
                                       "reduce_arguments.h", "rms_norm_arguments.h", "segments_arguments.h",
                                       "softmax_arguments.h", "transpose_arguments.h"}),
            .entries = {"nothing"}};
  unit.source =
      "#ifdef HONE_HOST_DEVICE\n#define OFFSET_OF(Type, field) __builtin_offsetof(Type, field)\n"
      "#else\n#define OFFSET_OF(Type, field) __INTADDR__(&((Type*)nullptr)->field)\n#endif\n";
  for (const SourceFile& header : unit.headers) unit.source += fmt::format("#include \"{}\"\n", header.name);
  for (const Layout& layout : all) {
    unit.source += fmt::format("static_assert(sizeof(hone::{}) == {});\n", layout.type, layout.bytes);
    for (const Field& field : layout.fields)
      unit.source += fmt::format("static_assert(OFFSET_OF(hone::{}, {}) == {});\n", layout.type, field.name,
                                 field.offset);
  }
  unit.source += "extern \"C\" __global__ void nothing() {}\n";
  return unit;
}

TEST(KernelArguments, LieOnTheHostDeviceAsTheyAreEncoded) {
  EXPECT_NO_THROW(Device::open("host")->compile(unit_of(layouts())));
  std::vector<Layout> wrong = layouts();
  wrong.back().fields.back().offset += 4;
  EXPECT_THROW(Device::open("host")->compile(unit_of(wrong)), Error);
}

TEST(KernelArguments, LieOnAGpuAsTheyAreEncoded) {
  try {
    compile_for_gpu(unit_of(layouts()), "sm_90");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unsupported) GTEST_SKIP() << error.what();
    throw;
  }
}

/// A launch with every family's arguments fits.
TEST(KernelArguments, FitALaunch) {
  for (const Layout& layout : layouts()) EXPECT_LE(layout.bytes, Arguments::kBytes) << layout.type;
}

}  // namespace
}  // namespace hone
