# An outside CMake project finds hone::hone, links it and gets the right sum from it.
include("${SETTINGS}")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" wanted "${VERSION}")
set(folder "${SCRATCH}/find package")
run(${CONFIGURE} -B "${folder}" -DHONE_WANTED=${wanted})
run(${CMAKE_COMMAND} --build "${folder}")
run("${folder}/consumer")
