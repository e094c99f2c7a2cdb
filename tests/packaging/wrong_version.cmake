# A version that is not there is refused, and the message says which one is.
include("${SETTINGS}")
execute_process(COMMAND ${CONFIGURE} -B "${SCRATCH}/wrong version" -DHONE_WANTED=99.0
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
string(FIND "${output}" "compatible with requested version \"99.0\"" refusal)
string(FIND "${output}" "version: ${VERSION}" found)
if(status EQUAL 0 OR refusal EQUAL -1 OR found EQUAL -1)
  message(FATAL_ERROR "expected a refusal of version 99.0 that names ${VERSION}, got status ${status}: ${output}")
endif()
