# The library exports the functions that its header declares, and nothing else.
execute_process(COMMAND ${NM} --dynamic --defined-only --format=posix ${LIBRARY} OUTPUT_VARIABLE symbols
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "nm could not read ${LIBRARY}")
endif()
string(REGEX MATCHALL "[^\n]+" symbols "${symbols}")
list(TRANSFORM symbols REPLACE "[ @].*" "")
list(REMOVE_ITEM symbols HONE_0)  # the version itself
list(SORT symbols)
file(READ ${HEADER} header)
string(REGEX MATCHALL "HONE_API [^(;]*\\(" declared "${header}")
list(FILTER declared INCLUDE REGEX " \\*?hone_[a-z_]+\\($")  # not the macro itself
list(TRANSFORM declared REPLACE ".*(hone_[a-z_]+)\\($" "\\1")
list(SORT declared)
if(NOT symbols STREQUAL declared)
  message(FATAL_ERROR "exported: ${symbols}\ndeclared: ${declared}")
endif()
list(LENGTH symbols count)
if(count LESS 40)
  message(FATAL_ERROR "only ${count} symbols were found")
endif()
