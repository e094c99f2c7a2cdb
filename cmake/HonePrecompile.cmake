# What most sources include, compiled once for each set of compile flags. Sources still include all that they use: the
# release preset compiles them without (CMAKE_DISABLE_PRECOMPILE_HEADERS), which finds an #include that is missing.
set(HONE_COMMON_HEADERS
  <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <deque> <filesystem>
  <fstream> <functional> <limits> <map> <memory> <mutex> <optional> <random> <span> <sstream> <string> <string_view>
  <thread> <tuple> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)
