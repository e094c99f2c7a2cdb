# The project of docs/host-device.md, built with an installed Hone as the page says: its kernel passes, and fails with
# the line of its file when it has a bug.
set(CONSUMER "${CMAKE_CURRENT_LIST_DIR}/../../examples/kernel_test")
include("${SETTINGS}")
set(folder "${SCRATCH}/kernel test")
run(${CONFIGURE} -B "${folder}")
run(${CMAKE_COMMAND} --build "${folder}")
run(${CMAKE_CTEST_COMMAND} --test-dir "${folder}" --output-on-failure --no-tests=error)

file(REMOVE_RECURSE "${folder} with a bug")
file(COPY "${CONSUMER}/" DESTINATION "${folder} with a bug")
file(READ "${CONSUMER}/scale.cu" kernel)
string(REPLACE "if (i < n)" "if (i == 999) return;\n  __syncthreads();\n  if (i < n)" kernel "${kernel}")
file(WRITE "${folder} with a bug/scale.cu" "${kernel}")
set(CONSUMER "${folder} with a bug")
include("${SETTINGS}")
run(${CONFIGURE} -B "${folder} with a bug/build")
run(${CMAKE_COMMAND} --build "${folder} with a bug/build")
execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir "${folder} with a bug/build" --output-on-failure
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0 OR NOT output MATCHES "divergent __syncthreads.*kernel test with a bug/scale.cu:4")
  message(FATAL_ERROR "the bug is not reported:\n${output}")
endif()
