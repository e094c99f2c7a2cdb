# hone_embed(<target> <symbol> <folder> <file>...): compiles text files of <folder> into <target>, to be read through
# the function declared in runtime/jit/embedded_sources.h:  std::span<const SourceFile> hone::embedded::<symbol>().
set(HONE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/HoneEmbedScript.cmake)

function(hone_embed target symbol folder)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cpp)
  list(TRANSFORM ARGN PREPEND ${folder}/ OUTPUT_VARIABLE paths)
  list(JOIN ARGN "|" names)
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DSYMBOL=${symbol} -DFOLDER=${folder} "-DNAMES=${names}" -DOUTPUT=${generated}
            -P ${HONE_EMBED_SCRIPT}
    DEPENDS ${paths} ${HONE_EMBED_SCRIPT}
    COMMENT "Embedding ${symbol}"
    VERBATIM)
  target_sources(${target} PRIVATE ${generated})
  # A unity build would compile others again with every change of a text.
  set_source_files_properties(${generated} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
