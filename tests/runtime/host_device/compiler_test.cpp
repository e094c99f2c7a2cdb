// Tests of errors before a kernel runs.
#include "tests/runtime/host_device/host_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/jit/file_identity.h"
#include "tests/support/names.h"

namespace hone::test {
namespace {

using testing::HasSubstr;

/// Code and message of what `work` throws.
template <class Work>
std::pair<ErrorCode, std::string> error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  ADD_FAILURE() << "no error";
  return {};
}

constexpr char kEmpty[] = "extern \"C\" __global__ void entry() {}\n";

TEST(HostCompiler, ErrorsCarryTheUnitsOwnLines) {
  const auto device = make_host_device();
  const auto [code, message] = error_of([&] {
    device->compile({"a broken unit",
                     "#include \"broken.cuh\"\nextern \"C\" __global__ void entry() {\n  f();\n  g();\n}\n",
                     {{"broken.cuh", "inline void f() {\n  undeclared_in_header = 1;\n}\n"}},
                     {"entry"}});
  });
  EXPECT_EQ(code, ErrorCode::compile_failed);
  EXPECT_THAT(message, Names("broken", "unit", "-std=c++20", "broken.cuh:2:3", "error", "unit.cu:4:3"));
}

TEST(HostCompiler, FindsFilesInTheFoldersOfTheUnit) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "hone_host_include_folders";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "three.cuh") << "constexpr int kThree = 3;\n";
  Unit unit{"unit", "#include <three.cuh>\nextern \"C\" __global__ void entry(int* out) { *out = kThree; }\n", {},
            {"entry"}};
  EXPECT_EQ(error_of([&] { make_host_device()->compile(unit); }).first, ErrorCode::compile_failed);
  unit.include_folders = {folder};
  EXPECT_FALSE(make_host_device()->compile(unit).code.empty());
}

TEST(HostCompiler, UndefinedFunctionsAreErrors) {
  const auto device = make_host_device();
  const auto [code, message] = error_of([&] {
    // With sanitizers the linker leaves undefined functions to the loader.
    const Binary binary = device->compile(
        {"unit", "void elsewhere();\nextern \"C\" __global__ void entry() { elsewhere(); }\n", {}, {"entry"}});
    device->load(binary, {"entry"});
  });
  EXPECT_TRUE(code == ErrorCode::compile_failed || code == ErrorCode::device_failed) << message;
  EXPECT_THAT(message, Names("elsewhere"));
}

TEST(HostCompiler, TheLogIsShownOnce) {
  const auto [code, message] = error_of([&] {
    make_host_device()->compile({"unit", "extern \"C\" __global__ void entry() {\n  missing();\n}\n", {}, {"entry"}});
  });
  EXPECT_EQ(code, ErrorCode::compile_failed);
  const std::size_t first = message.find("unit.cu:2:3: error");
  ASSERT_NE(first, std::string::npos) << message;
  EXPECT_EQ(message.find("unit.cu:2:3: error", first + 1), std::string::npos) << message;
}

/// A feature that the host device lacks, used in the third line of a unit.
struct Lacking {
  const char* name;
  const char* before;  ///< the second line
  const char* line;
  const char* words;  ///< what the message says
};

class HostCompilerLacks : public testing::TestWithParam<Lacking> {};

TEST_P(HostCompilerLacks, AndSaysSoInOneLineWithThePlace) {
  const Lacking& lacking = GetParam();
  const auto [code, message] = error_of([&] {
    make_host_device()->compile({"a unit", std::string("// a kernel\n") + lacking.before + "\n" + lacking.line + "\n",
                                 {}, {"entry"}});
  });
  EXPECT_EQ(code, ErrorCode::compile_failed);
  const std::string first_line = message.substr(0, message.find('\n'));
  const int line = std::string(lacking.before).starts_with("#include") ? 2 : 3;
  EXPECT_THAT(first_line,
              Names("\"a unit\"", "unit.cu:" + std::to_string(line) + ": " + lacking.words, "not supported", "host"));
}

constexpr char kNoKernel[] = "extern \"C\" __global__ void entry() {}";
constexpr Lacking kLacking[] = {
    {"GridSync", "#include <cooperative_groups.h>", kNoKernel, "cooperative groups (cooperative_groups.h)"},
    {"CooperativeGroups", "", "extern \"C\" __global__ void entry() { cooperative_groups::this_grid().sync(); }",
     "cooperative groups (cooperative_groups)"},
    {"Textures", "", "extern \"C\" __global__ void entry(float* x) { *x = tex1Dfetch<float>(0ull, 0); }",
     "textures and surfaces (tex1Dfetch)"},
    {"TexturesInTemplates", "",
     "template <class T> __device__ T get(int i) { return tex2D<T>(0ull, i, i); } "
     "extern \"C\" __global__ void "
     "entry(float* x) { *x = get<float>(1); }",
     "textures and surfaces (tex2D)"},
    {"TextureObjects", "", "extern \"C\" __global__ void entry(cudaTextureObject_t t) {}",
     "textures and surfaces (cudaTextureObject_t)"},
    {"Surfaces", "", "extern \"C\" __global__ void entry() { surf2Dwrite(1.0f, 0ull, 0, 0); }",
     "textures and surfaces (surf2Dwrite)"},
    {"DynamicParallelism", "__global__ void child(int) {}",
     "extern \"C\" __global__ void entry() { child<<<1, 1>>>(0); }", "dynamic parallelism (<<<)"},
    {"DeviceRuntime", "", "extern \"C\" __global__ void entry() { cudaDeviceSynchronize(); }",
     "calls of the CUDA runtime (cudaDeviceSynchronize)"},
    {"InlinePtx", "",
     "extern \"C\" __global__ void entry(float* x) { asm(\"ex2.approx.f32 %0, %1;\" : \"=f\"(*x) : \"f\"(*x)); }",
     "inline PTX (asm)"},
    {"VolatilePtx", "",
     "extern \"C\" __global__ void entry() { __asm__ volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); }",
     "inline PTX (asm)"},
    {"PtxOfFloats", "",
     "extern \"C\" __global__ void entry(float* x) { __asm__(\"ex2.approx.f32 %0, %1;\" : \"=h\"(*x) : \"h\"(*x)); }",
     "inline PTX (asm)"},
    {"TensorCores", "#include <mma.h>", kNoKernel, "tensor-core operations (mma.h)"},
    {"TensorCoreNames", "", "extern \"C\" __global__ void entry() { nvcuda::wmma::mma_sync(0, 0, 0, 0); }",
     "tensor-core operations (nvcuda)"},
    {"CudaHalf", "#include <cuda_fp16.h>", kNoKernel, "CUDA's 16-bit and 8-bit floats (cuda_fp16.h)"},
    {"CudaHalfType", "", "extern \"C\" __global__ void entry(__half* x) {}", "CUDA's 16-bit and 8-bit floats (__half)"},
    {"CudaRuntimeHeader", "#include <cuda_runtime.h>", kNoKernel, "CUDA's headers (cuda_runtime.h)"},
    {"Libraries", "#include <cub/cub.cuh>", kNoKernel, "CUDA's C++ libraries (cub/cub.cuh)"},
    {"OldShuffles", "", "extern \"C\" __global__ void entry(int* x) { *x = __shfl_xor(*x, 1); }",
     "warp operations without _sync (__shfl_xor)"},
    {"Clusters", "", "extern \"C\" __global__ void entry() { __cluster_dims__(2, 1, 1); }", "thread-block clusters"},
    {"AsyncCopies", "", "extern \"C\" __global__ void entry() { __pipeline_commit(); }", "asynchronous copies"},
};

INSTANTIATE_TEST_SUITE_P(Features, HostCompilerLacks, testing::ValuesIn(kLacking),
                         [](const auto& lacking) { return std::string(lacking.param.name); });

TEST(HostCompiler, MissingSanitizerRuntimeSaysWhatToInstall) {
  // A compiler whose link step ends as GNU ld's does without the library.
  const std::filesystem::path script = testing::TempDir() + "/hone_compiler_without_tsan";
  std::ofstream(script) << "#!/bin/sh\ncase \" $* \" in *' -shared '*) ;; *) exec c++ \"$@\" ;; esac\n"
                           "echo '/usr/bin/ld: cannot find -ltsan: No such file or directory' >&2\nexit 1\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto device = make_host_device(HostOptions{.compiler = script, .order = {}});
  const auto [code, message] = error_of([&] { device->compile({"unit", kEmpty, {}, {"entry"}}); });
  std::filesystem::remove(script);
  EXPECT_EQ(code, ErrorCode::unsupported);
  EXPECT_THAT(message, Names("hone_compiler_without_tsan", "lacks", "library", "apt-get", "install", "find", "-ltsan"));
}

TEST(HostCompiler, WithoutRoomForItsFilesTheFolderIsNamed) {
  const std::filesystem::path script = testing::TempDir() + "/hone_compiler_without_room";
  std::ofstream(script) << "#!/bin/sh\necho 'error writing to unit.s: No space left on device' >&2\nexit 1\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto device = make_host_device(HostOptions{.compiler = script, .order = {}});
  const auto [code, message] = error_of([&] { device->compile({"unit", kEmpty, {}, {"entry"}}); });
  std::filesystem::remove(script);
  EXPECT_EQ(code, ErrorCode::io_failed);
  EXPECT_THAT(message, Names("/hone-compile-", "No space left", "TMPDIR"));
}

TEST(HostCompiler, MissingCompilerSaysWhatToInstall) {
  const auto device = make_host_device(HostOptions{.compiler = "/no/such/compiler", .order = {}});
  EXPECT_EQ(device->compiler_identity(), "");
  const auto [code, message] = error_of([&] { device->compile({"unit", kEmpty, {}, {"entry"}}); });
  EXPECT_EQ(code, ErrorCode::unsupported);
  EXPECT_THAT(message, Names("/no/such/compiler", "HONE_CXX", "apt-get", "install"));
}

TEST(HostCompiler, WhatIsNoCompilerFails) {
  const auto device = make_host_device(HostOptions{.compiler = "/bin/false", .order = {}});
  const auto [code, message] = error_of([&] { device->compile({"unit", kEmpty, {}, {"entry"}}); });
  EXPECT_EQ(code, ErrorCode::compile_failed);
  EXPECT_THAT(message, Names("/bin/false", "exited", "1"));
}

TEST(HostCompiler, IdentityNamesTheResolvedFile) {
  const std::string identity = make_host_device()->compiler_identity();
  EXPECT_THAT(identity, HasSubstr(":"));
  EXPECT_EQ(identity, make_host_device()->compiler_identity());
  EXPECT_EQ(file_identity("/no/such/file"), "");
}

TEST(HostCompiler, HeaderNamesStayInsideTheFolder) {
  const auto device = make_host_device();
  for (const std::string name : {"../outside.h", "/tmp/absolute.h", ""}) {
    EXPECT_EQ(error_of([&] { device->compile({"unit", kEmpty, {{name, ""}}, {"entry"}}); }).first,
              ErrorCode::invalid_argument);
  }
}

TEST(HostCompiler, LeavesNothingBehind) {
  const std::filesystem::path folder = testing::TempDir() + "/hone_compiler_test";
  std::filesystem::create_directories(folder);
  const char* const before = std::getenv("TMPDIR");
  const std::string saved = before != nullptr ? before : "";
  setenv("TMPDIR", folder.c_str(), 1);
  const auto device = make_host_device();
  device->compile({"unit", kEmpty, {}, {"entry"}});
  EXPECT_THROW(device->compile({"unit", "broken", {}, {"entry"}}), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  if (before != nullptr) setenv("TMPDIR", saved.c_str(), 1);
  else unsetenv("TMPDIR");
  std::filesystem::remove_all(folder);
}

TEST(HostCompiler, UnitsCompileAtTheSameTime) {
  const auto device = make_host_device();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const HostKernel kernel(device,
                              "extern \"C\" __global__ void entry(int* out) { *out = " + std::to_string(t) + "; }");
      const DeviceVector<int> out(device, {-1});
      kernel.launch({.block = {1}}, out.data());
      EXPECT_EQ(out.values()[0], t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HostCompiler, WhatChecksAddToEveryModuleIsCompiledOnce) {
  const std::filesystem::path folder = testing::TempDir() + "/hone_compiler_that_counts";
  std::filesystem::create_directories(folder);
  const std::filesystem::path script = folder / "compiler", calls = folder / "calls";
  std::ofstream(script) << "#!/bin/sh\necho \"$@\" >>" << calls << "\nexec c++ \"$@\"\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const HostOptions options{.compiler = script, .order = {}, .instrumentation = HostInstrumentation::traced};
  for (const char* const name : {"first", "second"}) {
    const auto device = make_host_device(options);
    device->load(device->compile({name, kEmpty, {}, {"entry"}}), {"entry"});
  }
  std::ifstream log(calls);
  int compilations = 0, all = 0;
  for (std::string line; std::getline(log, line); ++all) compilations += line.find("instrumentation.cpp") != line.npos;
  std::filesystem::remove_all(folder);
  EXPECT_EQ(compilations, 1);
  EXPECT_EQ(all, 5);  // and two units, compiled and linked
}

TEST(HostCompiler, UnitsThatDifferInTheirNamesCompileTheSameText) {
  const std::filesystem::path folder = testing::TempDir() + "/hone_compiler_that_keeps";
  std::filesystem::create_directories(folder);
  const std::filesystem::path script = folder / "compiler", text = folder / "text";
  std::ofstream(script) << "#!/bin/sh\ncase \"$*\" in *' -c '*) cp unit.cu " << text << ";; esac\nexec c++ \"$@\"\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto device = make_host_device(HostOptions{.compiler = script, .order = {}});
  std::vector<std::string> texts, binaries;
  for (const std::string name : {"first \\ \"n≈8\"\n", "second"}) {
    const Binary binary = device->compile({name, kEmpty, {}, {"entry"}});
    device->load(binary, {"entry"});
    std::ifstream file(text);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    binaries.emplace_back(reinterpret_cast<const char*>(binary.code.data()), binary.code.size());
  }
  std::filesystem::remove_all(folder);
  EXPECT_THAT(texts[0], HasSubstr("entry"));
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_THAT(binaries[0], HasSubstr("first \\ \"n≈8\" "));
  EXPECT_THAT(binaries[1], HasSubstr("second"));
}

TEST(HostCompiler, HugeFramesAreRefused) {
  const auto device = make_host_device();
  const auto [code, message] = error_of([&] {
    device->compile({"unit", "extern \"C\" __global__ void entry(volatile int* p) {\n  volatile int big[100000];\n"
                             "  for (int i = 0; i < 100000; ++i) big[i] = *p;\n  *p = big[*p];\n}\n", {}, {"entry"}});
  });
  EXPECT_EQ(code, ErrorCode::compile_failed);
  EXPECT_THAT(message, Names("\"unit\"", "unit.cu:5", "40960"));
  EXPECT_THAT(message, testing::Not(testing::HasSubstr("-Werror"))) << "one sentence, without the compiler's command";
}

TEST(HostModule, GarbageIsRefused) {
  const auto device = make_host_device();
  const Binary good = device->compile({"unit", kEmpty, {}, {"entry"}});
  const auto code_of = [&](Binary binary) {
    return error_of([&] { device->load(binary, {"entry"}); }).first;
  };
  EXPECT_EQ(code_of({"cubin", good.architecture, good.code}), ErrorCode::device_failed);
  EXPECT_EQ(code_of({"elf", "sparc", good.code}), ErrorCode::device_failed);
  EXPECT_EQ(code_of({"elf", good.architecture, {}}), ErrorCode::device_failed);
  EXPECT_EQ(code_of({"elf", good.architecture, std::vector<std::byte>(5000, std::byte{0x5a})}),
            ErrorCode::device_failed);
  for (const std::size_t part : {2u, 4u, 10u}) {
    Binary cut = good;
    cut.code.resize(good.code.size() / part);
    EXPECT_EQ(code_of(cut), ErrorCode::device_failed);
  }
  EXPECT_EQ(error_of([&] { device->load(good, {"other"}); }).first, ErrorCode::device_failed);
}

TEST(HostModule, ManyMayBeLoadedAndUnloaded) {
  const auto device = make_host_device();
  const auto unit = [](int value) {
    return Unit{"unit",
                "extern \"C\" __global__ void entry(int* out) { __shared__ int s; s = " + std::to_string(value) +
                    "; *out = s; }",
                {},
                {"entry"}};
  };
  const std::vector<Binary> binaries{device->compile(unit(0)), device->compile(unit(1)), device->compile(unit(2))};
  const DeviceVector<int> out(device, {-1});
  std::vector<std::unique_ptr<Module>> kept;
  for (int i = 0; i < 300; ++i) {
    auto module = device->load(binaries[static_cast<std::size_t>(i % 3)], {"entry"});
    Launch launch;
    launch.arguments.push(out.data());
    device->launch(module->kernel(0), launch, nullptr);
    ASSERT_EQ(out.values()[0], i % 3);
    if (i % 2 == 0) kept.push_back(std::move(module));
    if (kept.size() > 20) kept.erase(kept.begin(), kept.begin() + 7);
  }
}

}  // namespace
}  // namespace hone::test
