#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "cache/errors.h"
#include "cache/place.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;

using Facts = struct ::stat;

constexpr int kMostLinks = 40;  // as many as Linux follows itself

std::string_view describe(::mode_t mode) {
  if (S_ISDIR(mode)) return "it is a directory";
  if (S_ISFIFO(mode)) return "it is a FIFO, not a file";
  if (S_ISSOCK(mode)) return "it is a socket, not a file";
  return "it is a device, not a file";
}

/// nullopt: there is nothing. `asked` is for the message.
std::optional<Facts> look(const fs::path& asked, const fs::path& path) {
  Facts facts{};
  if (::lstat(path.c_str(), &facts) == 0) return facts;
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  throw store_error(asked, StoreFault::unopenable, std::generic_category().message(errno));
}

/// Why what is at `path` cannot be trusted; "" when it can. A link has no rights of its own.
std::string distrust(const fs::path& path, const Facts& facts, bool may_be_sticky) {
  if (facts.st_uid != 0 && facts.st_uid != ::geteuid())
    return fmt::format("{} belongs to user {}", path.native(), facts.st_uid);
  const bool others_write = !S_ISLNK(facts.st_mode) && (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool is_sticky = (facts.st_mode & S_ISVTX) != 0;
  if (others_write && !(may_be_sticky && is_sticky))
    return fmt::format("users other than the owner may write to {}", path.native());
  if (S_ISREG(facts.st_mode) && facts.st_nlink != 1)
    return fmt::format("{} has {} names (hard links)", path.native(), facts.st_nlink);
  return "";
}

/// From the root down to the file.
class Walk {
 public:
  explicit Walk(const fs::path& asked) : asked_(asked) { push(asked); }

  Place run() {
    Facts folder = enter("/");
    while (!steps_.empty()) {
      const fs::path step = steps_.front();
      steps_.pop_front();
      if (step == "..") {
        folder = enter(here_.parent_path());
        continue;
      }
      const fs::path next = here_ / step;
      const std::optional<Facts> found = look(asked_, next);
      if (!found || (!S_ISDIR(found->st_mode) && !S_ISLNK(found->st_mode) && !steps_.empty()))
        return missing(next, folder);
      if (S_ISLNK(found->st_mode)) {
        follow(next, *found);
      } else if (S_ISDIR(found->st_mode)) {
        folder = enter(next);
      } else {
        return file(next, *found, folder);
      }
    }
    throw store_error(asked_, StoreFault::unopenable, describe(folder.st_mode));
  }

 private:
  void push(const fs::path& path) {
    const fs::path relative = path.relative_path();
    std::deque<fs::path> steps;
    std::copy_if(relative.begin(), relative.end(), std::back_inserter(steps),
                 [](const fs::path& step) { return !step.empty() && step != "."; });
    steps_.insert(steps_.begin(), steps.begin(), steps.end());
  }

  void doubt(const fs::path& path, const Facts& facts, bool may_be_sticky) {
    if (distrust_.empty()) distrust_ = distrust(path, facts, may_be_sticky);
  }

  Facts enter(const fs::path& folder) {
    const std::optional<Facts> facts = look(asked_, folder);
    if (!facts) throw store_error(asked_, StoreFault::unopenable, "its folder was removed meanwhile");
    doubt(folder, *facts, true);
    here_ = folder;
    return *facts;
  }

  void follow(const fs::path& link, const Facts& facts) {
    if (++links_ > kMostLinks) throw store_error(asked_, StoreFault::unopenable, "too many symbolic links");
    doubt(link, facts, false);
    std::error_code error;
    const fs::path target = fs::read_symlink(link, error);
    if (error) throw store_error(asked_, StoreFault::unopenable, error.message());
    push(target);
    if (target.is_absolute()) here_ = "/";
  }

  Place missing(const fs::path& next, const Facts& folder) {
    Place place{.path = next, .distrust = {}};
    for (const fs::path& step : steps_) place.path /= step;
    if (steps_.empty()) doubt(here_, folder, false);
    place.distrust = distrust_;
    return place;
  }

  Place file(const fs::path& path, const Facts& facts, const Facts& folder) {
    if (!S_ISREG(facts.st_mode)) throw store_error(asked_, StoreFault::unopenable, describe(facts.st_mode));
    // To SQLite a file of one byte is an empty one (a relic of its locks on MS-DOS): it would be overwritten.
    if (facts.st_size == 1) throw store_error(asked_, StoreFault::not_a_database, "it holds a single byte");
    doubt(here_, folder, false);
    doubt(path, facts, false);
    return {.path = path, .exists = true, .device = facts.st_dev, .inode = facts.st_ino, .distrust = distrust_};
  }

  const fs::path& asked_;
  fs::path here_;
  std::deque<fs::path> steps_;
  std::string distrust_;
  int links_ = 0;
};

}  // namespace

Place find_place(const fs::path& path) { return Walk(path).run(); }

bool file_exists(const fs::path& path) { return find_place(fs::absolute(path)).exists; }

void require_trust(const Place& place) {
  if (!place.distrust.empty()) throw store_error(place.path, StoreFault::untrusted, place.distrust);
}

void require_same(const Place& before) {
  const Place now = find_place(before.path);
  if (!now.exists || (before.exists && (now.device != before.device || now.inode != before.inode)))
    throw store_error(before.path, StoreFault::untrusted, "another file was put in its place while it was opened");
  if (before.distrust.empty()) require_trust(now);
}

}  // namespace hone::cache
