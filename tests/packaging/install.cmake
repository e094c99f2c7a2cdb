# Installs the build into an empty prefix.
include("${SETTINGS}")
file(REMOVE_RECURSE "${PREFIX}" "${SCRATCH}")
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${PREFIX}")
