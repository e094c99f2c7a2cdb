"""The ``hone`` command of the wheel, and NVRTC's place for it and for the library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ._errors import CacheError, Error
from ._paths import AnyPath, path_bytes


_CACHE_FAILED = 5  # the exit code of the command


def command_path() -> str:
    """The path of the ``hone`` command in this package."""
    return str(Path(__file__).with_name("bin") / "hone")


def find_nvrtc_wheels() -> None:
    """Let the library look for NVRTC in the ``nvidia-cuda-nvrtc`` wheels, in ``HONE_NVRTC_PATH`` if that is not set."""
    folders = [
        str(folder)
        for place in filter(os.path.isabs, sys.path)
        for pattern in ("nvidia/cu[0-9]*/lib", "nvidia/cuda_nvrtc/lib")
        for folder in Path(place).glob(pattern)
        if any(folder.glob("libnvrtc.so*"))
    ]
    if folders:
        os.environ.setdefault("HONE_NVRTC_PATH", ":".join(folders))


def run_json(*arguments: str) -> Any:
    """Run the ``hone`` command and read the JSON that it prints.

    Raises `Error` with its message where it fails: `CacheError` if the cache file is at fault.
    """
    done = subprocess.run([command_path(), *arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        kind = CacheError if done.returncode == _CACHE_FAILED else Error
        raise kind(done.stderr.strip() or f"hone {arguments[0]} ended with status {done.returncode}")
    return json.loads(done.stdout)


def inspect(*, device: str | None = None, cache: AnyPath | None = None) -> list[dict[str, Any]]:
    """The winners in the cache, one dictionary for each, as ``pandas.DataFrame`` takes them.

    Parameters
    ----------
    device : str, optional
        Only those of this device: ``'host'``, ``'cuda'``, or a part of its name.
    cache : path, optional
        The cache file; by default what ``HONE_CACHE`` says, or the usual place.

    Returns
    -------
    list of dict
        The fields are those of ``hone inspect --json``, those of its objects with a dot: ``'problem.operation'``.
    """
    options = [] if device is None else ["--device", device]
    if cache is not None:
        options += ["--cache", os.fsdecode(path_bytes(cache, "cache"))]
    return [_flat(winner) for winner in run_json("inspect", *options)["winners"]]


def _flat(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat
