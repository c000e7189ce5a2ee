"""The notebooks run, at small size."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# What the kernel's own libraries warn about is not ours.
@pytest.mark.filterwarnings("default")
def test_it_runs(path, monkeypatch, tmp_path):
    monkeypatch.setenv("CONVGP_NOTEBOOKS", "small")
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 2
