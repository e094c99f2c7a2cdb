#include <fcntl.h>
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
#include "cache/mount_locks.h"
#include "cache/place.h"
#include "cache/private_group.h"

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

struct Distrust {
  std::string reason;           ///< "": none
  std::string_view advice = {};  ///< as Place::advice
};

/// Why what is at `path` cannot be trusted. A link has no rights of its own.
Distrust distrust(const fs::path& path, const Facts& facts) {
  if (facts.st_uid != 0 && facts.st_uid != ::geteuid())
    return {fmt::format("{} belongs to user {}", path.native(), facts.st_uid)};
  const bool is_sticky = S_ISDIR(facts.st_mode) && (facts.st_mode & S_ISVTX) != 0;
  if (!S_ISLNK(facts.st_mode) && !is_sticky) {
    if ((facts.st_mode & S_IWOTH) != 0)
      return {fmt::format("users other than the owner may write to {}", path.native())};
    if ((facts.st_mode & S_IWGRP) != 0 && !is_private_group(path, facts.st_gid, facts.st_uid))
      return {fmt::format("users other than the owner may write to {}: its group {} may", path.native(), facts.st_gid)};
  }
  if (S_ISREG(facts.st_mode) && facts.st_nlink != 1)
    return {fmt::format("{} has {} names (hard links)", path.native(), facts.st_nlink),
            "remove the other names (find -samefile shows them), or name a copy of the file"};
  return {};
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
        return missing(next);
      if (S_ISLNK(found->st_mode)) {
        follow(next, *found);
      } else if (S_ISDIR(found->st_mode)) {
        folder = enter(next);
      } else {
        return file(next, *found);
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

  void doubt(const fs::path& path, const Facts& facts) {
    if (distrust_.reason.empty()) distrust_ = distrust(path, facts);
  }

  Facts enter(const fs::path& folder) {
    const std::optional<Facts> facts = look(asked_, folder);
    if (!facts) throw store_error(asked_, StoreFault::unopenable, "its folder was removed meanwhile");
    doubt(folder, *facts);
    here_ = folder;
    return *facts;
  }

  void follow(const fs::path& link, const Facts& facts) {
    if (++links_ > kMostLinks) throw store_error(asked_, StoreFault::unopenable, "too many symbolic links");
    doubt(link, facts);
    std::error_code error;
    const fs::path target = fs::read_symlink(link, error);
    if (error) throw store_error(asked_, StoreFault::unopenable, error.message());
    push(target);
    if (target.is_absolute()) here_ = "/";
  }

  Place missing(const fs::path& next) {
    Place place{.path = next, .distrust = {}};
    for (const fs::path& step : steps_) place.path /= step;
    place.distrust = distrust_.reason;
    return place;
  }

  Place file(const fs::path& path, const Facts& facts) {
    if (!S_ISREG(facts.st_mode)) throw store_error(asked_, StoreFault::unopenable, describe(facts.st_mode));
    // To SQLite a file of one byte is an empty one (a relic of its locks on MS-DOS): it would be overwritten.
    if (facts.st_size == 1) throw store_error(asked_, StoreFault::not_a_database, "it holds a single byte");
    doubt(path, facts);
    return {.path = path,
            .exists = true,
            .is_read_only = (facts.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0,
            .device = facts.st_dev,
            .inode = facts.st_ino,
            .distrust = distrust_.reason,
            .advice = distrust_.advice};
  }

  const fs::path& asked_;
  fs::path here_;
  std::deque<fs::path> steps_;
  Distrust distrust_;
  int links_ = 0;
};

}  // namespace

Place find_place(const fs::path& path) { return Walk(path).run(); }

bool file_exists(const fs::path& path) { return find_place(fs::absolute(path)).exists; }

void require_trust(const Place& place) {
  if (!place.distrust.empty()) throw store_error(place.path, StoreFault::untrusted, place.distrust, place.advice);
}

void require_writer(const Place& place) {
  if (place.is_read_only)
    throw store_error(place.path, StoreFault::read_only, "its mode lets nobody write to it, as that of a snapshot");
}

bool is_file_or_nothing(const fs::path& path) noexcept {
  Facts facts{};
  return ::lstat(path.c_str(), &facts) == 0 ? S_ISREG(facts.st_mode) : errno == ENOENT;
}

std::string companion_distrust(const fs::path& path, bool& exists) {
  const std::optional<Facts> facts = look(path, path);
  exists = facts.has_value();
  if (!exists) return "";
  return S_ISREG(facts->st_mode) ? distrust(path, *facts).reason : path.native() + " is not a regular file; remove it";
}

void require_finished(const fs::path& path) {
  for (const char* suffix : {"-journal", "-wal"}) {
    const fs::path beside = fs::path(path) += suffix;
    if (!is_file_or_nothing(beside))
      throw store_error(path, StoreFault::unopenable, beside.native() + " is not a regular file; remove it");
  }
  const fs::path journal = fs::path(path) += "-journal";
  const int descriptor = ::open(journal.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT) return;
  char first = 1;  // a journal that cannot be read may hold anything
  if (descriptor >= 0) {
    if (::read(descriptor, &first, 1) == 0) first = 0;
    ::close(descriptor);
  }
  if (first != 0)
    throw store_error(path, StoreFault::unopenable,
                      "a write to it was interrupted (" + journal.native() + "), and it is not trusted to be undone");
}

void require_writable_place(const fs::path& path) {
  const Place place = find_place(fs::absolute(path));
  require_trust(place);
  require_writer(place);
  require_locks(place.path);
}

void require_same(const Place& before) {
  const Place now = find_place(before.path);
  if (!now.exists || (before.exists && (now.device != before.device || now.inode != before.inode)))
    throw store_error(before.path, StoreFault::untrusted, "another file was put in its place while it was opened");
  if (before.distrust.empty()) require_trust(now);
}

}  // namespace hone::cache
