"""What the parts of a model's spec have in common; the parts themselves are in ``_spec_types``, generated from the Rust specs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Mapping

import numpy as np

from ._estimator import image_shape


class Spec:
    """A part of a spec: its fields, under the names a TOML file gives them."""

    _type: ClassVar[str | None] = None
    # Tables of the file whose fields stand beside those of the part: their names there, by their names here.
    _tables: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary, as it would stand in a TOML file."""
        named = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]
        named = {name: value for name, value in named.items() if value is not None}
        for table, members in self._tables.items():
            named[table] = {there: named.pop(here) for here, there in members.items() if here in named}
        if isinstance(named.get("jitter"), (int, float)):
            named["jitter"] = {"relative": named["jitter"]}
        if "image_shape" in named:
            named["image"] = dict(zip(("height", "width", "channels"), image_shape(tuple(named.pop("image_shape")))))
        return named if self._type is None else {"type": self._type, **named}


class Kernel(Spec):
    """A kernel on views; ``a + b`` and ``a * b`` are kernels, too."""

    def __add__(self, other: Kernel) -> Kernel:
        from ._spec_types import Sum

        return Sum([self, other])

    def __mul__(self, other: Kernel) -> Kernel:
        from ._spec_types import Product

        return Product([self, other])


def _plain(value: Any) -> Any:
    if isinstance(value, Spec):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value
