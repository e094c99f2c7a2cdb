#include "tests/runtime/ranks/ranks.h"

#include <cstdio>
#include <filesystem>
#include <optional>

#include "tests/runtime/support/temp_folder.h"

namespace hone {
namespace {

std::filesystem::path shared_cache;

/// Says nothing but what failed, with the rank in front.
class FailurePrinter final : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name() ? result.file_name() : "",
                   result.line_number(), result.message());
  }

  int rank_;
};

}  // namespace

Session& RanksTest::shared_session() {
  static Session session(Device::open("host"), {.on_miss = MissPolicy::heuristic, .cache_path = shared_cache});
  return session;
}

}  // namespace hone

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new hone::FailurePrinter(rank));
  } else {
    std::printf("%d ranks\n", ranks);
  }
  std::optional<hone::TempFolder> folder;
  if (rank == 0) folder.emplace();
  char path[4096] = {};
  if (folder) std::snprintf(path, sizeof(path), "%s", (*folder / "cache.sqlite").c_str());
  MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD);
  hone::shared_cache = path;
  int failed = RUN_ALL_TESTS(), failed_anywhere = 0;
  MPI_Allreduce(&failed, &failed_anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  folder.reset();
  MPI_Finalize();
  return failed_anywhere;
}
