# hone_target(<target>): what every target of the project is compiled with.
function(hone_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  # Messages name source files by their place in the project.
  target_compile_options(${target} PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
  if(HONE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
    # Out of precompiled headers, g++ 12 shows its false alarms about the inside of std::string, too.
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13
       AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
      target_compile_options(${target} PRIVATE -Wno-error=array-bounds -Wno-error=restrict)
    endif()
  endif()
  if(HONE_SANITIZERS)
    target_compile_options(${target} PRIVATE -fsanitize=${HONE_SANITIZERS} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC $<BUILD_INTERFACE:-fsanitize=${HONE_SANITIZERS}>)
  endif()
endfunction()
