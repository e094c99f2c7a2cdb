"""Paths as the library takes them."""

from __future__ import annotations

import os

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def path_bytes(path: AnyPath, name: str) -> bytes:
    """A path of any bytes, as the library takes it."""
    try:
        return os.fsencode(path)
    except TypeError:
        raise TypeError(
            f"{name}: a path is wanted (str, bytes or os.PathLike), not the {type(path).__name__} {path!r}"
        ) from None
