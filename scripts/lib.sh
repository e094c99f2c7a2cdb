# shellcheck shell=bash disable=SC2034
# What scripts/quickstart and scripts/test share. Sourced, never run; works from any folder.

project_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly project_folder

# Debian's names, the same in Ubuntu. Why each is needed: docs/building.md.
readonly build_packages=(
  g++ cmake ninja-build
  libsqlite3-dev zlib1g-dev libboost-context-dev libfmt-dev libxxhash-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev
)
readonly test_packages=(libgtest-dev libgmock-dev pkg-config gfortran python3-venv python3-dev
  libopenmpi-dev openmpi-bin ccache lld)

step() { printf '==> %s\n' "$*"; }

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# seconds_since START: for messages; START is a value of $SECONDS.
seconds_since() { printf '%d s' $((SECONDS - $1)); }

# run_logged LOG COMMAND...: runs quietly, and shows the end of the log when the command fails.
run_logged() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 60 "$log" >&2
    fail "'$*' failed; the whole output is in $log"
  fi
}

is_installed() {
  dpkg-query --show --showformat='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

# as_root COMMAND...: runs it as root where that works without asking, or where somebody can be asked.
as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
    sudo "$@"
  else
    return 126
  fi
}

# ensure_packages PACKAGE...: installs what is missing on Debian and Ubuntu; elsewhere says what is needed and goes on.
ensure_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    step "This is no Debian or Ubuntu: going on with what is installed. Needed are the equivalents of: $*"
    return
  fi
  local package missing=()
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if [[ ${#missing[@]} -eq 0 ]]; then
    step "All packages that are needed are installed"
    return
  fi

  step "Installing packages: ${missing[*]}"
  local log=$project_folder/build/logs/packages.log
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 --quiet)
  local by_hand="sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
  as_root true || fail "installing packages needs root, and sudo gave none. Run this, then try again:
  $by_hand"
  mkdir -p "$(dirname "$log")"
  # An unreachable third-party list must not stop an installation that does not need it.
  as_root "${apt[@]}" update >"$log" 2>&1 </dev/null ||
    step "apt-get update had errors (see $log): trying with the lists that are there"
  if ! as_root "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >>"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    fail "apt-get could not install them (the whole output is in $log). By hand it is:
  $by_hand"
  fi
}

# configure PRESET [OPTION...]: what CMake found out about devices is worth a line each.
configure() {
  local preset=$1 log=$project_folder/build/logs/configure-$1.log
  shift
  run_logged "$log" cmake -S "$project_folder" --preset "$preset" "$@"
  sed -n 's/^-- Hone: /    /p' "$log"
}

# build PRESET [TARGET...]
build() {
  local preset=$1 log=$project_folder/build/logs/build-$1.log start=$SECONDS
  shift
  local targets=()
  [[ $# -eq 0 ]] || targets=(--target "$@")
  # From the project's folder: before CMake 3.26 a build preset is only looked up there.
  (cd "$project_folder" && run_logged "$log" cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}")
  printf '    built in %s\n' "$(seconds_since "$start")"
}
