"""The types that are promised are the types there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import convgp

PACKAGE = Path(convgp.__file__).parent
SETTINGS = Path(__file__).parents[2] / "pyproject.toml"


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_convgp.pyi").exists()


@pytest.mark.parametrize(
    "command",
    [["mypy", "--config-file", str(SETTINGS), "-p", "convgp"], ["mypy.stubtest", "--allowlist", "allowed", "convgp._convgp"]],
    ids=["mypy", "stubtest"],
)
def test_types_are_checked(command, tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "allowed").write_text("convgp._convgp.__all__\n")
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
