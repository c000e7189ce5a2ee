"""The peers' virtual environment, for scripts that are started with any Python."""
import os
import sys
from pathlib import Path

from run import ROOT, peers_python


def enter():
    """Starts the script again with the environment's interpreter, unless it runs with that already."""
    python = peers_python(ROOT / ".venv-peers")
    if Path(sys.prefix) != python.parent.parent:
        os.execv(python, [str(python), *sys.argv])
