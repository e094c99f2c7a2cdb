# Fails unless a block of PAGE, marked as LANGUAGE, is EXAMPLE to the letter.
file(READ "${PAGE}" page)
file(READ "${EXAMPLE}" example)
string(FIND "${page}" "```${LANGUAGE}\n${example}```\n" position)
if(position EQUAL -1)
  message(FATAL_ERROR "no ${LANGUAGE} block of ${PAGE} is ${EXAMPLE}; copy the example into it")
endif()
