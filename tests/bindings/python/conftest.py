"""Where tests find their cache, and the names that doctests use."""

import os

import numpy
import pytest


def pytest_configure(config):
    # One cache for the whole run, in a folder of its own: on the host device every new kernel is a run of the compiler.
    import tempfile

    os.environ["HONE_CACHE"] = os.path.join(tempfile.mkdtemp(prefix="hone-python-"), "cache.sqlite")
    os.environ.pop("HONE_ON_MISS", None)


@pytest.fixture(autouse=True)
def _names_for_doctests(doctest_namespace):
    import hone

    doctest_namespace.update(hone=hone, numpy=numpy)
