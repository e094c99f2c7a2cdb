// Network file systems whose locks other machines do not see. There is none here: the text of /proc/self/mountinfo says
// that there is.
#include "cache/mount_locks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "cache/maintenance/merge.h"
#include "cache/maintenance/snapshot.h"
#include "tests/cache/faults/campaign.h"
#include "tests/cache/faults/fast_folder.h"
#include "tests/cache/support.h"
#include "tests/support/names.h"

namespace hone::cache {
namespace {

namespace fs = std::filesystem;
using test::Names;

/// A line as Linux 6.1 writes it, of device 0:52.
std::string line_of(const std::string& type, const std::string& options, const std::string& optional = "shared:193 ") {
  return "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
         "310 24 0:52 /export/home /home/all\\040users rw,nosuid,relatime " + optional + "- " + type +
         " fileserver:/export/home " + options + "\n"
         "311 24 0:53 / /scratch rw,relatime shared:194 - nfs other:/scratch rw,vers=3,nolock,local_lock=all\n";
}

TEST(MountLocks, ThatOtherMachinesSeeAreFine) {
  const std::array<std::array<std::string, 2>, 6> mounts{{
      {"nfs4", "rw,vers=4.2,rsize=1048576,hard,proto=tcp,sec=sys,local_lock=none,addr=10.0.0.1"},
      {"nfs", "rw,vers=3,hard,nolocks=no,mountproto=udp,local_lock=none"},
      {"nfs", "rw,vers=3,local_lock=flock"},  // SQLite uses fcntl()
      {"cifs", "rw,vers=3.1.1,cache=strict,brl"},
      {"lustre", "rw,flock,lazystatfs"},
      {"ceph", "rw,noatime,acl"},
  }};
  for (const auto& [type, options] : mounts) EXPECT_EQ(local_locks(line_of(type, options), 0, 52), "") << options;
  EXPECT_EQ(local_locks(line_of("nfs", "rw,nolock"), 0, 51), "") << "of another device";
  EXPECT_EQ(local_locks(line_of("nfs", "rw,nolock"), 8, 1), "");
  EXPECT_EQ(local_locks("", 0, 52), "");
  EXPECT_EQ(local_locks("310 24 0:52 / /home rw - nfs", 0, 52), "") << "a line that is cut off";
}

TEST(MountLocks, ThatStayOnTheMachineNameTheMountAndItsOption) {
  const std::array<std::array<std::string, 3>, 6> mounts{{
      {"nfs", "rw,vers=3,nolock,proto=tcp,local_lock=none", "nolock"},
      {"nfs", "rw,vers=3,hard,local_lock=posix", "local_lock=posix"},
      {"nfs4", "rw,local_lock=all", "local_lock=all"},
      {"cifs", "rw,vers=3.0,nobrl", "nobrl"},
      {"lustre", "rw,localflock", "localflock"},
      {"fuse.sshfs", "rw,user_id=0", "fuse.sshfs"},
  }};
  for (const auto& [type, options, named] : mounts)
    for (const std::string optional : {"", "shared:193 ", "shared:193 master:2 propagate_from:2 "})
      EXPECT_THAT(local_locks(line_of(type, options, optional), 0, 52),
                  Names("fileserver:/export/home", "/home/all users", type, named));
  const std::string of_mount = "310 24 0:52 / /home rw,nolock - nfs server:/ rw,vers=3\n";
  EXPECT_THAT(local_locks(of_mount, 0, 52), Names("nolock"));
}

/// Exit codes of a child that failed.
constexpr int kNotAllowed = 77;

/// Mounts a file system at `folder` which everybody then takes for an NFS mount with nolock.
bool mount_network(const fs::path& folder, const fs::path& table) {
  if (!may_mount() || ::mount("ramfs", folder.c_str(), "ramfs", 0, "mode=0700") != 0) return false;
  struct ::stat found {};
  if (::stat(folder.c_str(), &found) != 0) return false;
  std::ofstream(table) << fmt::format("36 24 {}:{} / {} rw,relatime - nfs server:/shared rw,vers=3,nolock\n",
                                      major(found.st_dev), minor(found.st_dev), folder.native());
  return ::mount(table.c_str(), "/proc/self/mountinfo", nullptr, MS_BIND, nullptr) == 0;
}

/// Checks what a file there can be used for.
void use_file_there(const fs::path& shared, const fs::path& own) {
  const Publication publication = sample_publication();
  const fs::path cache = shared / "winners.sqlite";
  const auto publish = [&] { Store(cache).publish(publication); };
  EXPECT_EQ(fault_of(publish, cache, "nolock"), StoreFault::unlocked);
  EXPECT_EQ(fault_of(publish, cache, "hone cache snapshot"), StoreFault::unlocked);
  EXPECT_TRUE(fs::is_empty(shared)) << "something was made where nothing may be";

  Store(own).publish(publication);
  const std::array sources{own};
  EXPECT_EQ(fault_of([&] { merge(cache, sources, {}); }, cache, "server:/shared"), StoreFault::unlocked);
  snapshot(own, cache, {});
  EXPECT_TRUE(Store(cache).find(matching_query(publication))) << "a snapshot is put there, and read";
  EXPECT_EQ(fault_of(publish, cache, "nolock"), StoreFault::unlocked);

  std::ofstream(machine_file(cache)) << "another machine\n";
  EXPECT_EQ(fault_of(publish, cache, "nolock"), StoreFault::unlocked);
  std::ofstream(machine_file(cache)) << this_machine() << '\n';
  fs::permissions(cache, fs::perms(0600));
  EXPECT_NO_THROW(publish()) << "the file is this machine's alone";
}

TEST(MountLocks, ThatStayOnTheMachineKeepWritersAway) {
  const FastFolder folder;
  fs::create_directory(folder / "shared");
  const int status = status_of_child([&] {
    if (!mount_network(folder / "shared", folder / "mountinfo")) return kNotAllowed;
    use_file_there(folder / "shared", folder / "own.sqlite");
    return testing::Test::HasFailure() ? 1 : 0;
  });
  if (status == kNotAllowed << 8) GTEST_SKIP() << "this process may not mount a file system";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hone::cache
