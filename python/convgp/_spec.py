"""The parts of a model's spec as Python objects: views, kernels, likelihoods, components."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Sequence

import numpy as np

from ._estimator import image_shape


class _Spec:
    """A part of a spec: its fields, under the names a TOML file gives them."""

    _type: str

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary, as it would stand in a TOML file."""
        named = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {"type": self._type, **{k: _plain(v) for k, v in named.items() if v is not None}}


def _plain(value: Any) -> Any:
    if isinstance(value, _Spec):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


# Views.


@dataclass(frozen=True)
class Image(_Spec):
    """The whole image, or its orbit under sets of maps such as ``["flip-horizontal", {"shifts": 1}]``.

    ``contrast`` looks at local contrast instead of pixels: ``{}``, or ``{"radius": 3.0, "floor": 0.1}``.
    """

    _type = "image"
    orbit: Sequence[Any] = ()
    contrast: dict[str, float] | None = None


@dataclass(frozen=True)
class Pixels(_Spec):
    """Every pixel of every channel by itself."""

    _type = "pixels"


@dataclass(frozen=True)
class Patches(_Spec):
    """Patches on a grid.

    ``channels`` is ``"pooled"`` (patches of every channel in one set), ``"all"`` (through all channels), ``"each"`` (a function per
    channel) or the number of one channel. ``located`` appends row and column, for a kernel over places. ``orbit`` and ``contrast`` are those of
    :class:`Image`.
    """

    _type = "patches"
    patch: int | tuple[int, int]
    stride: int | tuple[int, int] = 1
    channels: str | int = "pooled"
    located: bool = False
    orbit: Sequence[Any] = ()
    contrast: dict[str, float] | None = None


# Kernels.


class _Kernel(_Spec):
    def __add__(self, other: _Kernel) -> Sum:
        return Sum([self, other])

    def __mul__(self, other: _Kernel) -> Product:
        return Product([self, other])


@dataclass(frozen=True)
class _Radial(_Kernel):
    """A kernel of the distance. ``lengthscale`` is a number, one per element of the view, or ``"median"``: that of the data."""

    variance: float | None = 1.0
    lengthscale: float | str | Sequence[float] = 1.0
    ard: bool = False
    dims: Any = None


class RBF(_Radial):
    """Squared exponential."""

    _type = "rbf"


class Matern12(_Radial):
    """Exponential."""

    _type = "matern12"


class Matern32(_Radial):
    """Matern, once differentiable."""

    _type = "matern32"


class Matern52(_Radial):
    """Matern, twice differentiable."""

    _type = "matern52"


@dataclass(frozen=True)
class Additive(_Kernel):
    """One function per element of the view, with shared parameters."""

    _type = "additive"
    of: str = "rbf"
    variance: float = 1.0
    lengthscale: float | str = 1.0


@dataclass(frozen=True)
class Channels(_Kernel):
    """One kernel per colour channel of a colour patch."""

    _type = "channels"
    of: str = "rbf"
    variance: float = 1.0
    lengthscale: float | str = 1.0


@dataclass(frozen=True)
class Sum(_Kernel):
    """A sum of kernels; ``a + b`` is one."""

    _type = "sum"
    terms: Sequence[_Kernel]


@dataclass(frozen=True)
class Product(_Kernel):
    """A product of kernels; ``a * b`` is one."""

    _type = "product"
    terms: Sequence[_Kernel]


# Likelihoods.


@dataclass(frozen=True)
class Gaussian(_Spec):
    """Real targets with Gaussian noise."""

    _type = "gaussian"
    variance: float = 0.1


@dataclass(frozen=True)
class Probit(_Spec):
    """Two classes."""

    _type = "probit"
    link_jitter: float = 0.0


@dataclass(frozen=True)
class Logit(_Spec):
    """Two classes."""

    _type = "logit"


@dataclass(frozen=True)
class RobustMax(_Spec):
    """Classes; the largest latent wins but for a probability ``epsilon``."""

    _type = "robust-max"
    classes: int
    epsilon: float = 1e-3
    learn_epsilon: bool = False
    squash: float = 1e-6


@dataclass(frozen=True)
class Softmax(_Spec):
    """Classes, by quasi-Monte-Carlo draws."""

    _type = "softmax"
    classes: int
    samples: int = 32
    predict_samples: int = 256
    seed: int = 0
    sharpness: float = 1.0


# Models.


@dataclass(frozen=True)
class Component:
    """One component: views, kernel, inducing inputs.

    ``inducing`` is how many there are; ``init`` where they start: ``"views"`` (of the data), ``"k-means"``, ``"uniform"``. ``weights`` are
    ``"ones"``, ``"learned"`` (one per view) or ``"per-plane"`` (one per channel and map of an orbit); ``normalise`` divides by the number of
    views; ``white`` is the variance of a white-noise term; ``location`` a kernel over the places of located patches.
    """

    views: Image | Pixels | Patches
    kernel: _Kernel
    inducing: int
    init: str = "views"
    weights: str = "ones"
    normalise: bool = False
    white: float | None = None
    location: _Kernel | None = None
    name: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary, as it would stand in a TOML file."""
        # A kernel over places has no variance of its own: it is a factor.
        location = None if self.location is None else {**self.location.to_dict(), "variance": None}
        out = {
            "name": self.name,
            "views": self.views.to_dict(),
            "weights": self.weights,
            "normalise": self.normalise,
            "white": self.white,
            "kernel": self.kernel.to_dict(),
            "location": location and {k: v for k, v in location.items() if v is not None},
            "inducing": {"count": self.inducing, "init": self.init},
        }
        return {k: v for k, v in out.items() if v is not None}


@dataclass(frozen=True)
class ModelSpec:
    """A complete model: shape of the images, likelihood, components whose functions add up.

    ``structure`` is that of the approximate posterior: ``"full"`` or ``"mean-field"`` between components. ``jitter`` is relative to the mean
    diagonal of ``Kuu``. Estimators take it as ``model=``.
    """

    image_shape: tuple[int, ...]
    likelihood: Gaussian | Probit | Logit | RobustMax | Softmax
    components: Sequence[Component]
    structure: str = "full"
    whiten: bool = True
    jitter: float = 1e-4

    def to_dict(self) -> dict[str, Any]:
        """The same as a dictionary, as it would stand in a TOML file."""
        height, width, channels = image_shape(self.image_shape)
        return {
            "image": {"height": height, "width": width, "channels": channels},
            "likelihood": self.likelihood.to_dict(),
            "posterior": {"structure": self.structure, "whiten": self.whiten},
            "jitter": {"relative": self.jitter},
            "components": [c.to_dict() for c in self.components],
        }
