# Installs the library with its headers, CMake package and pkg-config file, the hone command, licence and docs.
# Included last: it needs the targets.
include(CMakePackageConfigHelpers)

set(HONE_PACKAGE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/hone)

install(TARGETS hone EXPORT honeTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/hone ${PROJECT_BINARY_DIR}/runtime/include/hone TYPE INCLUDE
        FILES_MATCHING PATTERN "*.h")
# Winners without code (docs/cache.md). Files that are added later are installed, too.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/hone DESTINATION ${CMAKE_INSTALL_DATADIR}
        FILES_MATCHING PATTERN "*.winners" PATTERN "README.md")
install(FILES LICENSE README.md CHANGELOG.md TYPE DOC)
install(DIRECTORY docs/ TYPE DOC FILES_MATCHING PATTERN "*.md")

if(HONE_BUILD_TOOLS)
  # A shared libhone is found from the command's own place, wherever both were moved together.
  file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(hone_command PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
  install(TARGETS hone_command)
  # What shells and man look for is printed by the command itself, which cannot run where it was compiled for another
  # machine.
  if(NOT CMAKE_CROSSCOMPILING)
    include(${CMAKE_CURRENT_LIST_DIR}/HoneShellFiles.cmake)
  endif()
endif()

# --- find_package(hone) ---

# What a program links besides a static libhone; a shared one has it linked already.
get_target_property(hone_type hone TYPE)
set(HONE_DEPENDENCIES "")
if(hone_type STREQUAL STATIC_LIBRARY)
  string(APPEND HONE_DEPENDENCIES "find_dependency(SQLite3 3.37)\n" "find_dependency(ZLIB 1.2.11)\n"
         "find_dependency(Boost 1.71 COMPONENTS context)\n")
  if(NOT HONE_FMT_HEADER_ONLY)
    string(APPEND HONE_DEPENDENCIES "find_dependency(fmt)\n")
  endif()
  if(HONE_WITH_CUDA)
    string(APPEND HONE_DEPENDENCIES
           "find_dependency(CUDAToolkit ${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR})\n")
  endif()
endif()

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/honeConfig.cmake.in ${PROJECT_BINARY_DIR}/honeConfig.cmake
  INSTALL_DESTINATION ${HONE_PACKAGE_FOLDER}
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/honeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT honeTargets NAMESPACE hone:: DESTINATION ${HONE_PACKAGE_FOLDER})
install(FILES ${PROJECT_BINARY_DIR}/honeConfig.cmake ${PROJECT_BINARY_DIR}/honeConfigVersion.cmake
        DESTINATION ${HONE_PACKAGE_FOLDER})

# --- pkg-config ---

# Paths are relative to the file itself, so that an installed tree may be moved. pkg-config quotes that place by itself.
file(RELATIVE_PATH HONE_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" HONE_PC_PREFIX ${HONE_PC_PREFIX})
foreach(kind INCLUDEDIR LIBDIR)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${kind}})
    set(HONE_PC_${kind} ${CMAKE_INSTALL_${kind}})
  else()
    set(HONE_PC_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()

# pkg-config hides *.private without --static; a static libhone is not usable without them.
set(HONE_PC_CUDA "")
set(HONE_PC_REQUIRES "")
set(HONE_PC_LIBS "")
set(HONE_PC_LIBRARY hone++)
if(hone_type STREQUAL STATIC_LIBRARY)
  set(HONE_PC_REQUIRES "sqlite3 >= 3.37, zlib")
  if(NOT HONE_FMT_HEADER_ONLY)
    string(APPEND HONE_PC_REQUIRES ", fmt")
  endif()
  # By its file's name: -lhone is the C interface, where both are installed.
  set(HONE_PC_LIBRARY ":libhone.a")
  set(HONE_PC_LIBS " -lboost_context -ldl -pthread")
  if(HONE_WITH_CUDA)
    set(HONE_PC_CUDA "cuda_libdir=${CUDAToolkit_LIBRARY_DIR}\n")
    string(PREPEND HONE_PC_LIBS " -L\${cuda_libdir} -lcudart_static -lrt")
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/hone.pc.in ${PROJECT_BINARY_DIR}/hone.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hone.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# --- The C interface, and its module for Fortran, which programs compile themselves: compilers differ in module files ---

if(HONE_BUILD_C)
  install(TARGETS hone_c EXPORT honeTargets)
  install(DIRECTORY bindings/c/include/hone TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
  install(FILES bindings/c/fortran/hone.f90 DESTINATION ${CMAKE_INSTALL_DATADIR}/hone/fortran)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/hone-c.pc.in ${PROJECT_BINARY_DIR}/hone-c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/hone-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
