# hone_target(<target>): what every target of the project is compiled with.
function(hone_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  # Messages name source files by their place in the project.
  target_compile_options(${target} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # g++ collects garbage when it has 128 MB: 7 % of the time of files that are compiled as one, for 200 MB less.
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=524288)
  endif()
  if(HONE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(HONE_SANITIZERS)
    target_compile_options(${target} PRIVATE -fsanitize=${HONE_SANITIZERS} -fno-omit-frame-pointer)
    if(HONE_SANITIZERS MATCHES undefined)
      # Without the former, a finding fails no test. The latter leaves out that an object has its type at each call of a
      # virtual function, 8 % of the compiler's time; AddressSanitizer sees objects that are no longer there.
      target_compile_options(${target} PRIVATE -fno-sanitize-recover=undefined -fno-sanitize=vptr)
      # They take a third of the compiler's time, together; one alone takes nearly as much (g++ 12.2). AddressSanitizer
      # sees null pointers, too. Kernels for the host device are compiled with both in any case.
      if(NOT HONE_CHECK_POINTERS)
        target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment)
      endif()
    endif()
    target_link_options(${target} PUBLIC $<BUILD_INTERFACE:-fsanitize=${HONE_SANITIZERS}>)
  endif()
endfunction()

# hone_library(<target>): as hone_target(), for the library and the cache. With HONE_QUICK_LIBRARY they are compiled
# with -Og, in about two thirds of the time of -O2 (g++ 12.2), and the command is not optimised.
function(hone_library target)
  hone_target(${target})
  if(HONE_QUICK_LIBRARY)
    # g++ 12.2 raises false alarms of uninitialised variables then, and does not inline all that xxHash insists on.
    target_compile_options(${target} PRIVATE -Og -Wno-maybe-uninitialized)
    target_compile_definitions(${target} PRIVATE XXH_NO_INLINE_HINTS=1)
  endif()
endfunction()

# hone_precompile(<target> [REUSE_FROM <other>]): with HONE_PRECOMPILE_LIBRARY, the target's sources find the headers
# that most of them include compiled already: for the target itself, or for another that is compiled with the same
# options. That saves 0.9 s of a source's 2.6 to 12 (g++ 12.2, -O2).
function(hone_precompile target)
  if(NOT HONE_PRECOMPILE_LIBRARY)
    return()
  endif()
  if(ARGC GREATER 1)
    target_precompile_headers(${target} ${ARGN})
  else()
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <limits>
      <map> <memory> <mutex> <optional> <random> <regex> <span> <sstream> <string> <string_view> <thread> <utility>
      <vector> <fmt/format.h> <fmt/ranges.h>)
  endif()
endfunction()

# hone_program(<target>): as hone_target(), for what calls the library: the command, benchmarks, examples and tests.
# With HONE_QUICK_PROGRAMS they are not optimised and have no debug information, which saves 20 to 45 % and 10 % of the
# compiler's time (g++ 12.2). CLI11's header precompiled takes longer: each source emits its inline functions once more.
function(hone_program target)
  hone_target(${target})
  if(HONE_QUICK_PROGRAMS)
    target_compile_options(${target} PRIVATE -O0 -g0)
  endif()
endfunction()
