"""The parts of a model's spec: views, kernels, likelihoods, components.

Generated from the Rust specs by ``cargo xtask python-spec``; changes here are lost.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Mapping, Sequence

from ._spec import Kernel, Spec


@dataclass(frozen=True)
class TargetUnits(Spec):
    """Where zero lies among targets and how large one is: latents and noise are about ``(y - offset) / scale``.

    - ``offset``: The target that is zero to the model.
    - ``scale``: The difference of targets that is one to the model; positive.
    """

    offset: float
    scale: float


@dataclass(frozen=True)
class Dims(Spec):
    """Elements ``start, start + step, ...`` (``len`` of them) of a view.

    - ``start``: First element.
    - ``len``: How many.
    - ``step``: Distance between neighbours, 1 for a contiguous slice.
    """

    start: int
    len: int
    _: KW_ONLY
    step: int = 1


@dataclass(frozen=True)
class Contrast(Spec):
    """What to look at instead of pixels ``x``: ``0.3 d / sqrt(G mean(d^2) + floor^2)`` with ``d = x - G mean(x)``, where means are over channels and ``G`` is a Gaussian blur that knows where the image ends. Light and shade are gone, colours stay.

    - ``floor``: Contrast below which differences count as noise.
    - ``radius``: Standard deviation of the blur, in pixels.
    """

    _: KW_ONLY
    floor: float = 0.1
    radius: float = 3.0


@dataclass(frozen=True)
class PatchTransform(Spec):
    """Transforms of a patch ``v`` of ``E`` numbers, in this order; each is left out when absent. Coordinates stay as they are.

    - ``contrast``: Takes off the mean and divides by the spread; the number is added to the variance.
    - ``unit``: Scales to unit length; the number is added to the squared length.
    - ``whiten``: Makes elements of training patches uncorrelated; the number is added to eigenvalues, relative to their mean.
    """

    _: KW_ONLY
    contrast: float | None = None
    unit: float | None = None
    whiten: float | None = None


@dataclass(frozen=True)
class Pooling(Spec):
    """The grid of windows.

    - ``grid``: Windows below and beside each other.
    """

    grid: Sequence[int]


@dataclass(frozen=True)
class Image(Spec):
    """The whole image, or its orbit.

    - ``contrast``: Look at local contrast instead of pixels.
    - ``orbit``: Sets of maps, of which all products are taken; see ``compose_sets``.
    """

    _type = "image"
    _: KW_ONLY
    contrast: Contrast | Mapping[str, Any] | None = None
    orbit: Sequence[Literal["flip-horizontal", "flip-vertical", "quarter-turns", "square-symmetries"] | Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Pixels(Spec):
    """Every pixel of every channel by itself."""

    _type = "pixels"


@dataclass(frozen=True)
class Patches(Spec):
    """Patches on a grid.

    - ``patch``: Rows and columns of a patch.
    - ``channels``: How colour is treated.
    - ``contrast``: Look at local contrast instead of pixels.
    - ``location_aware``: Whether row and column of the top-left corner are appended to each patch.
    - ``orbit``: Sets of maps, of which all products are taken; see ``compose_sets``.
    - ``stride``: Rows and columns from one patch to the next.
    - ``transform``: What is done to every patch by itself.
    """

    _type = "patches"
    patch: int | Sequence[int]
    _: KW_ONLY
    channels: Literal["pooled", "all", "each"] | int = "pooled"
    contrast: Contrast | Mapping[str, Any] | None = None
    location_aware: bool = False
    orbit: Sequence[Literal["flip-horizontal", "flip-vertical", "quarter-turns", "square-symmetries"] | Mapping[str, Any]] | None = None
    stride: int | Sequence[int] = 1
    transform: PatchTransform | Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Radial(Kernel):
    """A kernel of the distance between views.

    - ``ard``: One lengthscale per element.
    - ``dims``: The elements of the view it reads; all (but appended coordinates) when absent.
    - ``lengthscale``: Initial lengthscale, 1 when absent.
    - ``variance``: Initial variance, 1 when absent.
    """

    _: KW_ONLY
    ard: bool | None = None
    dims: Dims | Mapping[str, Any] | None = None
    lengthscale: Literal["median"] | float | Sequence[float] | Mapping[str, Any] | None = None
    variance: float | None = None


@dataclass(frozen=True)
class RBF(Radial):
    """Squared exponential. Fields are those of ``Radial``."""

    _type = "rbf"


@dataclass(frozen=True)
class Matern12(Radial):
    """Matern-1/2. Fields are those of ``Radial``."""

    _type = "matern12"


@dataclass(frozen=True)
class Matern32(Radial):
    """Matern-3/2. Fields are those of ``Radial``."""

    _type = "matern32"


@dataclass(frozen=True)
class Matern52(Radial):
    """Matern-5/2. Fields are those of ``Radial``."""

    _type = "matern52"


@dataclass(frozen=True)
class Combined(Kernel):
    """A kernel made of others.

    - ``terms``: The parts.
    """

    terms: Sequence[Kernel] | None = None


@dataclass(frozen=True)
class Sum(Combined):
    """The sum of some kernels. Fields are those of ``Combined``."""

    _type = "sum"


@dataclass(frozen=True)
class Product(Combined):
    """The product of some kernels. Fields are those of ``Combined``."""

    _type = "product"


@dataclass(frozen=True)
class Additive(Kernel):
    """One function per element of the view, with shared parameters (paper section 2.3).

    - ``dims``: The elements of the view it reads; all (but appended coordinates) when absent.
    - ``lengthscale``: Initial lengthscale, 1 when absent.
    - ``of``: Family of the function, RBF when absent.
    - ``variance``: Initial variance, 1 when absent.
    """

    _type = "additive"
    _: KW_ONLY
    dims: Dims | Mapping[str, Any] | None = None
    lengthscale: Literal["median"] | float | Sequence[float] | Mapping[str, Any] | None = None
    of: Literal["rbf", "matern12", "matern32", "matern52"] | None = None
    variance: float | None = None


@dataclass(frozen=True)
class Channels(Kernel):
    """A sum of one kernel per colour channel of a colour patch, each with its own variance and lengthscale (paper section 3.4, factorised weights).

    - ``lengthscale``: Initial lengthscale of every part, 1 when absent.
    - ``of``: Family of the parts, RBF when absent.
    - ``variance``: Initial variance of every part, 1 when absent.
    """

    _type = "channels"
    _: KW_ONLY
    lengthscale: Literal["median"] | float | Sequence[float] | Mapping[str, Any] | None = None
    of: Literal["rbf", "matern12", "matern32", "matern52"] | None = None
    variance: float | None = None


@dataclass(frozen=True)
class Gaussian(Spec):
    """``Gaussian``: regression.

    - ``units``: Units of the targets; as they are if not given.
    - ``variance``: Initial noise variance; learned.
    """

    _type = "gaussian"
    _: KW_ONLY
    units: TargetUnits | Mapping[str, Any] | None = None
    variance: float = 0.1


@dataclass(frozen=True)
class Probit(Spec):
    """``Probit``: two classes.

    - ``link_jitter``: ``j`` in ``p = (1 - 2j) Φ(f) + j``.
    """

    _type = "probit"
    link_jitter: float = 0.0


@dataclass(frozen=True)
class Logit(Spec):
    """``Logit``: two classes."""

    _type = "logit"


@dataclass(frozen=True)
class Labels(Spec):
    """``Labels``: ``K`` classes by regression on labels, for the closed-form solver.

    - ``classes``: Number of classes ``K``.
    """

    _type = "labels"
    classes: int


@dataclass(frozen=True)
class RobustMax(Spec):
    """``RobustMax``: ``K`` classes, the paper's choice.

    - ``classes``: Number of classes ``K``.
    - ``epsilon``: Probability that the label is not the largest latent.
    - ``learn_epsilon``: Whether ``epsilon`` is a trainable parameter.
    - ``squash``: ``s`` in ``(1 - 2s) Φ + s``.
    """

    _type = "robust-max"
    classes: int
    _: KW_ONLY
    epsilon: float = 0.001
    learn_epsilon: bool = False
    squash: float = 1e-6


@dataclass(frozen=True)
class Softmax(Spec):
    """``Softmax``: ``K`` classes by quasi-Monte-Carlo.

    - ``classes``: Number of classes ``K``.
    - ``derivative``: Estimate of the derivative in the variances.
    - ``predict_samples``: Draws per image for prediction; even.
    - ``samples``: Draws per image and evaluation; even.
    - ``seed``: Seed of the draws.
    """

    _type = "softmax"
    classes: int
    _: KW_ONLY
    derivative: Literal["curvature", "pathwise"] = "curvature"
    predict_samples: int = 256
    samples: int = 32
    seed: int = 0


@dataclass(frozen=True)
class Component(Spec):
    """One component.

    - ``views``: What the response function sees.
    - ``kernel``: Base kernel.
    - ``inducing``: ``M``.
    - ``first_stage``: A component with fixed numbers whose responses are what the views are of, instead of pixels: a pixel for every window, a channel for every inducing input.
    - ``image_norm``: What images are divided by; anything but nothing needs the closed-form solver.
    - ``init``: Initial places.
    - ``location``: Kernel over the coordinates of location-aware views, a factor of the base kernel.
    - ``name``: Prefix of its parameters' names; ``component-0`` and so on when absent.
    - ``normalise``: Divide by the number of views, as the published code does and the paper's text does not.
    - ``pooling``: Windows over the places, each with its own response function and fixed weights.
    - ``weights``: Weights of the views.
    - ``white``: Initial variance of a trainable white-noise term, in ``Kuu``'s diagonal and ``kff``.
    """

    _tables = {"inducing": {"inducing": "count", "init": "init"}}
    views: Image | Pixels | Patches
    kernel: Kernel
    inducing: int
    _: KW_ONLY
    first_stage: Component | Mapping[str, Any] | None = None
    image_norm: Literal["none", "kff", "nystrom"] | None = None
    init: Literal["views", "uniform", "k-means"] = "views"
    location: Kernel | None = None
    name: str | None = None
    normalise: bool = False
    pooling: Pooling | Mapping[str, Any] | None = None
    weights: Literal["ones", "per-plane", "learned"] = "ones"
    white: float | None = None


@dataclass(frozen=True)
class ModelSpec(Spec):
    """A complete model.

    - ``image_shape``: Shape of the images.
    - ``likelihood``: What is observed given the latents.
    - ``components``: Independent components whose responses add up.
    - ``augmentation``: Copies of training images under small random maps, for the closed-form solver.
    - ``jitter``: Jitter added to the diagonal of every ``Kuu``.
    - ``rank``: For a shared covariance: its difference from the prior has this rank, fewer numbers than a triangle.
    - ``structure``: Dense, or block diagonal between components.
    - ``whiten``: Whether ``q`` is over whitened inducing outputs.
    """

    _tables = {"posterior": {"rank": "rank", "structure": "structure", "whiten": "whiten"}}
    image_shape: tuple[int, ...]
    likelihood: Gaussian | Probit | Logit | Labels | RobustMax | Softmax
    components: Sequence[Component | Mapping[str, Any]]
    _: KW_ONLY
    augmentation: Mapping[str, Any] | None = None
    jitter: float | Mapping[str, float] | None = None
    rank: int | None = None
    structure: Literal["full", "mean-field", "shared"] = "full"
    whiten: bool = True
