#include "cache/maintenance/verify.h"

#include <fmt/format.h>

#include <functional>
#include <sstream>
#include <string_view>

#include "cache/errors.h"
#include "cache/limits.h"
#include "cache/maintenance/open_file.h"
#include "cache/place.h"
#include "cache/properties.h"
#include "cache/row_sql.h"
#include "cache/rows.h"
#include "cache/transact.h"

namespace hone::cache {
namespace {

constexpr std::size_t kListedFindings = 100;
constexpr std::string_view kWrongDigest = "its digest does not hold";

class Verification {
 public:
  Verification(Connection& connection, VerifyReport& report) : connection_(connection), report_(report) {}

  void run() {
    guard("trees", [&] { check_trees(); });
    guard("references", [&] { check_references(); });
    guard("table device", [&] { check_devices(); });
    guard("table winner", [&] { check_winners(); });
    guard("table binary", [&] { check_binaries(); });
    guard("table tuning", [&] { check_tunings(); });
    guard("table property", [&] { check_properties(); });
    guard("table limits", [&] { check_limits(); });
  }

 private:
  void add(std::string where, std::string_view what) {
    ++report_.damaged;
    if (report_.findings.size() < kListedFindings) report_.findings.push_back({std::move(where), std::string(what)});
  }

  /// Damage that SQLite comes across ends one check, not the others.
  void guard(std::string_view where, const std::function<void()>& check) {
    try {
      check();
    } catch (const StoreError& error) {
      if (error.fault() != StoreFault::corrupt && error.fault() != StoreFault::failed) throw;
      add(std::string(where), "SQLite cannot read it to its end");
    }
  }

  /// Calls `check` with every key of a table.
  template <class Key>
  void each(std::string_view sql, const std::function<void(const Key&)>& check) {
    Statement keys = connection_.prepare(sql);
    while (keys.step()) {
      Key key{};
      keys.read(key);
      check(key);
    }
  }

  void check_trees() {
    each<std::string>("PRAGMA integrity_check(100)", [&](const std::string& text) {
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        if (line != "ok" && !line.starts_with("***")) add("trees", line);
      }
    });
  }

  void check_references() {
    Statement broken = connection_.prepare("PRAGMA foreign_key_check");
    while (broken.step()) {
      std::string table, parent;
      std::int64_t row = 0;
      broken.read(table);
      broken.read(row);
      broken.read(parent);
      add(row > 0 ? fmt::format("{} {}", table, row) : "table " + table,
          "it refers to a " + parent + " that is not there");
    }
  }

  void check_devices() {
    each<std::int64_t>("SELECT id FROM device", [&](std::int64_t id) {
      ++report_.devices;
      const std::optional<DeviceRow> row = find_device(connection_, id);
      if (!row || !row->intact) add(fmt::format("device {}", id), kWrongDigest);
    });
  }

  void check_winners() {
    each<std::int64_t>("SELECT id FROM winner", [&](std::int64_t id) {
      ++report_.winners;
      const std::optional<WinnerRow> row = find_winner(connection_, id);
      if (!row || !row->intact) add(fmt::format("winner {}", id), kWrongDigest);
      else if (row->stored.binary_bytes == 0) ++report_.without_code;
    });
  }

  void check_binaries() {
    each<std::string>("SELECT digest FROM binary", [&](const std::string& digest) {
      ++report_.binaries;
      if (!read_binary(connection_, digest)) add("binary " + digest, kWrongDigest);
    });
  }

  void check_tunings() {
    each<std::int64_t>("SELECT winner FROM tuning", [&](std::int64_t winner) {
      ++report_.tunings;
      const std::optional<TuningRow> row = read_tuning(connection_, winner);
      if (row) report_.trials += static_cast<std::int64_t>(row->tuning.trials.size());
      if (!row || !row->intact) add(fmt::format("trials of winner {}", winner), kWrongDigest);
    });
  }

  void check_properties() {
    if (report_.schema_version < 2) return;
    each<std::string>("SELECT name FROM property", [&](const std::string& name) {
      if (!read_property(connection_, name)) add("property " + name, kWrongDigest);
    });
  }

  void check_limits() {
    if (report_.schema_version < 9) return;
    Statement keys = connection_.prepare("SELECT device, machine, driver FROM limits");
    while (keys.step()) {
      LimitsRecord key;
      each_key_field(key, Reader{keys});
      if (!find_limits(connection_, key)) add(fmt::format("limits of {}", key.device), kWrongDigest);
    }
  }

  Connection& connection_;
  VerifyReport& report_;
};

}  // namespace

VerifyReport verify(const std::filesystem::path& path) {
  VerifyReport report;
  if (!file_exists(absolute_path(path))) return report;
  const ReadingFile file(path);
  report.schema_version = file.schema_version();
  if (!file.is_empty()) Verification(file.connection(), report).run();
  return report;
}

}  // namespace hone::cache
