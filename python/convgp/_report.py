"""Figures and the page, for notebooks and files."""

from __future__ import annotations

import html
from os import PathLike
from typing import Any

from . import _convgp


class Figure(bytes):
    """A figure as the bytes of a PNG file; a notebook shows it."""

    def _repr_png_(self) -> bytes:
        return bytes(self)


class Report:
    """What was learned: curves, results, the model from inside.

    A notebook shows the whole page. ``figures`` holds every figure by name, ``save`` writes page and figures into a folder.
    """

    def __init__(self, native: _convgp.Report) -> None:
        self._native = native
        self._figures: dict[str, Figure] | None = None

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure by name."""
        if self._figures is None:
            self._figures = {name: Figure(png) for name, png in self._native.pngs()}
        return self._figures

    def figure(self, name: str) -> Figure:
        """The figure of this name."""
        try:
            return self.figures[name]
        except KeyError:
            raise ValueError(f"there is no figure {name!r}; there are {', '.join(self.figures)}") from None

    def html(self) -> str:
        """The page: one file, nothing to fetch."""
        return self._native.html()

    def save(self, folder: str | PathLike[str]) -> None:
        """Writes ``report.html`` and the folder ``figures`` into ``folder``."""
        self._native.write(folder)

    def _repr_html_(self) -> Any:
        page = html.escape(self.html())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'
