#include "runtime/jit/cubin_loads.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "runtime/jit/cubin_elf.h"

namespace hone {
namespace {

// An instruction has 128 bits from sm_70 on. Read off what nvdisasm -hex of CUDA 13.0 prints for sm_75, 80, 86, 89, 90,
// 100, 103, 110 and 120.
constexpr std::size_t kInstructionBytes = 16;
constexpr int kFirstArchitecture = 75, kLastArchitecture = 121;
constexpr int kSplitBranches = 90;  ///< the first architecture whose branches have the low byte of the distance apart

constexpr std::uint64_t kLoad = 0x981, kOldLoad = 0x381, kWideLoad = 0x97e;  // LDG; without a descriptor; of 32 bytes
constexpr std::uint64_t kBranch = 0x947, kExit = 0x94d, kReturn = 0x950;
constexpr std::uint64_t kCopies[] = {0xfae, 0x3ba, 0x5b4};  // LDGSTS, UBLKCP, UTMALDG

constexpr std::uint64_t kAlways = 7;  ///< the predicate of an instruction that has none

constexpr std::size_t kScoreboards = 6;
using Pending = std::array<int, kScoreboards>;  ///< bytes that are under way, by the scoreboard that waits for them

struct Instruction {
  std::uint64_t low = 0, high = 0;

  std::uint64_t opcode() const { return low & 0xfff; }
  /// BRA.DIV, which warps that have diverged take, has no predicate, but a uniform register.
  bool ends_path() const {
    const bool has_condition = ((low >> 12) & 0xf) != kAlways || (opcode() == kBranch && (low >> 24 & 0xff) != 0);
    return !has_condition && (opcode() == kBranch || opcode() == kExit || opcode() == kReturn);
  }
  std::uint64_t waits_for() const { return (high >> 52) & 0x3f; }  ///< a bit for each scoreboard
  std::uint64_t scoreboard() const { return (high >> 46) & 7; }    ///< that its result releases; kScoreboards on: none

  /// 0: it is no load from device memory.
  int load_bytes() const {
    constexpr std::array<int, 8> kBytes{1, 1, 2, 2, 4, 8, 16, 16};
    if (opcode() == kWideLoad) return 32;
    return opcode() == kLoad || opcode() == kOldLoad ? kBytes[(high >> 9) & 7] : 0;
  }

  /// From the instruction behind it to its target, in bytes.
  std::int64_t branch_bytes(int architecture) const {
    const std::int64_t words = static_cast<std::int64_t>(low) >> 34;
    return 4 * (architecture < kSplitBranches ? words : words * 256 + static_cast<std::int64_t>((low >> 16) & 0xff));
  }
};

/// A loop: from the target of a branch back to the branch.
struct Loop {
  std::size_t first = 0, last = 0;  ///< instructions
  int loaded_bytes = 0;             ///< a round, by loads of the greatest width, without those of loops inside

  bool contains(std::size_t at) const { return first <= at && at <= last; }
  std::size_t length() const { return last - first; }
};

/// The machine code of one kernel.
class Code {
 public:
  Code(std::vector<Instruction> instructions, int architecture)
      : instructions_(std::move(instructions)), targets_(instructions_.size(), kNone) {
    for (std::size_t at = 0; at < instructions_.size(); ++at) {
      const Instruction& instruction = instructions_[at];
      copies_ |= std::find(std::begin(kCopies), std::end(kCopies), instruction.opcode()) != std::end(kCopies);
      widest_ = std::max(widest_, instruction.load_bytes());
      if (instruction.opcode() != kBranch) continue;
      const std::int64_t target = static_cast<std::int64_t>(at) + 1 +
                                  instruction.branch_bytes(architecture) / static_cast<std::int64_t>(kInstructionBytes);
      if (target < 0 || target >= std::ssize(instructions_)) continue;
      targets_[at] = static_cast<std::size_t>(target);
      if (targets_[at] <= at) loops_.push_back({.first = targets_[at], .last = at});
    }
    std::stable_sort(loops_.begin(), loops_.end(),
                     [](const Loop& a, const Loop& b) { return a.length() < b.length(); });
  }

  bool is_counted() const { return widest_ > 0 && !copies_; }

  /// The most bytes that are under way in the loop that loads most in a round, or, if all loops load little, anywhere:
  /// other parts, such as the one for the last elements, may have more loads in flight and hardly matter.
  int most_in_flight() {
    int outside = 0;
    for (std::size_t at = 0; at < instructions_.size(); ++at) {
      if (instructions_[at].load_bytes() < widest_) continue;
      Loop* const loop = innermost(at);
      (loop != nullptr ? loop->loaded_bytes : outside) += widest_;
    }
    const auto main = std::max_element(loops_.begin(), loops_.end(), [](const Loop& a, const Loop& b) {
      return a.loaded_bytes < b.loaded_bytes;
    });
    const bool has_main = main != loops_.end() && kLittle * main->loaded_bytes >= outside;
    int most = 0;
    Pending pending = {};
    std::map<std::size_t, Pending> arriving;  // by the target of branches ahead
    for (std::size_t at = 0; at < instructions_.size(); ++at) {
      if (const auto found = arriving.find(at); found != arriving.end()) raise(pending, found->second);
      follow(instructions_[at], pending);
      if (!has_main || innermost(at) == &*main)
        most = std::max(most, std::accumulate(pending.begin(), pending.end(), 0));
      if (targets_[at] != kNone && targets_[at] > at) raise(arriving[targets_[at]], pending);
      if (instructions_[at].ends_path()) pending = {};
    }
    return most;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// A loop that loads less than this part of what is loaded once is not where the time goes.
  static constexpr int kLittle = 4;

  /// Where paths meet, what any of them has under way counts.
  static void raise(Pending& pending, const Pending& other) {
    for (std::size_t i = 0; i < kScoreboards; ++i) pending[i] = std::max(pending[i], other[i]);
  }

  static void follow(const Instruction& instruction, Pending& pending) {
    for (std::size_t i = 0; i < kScoreboards; ++i)
      if ((instruction.waits_for() >> i & 1) != 0) pending[i] = 0;
    if (instruction.scoreboard() < kScoreboards) pending[instruction.scoreboard()] += instruction.load_bytes();
  }

  /// nullptr: in no loop.
  Loop* innermost(std::size_t at) {
    const auto found = std::find_if(loops_.begin(), loops_.end(), [&](const Loop& loop) { return loop.contains(at); });
    return found == loops_.end() ? nullptr : &*found;
  }

  std::vector<Instruction> instructions_;
  std::vector<std::size_t> targets_;  ///< of the branch at each place; kNone: there is none
  std::vector<Loop> loops_;           ///< the shortest first
  int widest_ = 0;                    ///< bytes of a load
  bool copies_ = false;
};

/// The number in "sm_90a"; 0 if there is none.
int number_of(std::string_view architecture) {
  int number = 0;
  if (architecture.starts_with("sm_"))
    std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  return number;
}

}  // namespace

std::optional<int> cubin_bytes_in_flight(std::span<const std::byte> cubin, std::string_view architecture,
                                         std::string_view kernel) {
  const int number = number_of(architecture);
  if (number < kFirstArchitecture || number > kLastArchitecture) return std::nullopt;
  const CubinElf elf(cubin);
  const std::string wanted = std::string(kCubinTextPrefix).append(kernel);
  for (std::size_t i = 0; i < elf.sections(); ++i) {
    const Elf64_Shdr section = elf.section(i);
    if (elf.name(section) != wanted) continue;
    std::vector<Instruction> instructions;
    for (std::size_t at = section.sh_offset; at + kInstructionBytes <= section.sh_offset + section.sh_size;
         at += kInstructionBytes)
      instructions.push_back({elf.read<std::uint64_t>(at), elf.read<std::uint64_t>(at + 8)});
    Code code(std::move(instructions), number);
    return code.is_counted() ? std::optional(code.most_in_flight()) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace hone
