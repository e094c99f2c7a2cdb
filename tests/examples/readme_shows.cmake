# Fails unless the C++ block of README is EXAMPLE, to the letter.
file(READ "${README}" readme)
file(READ "${EXAMPLE}" example)
string(FIND "${readme}" "```cpp\n${example}```\n" position)
if(position EQUAL -1)
  message(FATAL_ERROR "the C++ block of ${README} is not ${EXAMPLE}; copy the example into it")
endif()
