"""``python -m hone``: the hone command that the wheel carries."""

import os
import sys

from ._command import command_path

os.execv(command_path(), ["hone", *sys.argv[1:]])
