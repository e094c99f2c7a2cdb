"""Where tests find their cache."""

import os
import tempfile

folder = tempfile.TemporaryDirectory(prefix="hone-python-")


def pytest_configure(config):
    # One cache for the whole run, in a folder of its own: on the host device every new kernel is a run of the compiler.
    os.environ["HONE_CACHE"] = os.path.join(folder.name, "cache.sqlite")
    os.environ.pop("HONE_ON_MISS", None)


def pytest_unconfigure(config):
    folder.cleanup()
