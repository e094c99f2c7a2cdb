# The installed tree may be moved: the hone command still starts, and finds a shared libhone beside it.
include("${SETTINGS}")
file(REMOVE_RECURSE "${SCRATCH}/moved")
file(COPY "${PREFIX}/" DESTINATION "${SCRATCH}/moved")
run("${SCRATCH}/moved/${BINDIR}/hone" --version)
