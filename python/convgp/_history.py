"""What training looked like."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Columns, in order.
COLUMNS = (
    "step",
    "seconds",
    "bound",
    "train_log_density",
    "kl",
    "train_error",
    "held_out_error",
    "held_out_nlpp",
    "rate",
    "gamma",
    "roll_backs",
    "jitter_raises",
)


class History(list):
    """Rows of training, each a dictionary; what was not measured is ``None``.

    ``history.to_frame()`` is a pandas DataFrame, ``history.to_dict()`` a dictionary of arrays, ``history["bound"]`` one
    of them.
    """

    def __getitem__(self, key: Any) -> Any:
        return self._column(key) if isinstance(key, str) else super().__getitem__(key)

    def _column(self, name: str) -> np.ndarray:
        if name not in COLUMNS:
            raise KeyError(f"{name!r}; there are {', '.join(COLUMNS)}")
        values = [row[name] for row in self]
        return np.array([np.nan if v is None else v for v in values], dtype=float)

    def to_dict(self) -> dict[str, np.ndarray]:
        """A dictionary of arrays; what was not measured is not a number."""
        return {name: self._column(name) for name in COLUMNS}

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row per evaluation."""
        import pandas

        return pandas.DataFrame(self.to_dict())

    def _repr_html_(self) -> str:
        def cell(value: Any) -> str:
            text = "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)
            return f"<td>{text}</td>"

        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        rows = ("<tr>" + "".join(cell(row[name]) for name in COLUMNS) + "</tr>" for row in self)
        return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
