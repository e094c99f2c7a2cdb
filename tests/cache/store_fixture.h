// CacheStore: an empty cache file, the sample publication and the query that finds it.
#pragma once

#include <gmock/gmock.h>

#include "tests/cache/support.h"

namespace hone::cache {

class CacheStore : public testing::Test {
 protected:
  /// Which of several winners answers: every publication here gets a block_threads of its own.
  int found_threads(const Query& query) const {
    const std::optional<Hit> hit = store_.find(query);
    return hit ? hit->winner.candidate.block_threads : 0;
  }
  Publication with_threads(Publication publication, int block_threads) const {
    publication.winner.candidate.block_threads = block_threads;
    return publication;
  }

  TempFolder folder_;
  std::filesystem::path file_ = folder_ / "winners.sqlite";
  Store store_{file_};
  Publication sample_ = sample_publication();
  Query query_ = matching_query(sample_);
  Need need_{.query = query_};
};
}  // namespace hone::cache
