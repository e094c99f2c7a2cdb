# Writes OUTPUT: one C++ file that holds the files NAMES (separated by |) of FOLDER as raw string literals.
string(REPLACE "|" ";" names "${NAMES}")
set(text "#include \"runtime/jit/embedded_sources.h\"\n\n#include <array>\n\nnamespace hone::embedded {\n\n")
list(LENGTH names count)
string(APPEND text "std::span<const SourceFile> ${SYMBOL}() {\n"
                   "  // Never destroyed: a static Session may compile after main().\n"
                   "  static const auto& files = *new std::array<SourceFile, ${count}>{{\n")
foreach(name IN LISTS names)
  file(READ "${FOLDER}/${name}" content)
  string(APPEND text "      source_file(\"${name}\", R\"hone_embed(${content})hone_embed\"),\n")
endforeach()
string(APPEND text "  }};\n  return files;\n}\n\n}  // namespace hone::embedded\n")
file(WRITE "${OUTPUT}" "${text}")
