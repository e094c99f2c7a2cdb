# CUB and cuBLAS beside Hone. CUB is a template library: this is the one place that needs nvcc. Each dtype is compiled
# for itself, since one takes half a minute.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90)  # what results are committed for; each more takes as long again
endif()
enable_language(CUDA)

set(HONE_CCCL_INCLUDE "" CACHE PATH
  "The folder of CCCL's headers (cub/, cuda/, thrust/) to compile peers with; empty: those of the CUDA toolkit")
if(HONE_CCCL_INCLUDE)
  # Not SYSTEM: nvcc searches the include folder of its toolkit, which has an nv/target, too, before such ones.
  include_directories(BEFORE ${HONE_CCCL_INCLUDE})
  message(STATUS "Hone: CUB of ${HONE_CCCL_INCLUDE}")
endif()

set(elements
  "f16=__half" "bf16=__nv_bfloat16" "f32=float" "f64=double" "i8=signed char" "i16=short" "i32=int" "i64=long long"
  "u8=unsigned char" "u16=unsigned short" "u32=unsigned" "u64=unsigned long long" "bool=bool")
foreach(element IN LISTS elements)
  string(REGEX MATCH "^([^=]+)=(.+)$" matched "${element}")
  set(dtype ${CMAKE_MATCH_1})
  add_library(hone_cub_${dtype} OBJECT peers/cub_reductions.cu)
  target_compile_options(hone_cub_${dtype} PRIVATE -std=c++20)  # as CUDA_STANDARD unknown to CMake 3.25.1 for this nvcc
  target_include_directories(hone_cub_${dtype} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(hone_cub_${dtype} PRIVATE
    "HONE_ELEMENT=${CMAKE_MATCH_2}" HONE_TABLE=cub_reductions_${dtype} $<$<STREQUAL:${dtype},f32>:HONE_DEFINE_CUB_VERSION>)
  target_sources(hone_benchmarks PRIVATE $<TARGET_OBJECTS:hone_cub_${dtype}>)
endforeach()
add_library(hone_cub_segments OBJECT peers/cub_segments.cu)
target_compile_options(hone_cub_segments PRIVATE -std=c++20)
target_include_directories(hone_cub_segments PRIVATE ${PROJECT_SOURCE_DIR})
target_sources(hone_benchmarks PRIVATE $<TARGET_OBJECTS:hone_cub_segments>)
if(HONE_CCCL_INCLUDE)
  # What a call demands of determinism is not in the CUB of CUDA 13.0.
  add_library(hone_cub_determinism OBJECT peers/cub_determinism.cu)
  target_compile_options(hone_cub_determinism PRIVATE -std=c++20)
  target_include_directories(hone_cub_determinism PRIVATE ${PROJECT_SOURCE_DIR})
  target_sources(hone_benchmarks PRIVATE $<TARGET_OBJECTS:hone_cub_determinism>)
  target_compile_definitions(hone_benchmarks PUBLIC HONE_WITH_CUB_DETERMINISM)
endif()
target_sources(hone_benchmarks PRIVATE peers/cub_peer.cpp)
target_compile_definitions(hone_benchmarks PUBLIC HONE_WITH_CUB)
target_link_libraries(hone_benchmarks PUBLIC CUDA::cudart_static)

option(HONE_PEER_CUBLAS "Link the benchmarks with cuBLAS, whose libraries have hundreds of MiB" ON)
if(NOT HONE_PEER_CUBLAS)
  message(STATUS "Hone: the benchmarks do without cuBLAS")
elseif(TARGET CUDA::cublas)
  target_sources(hone_benchmarks PRIVATE peers/cublas_peer.cpp)
  target_compile_definitions(hone_benchmarks PUBLIC HONE_WITH_CUBLAS)
  target_link_libraries(hone_benchmarks PRIVATE CUDA::cublas)
else()
  message(STATUS "Hone: the CUDA toolkit has no cuBLAS; the benchmarks do without")
endif()

option(HONE_PEER_CUSPARSE "Link segments_vs_cub with cuSPARSE, which its machine must have" OFF)
if(HONE_PEER_CUSPARSE)
  target_sources(segments_vs_cub PRIVATE peers/cusparse_sums.cpp)
  target_compile_definitions(segments_vs_cub PRIVATE HONE_WITH_CUSPARSE)
  target_link_libraries(segments_vs_cub PRIVATE CUDA::cusparse)
endif()
