"""Progress for those who asked for it."""

from __future__ import annotations

import sys
from typing import Any


class Silence:
    """Says nothing."""

    def say(self, text: str) -> None:
        """A line."""

    def tick(self, step: int, total: int, bound: float | None) -> None:
        """So many steps are done."""

    def close(self) -> None:
        """Nothing more will come."""


class Lines(Silence):
    """A line now and then on standard error."""

    def __init__(self) -> None:
        self._next = 0.1

    def say(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")

    def tick(self, step: int, total: int, bound: float | None) -> None:
        if step >= self._next * total:
            self._next = 0.1 * (int(10 * step / total) + 1)
            self.say(f"step {step} of {total}{_bound(bound)}")


class Bar(Silence):
    """A bar of tqdm."""

    def __init__(self, tqdm: Any) -> None:
        self._bar = tqdm(unit="step")

    def say(self, text: str) -> None:
        self._bar.write(text, file=sys.stderr)

    def tick(self, step: int, total: int, bound: float | None) -> None:
        # A run limited by time does not know its steps at first.
        self._bar.total = total if total < 1 << 40 else None
        self._bar.set_postfix_str(_bound(bound).strip(", "), refresh=False)
        self._bar.update(step - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def progress(verbose: int | bool) -> Silence:
    """What ``verbose`` asks for: a bar where tqdm is installed, lines where it is not."""
    if not verbose:
        return Silence()
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return Lines()
    return Bar(tqdm)


def _bound(bound: float | None) -> str:
    return "" if bound is None else f", bound {bound:.4g}"
