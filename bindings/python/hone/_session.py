"""Sessions: the runtime of one device."""

from __future__ import annotations

import json
import math
import numbers
import os
from typing import Any

from . import _arrays, _errors, _native
from ._paths import AnyPath, path_bytes

_ON_MISS = {"tune": 0, "heuristic": 1, "error": 2}
_OBJECTIVES = {"time": 0, "energy": 1}


def devices() -> list[str]:
    """The names of this machine's devices: CUDA devices first, then ``'host'``.

    Examples
    --------
    >>> hone.devices()[-1]
    'host'
    """
    names: list[str] = json.loads(_native.devices_json())
    return names


_MOST_SECONDS = 1e9


def _milliseconds(seconds: float, name: str, least: float = 0.0) -> int:
    if not isinstance(seconds, numbers.Real):
        raise TypeError(f"{name}: a number of seconds is wanted, not the {type(seconds).__name__} {seconds!r}")
    if not math.isfinite(seconds):
        raise ValueError(f"{name} is {seconds}: a finite number of seconds is wanted")
    if not least <= seconds <= _MOST_SECONDS:
        raise ValueError(f"{name} is {seconds}: {least} to {_MOST_SECONDS:.0e} seconds are wanted")
    return round(seconds * 1000)


def _budget_ms(seconds: float) -> int:
    """Return what one tuning may take: a millisecond at least."""
    return _milliseconds(seconds, "budget", 0.001)


class Session(_native.Session):
    """The runtime of one device. Any number of threads may use it at once.

    Calls without a ``session=`` use one default session for each device, made at the first use. Keep a session of your
    own for as long as work of it may be pending.

    Parameters
    ----------
    device : str
        ``'cuda:0'``, ``'host'``, …; ``'auto'`` is the first CUDA device, or else the host.
    on_miss : {'heuristic', 'tune', 'error'}, optional
        What a call does for which no winner is known: compile the first choice of the occupancy model, or take the
        winner of the nearest class, in tens of milliseconds; tune, which takes seconds; or raise `NotTunedError`. By
        default what ``HONE_ON_MISS`` says, or ``'heuristic'``; unless that is set, the first such call of the process
        says on standard error how to tune it.
    tune_budget : float, optional
        Seconds to spend on a tuning. The default is 2.
    cache : path, optional
        The cache file; ``''`` for none. By default what ``HONE_CACHE`` says, or the usual place.
    capture_workspaces : int, optional
        MiB of memory set aside for captured graphs: each takes 1 MiB for each of its streams, for the life
        of the session. The default is 16.
    cache_read_only : bool
        Never write to the cache file.
    validate : bool
        Ask the driver about every pointer, which takes a microsecond for each, and check offsets, which waits. Not for
        the host device, whose arrays are anywhere.
    objective : {'time', 'energy'}, optional
        What winners are chosen by: the fastest, or of those that are almost as fast the one whose calls take the least
        energy. Winners of one never serve a session of the other, and a tuning by energy is refused on a device that
        does not count it. By default what ``HONE_OBJECTIVE`` says, or ``'time'``.

    Examples
    --------
    >>> session = hone.Session("host", cache="")
    >>> session.device
    'host'
    >>> hone.max(numpy.array([3, 1, 2], "int32"), session=session)
    array(3, dtype=int32)
    """

    def __init__(
        self,
        device: str = "auto",
        *,
        on_miss: str | None = None,
        tune_budget: float | None = None,
        cache: AnyPath | None = None,
        capture_workspaces: int | None = None,
        cache_read_only: bool = False,
        validate: bool = False,
        objective: str | None = None,
    ) -> None:
        if on_miss is not None and on_miss not in _ON_MISS:
            raise ValueError(f"on_miss is {on_miss!r}; known are {', '.join(_ON_MISS)}")
        if objective is not None and objective not in _OBJECTIVES:
            raise ValueError(f"objective is {objective!r}; known are {', '.join(_OBJECTIVES)}")
        super().__init__(
            device,
            None if on_miss is None else _ON_MISS[on_miss],
            None if tune_budget is None else _milliseconds(tune_budget, "tune_budget"),
            None if cache is None else path_bytes(cache, "cache"),
            capture_workspaces,
            cache_read_only,
            validate,
            None if objective is None else _OBJECTIVES[objective],
        )
        if validate and self.device == "host":
            raise ValueError("validate: arrays in host memory are anywhere; only a CUDA device knows its own")

    def __repr__(self) -> str:
        return f"<hone.Session on {self.device}>"

    def pin(self) -> None:
        """Keep the winner that each class of calls has from now on: nothing is tuned, and the bits stay the same."""
        super().pin()

    def facts(self) -> dict[str, Any]:
        """What is known of the device: SMs, bytes of shared memory, bandwidth, …"""
        facts: dict[str, Any] = json.loads(self.facts_json())
        return facts

    def counters(self) -> dict[str, Any]:
        """What the session did so far: ``cache_hits``, ``tunings``, ``heuristics``, ``compiles``, …"""
        counters: dict[str, Any] = json.loads(self.counters_json())
        return counters


_native.set_hooks(
    _errors.BY_STATUS,
    _arrays.empty,
    _arrays.contiguous,
    _arrays.current_stream,
    _arrays.stream_handle,
    Session,
    _arrays.device_of,
)
os.register_at_fork(after_in_child=_native.forget_default_sessions)
