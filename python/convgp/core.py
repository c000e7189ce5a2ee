"""For research: models from Python objects, the bound and its gradients, covariances, single steps.

A model is data. Views say what a component sees of an image, a kernel compares views, a likelihood says what is observed:

>>> import numpy as np
>>> from convgp import core
>>> spec = core.ModelSpec(
...     (8, 8),
...     core.Probit(),
...     [core.Component(core.Patches(3), core.RBF(lengthscale=0.5), inducing=8, weights="learned")],
... )
>>> images = np.random.default_rng(0).random((20, 8, 8))
>>> model = core.Model(spec, images, seed=0)
>>> labels = np.arange(20) % 2
>>> bound, gradients = model.gradients(images, labels)
>>> gradients["component-0.kernel.lengthscale"].shape
(1,)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from . import _convgp
from ._estimator import image_shape
from ._spec_types import (
    Additive,
    Channels,
    Component,
    Contrast,
    Dims,
    Gaussian,
    Image,
    Labels,
    Logit,
    Matern12,
    Matern32,
    Matern52,
    ModelSpec,
    Patches,
    PatchTransform,
    Pixels,
    Pooling,
    Probit,
    Product,
    RBF,
    RobustMax,
    Softmax,
    Sum,
    TargetUnits,
)

__all__ = [
    "Additive",
    "Bound",
    "Channels",
    "Component",
    "Contrast",
    "Covariances",
    "Dims",
    "Gaussian",
    "Gradients",
    "Image",
    "Labels",
    "Logit",
    "Matern12",
    "Matern32",
    "Matern52",
    "Model",
    "ModelSpec",
    "PatchTransform",
    "Patches",
    "Pixels",
    "Pooling",
    "Probit",
    "Product",
    "RBF",
    "RobustMax",
    "Softmax",
    "Stepper",
    "Sum",
    "TargetUnits",
]


class Bound(NamedTuple):
    """The evidence lower bound: ``elbo = expectation - kl``."""

    elbo: float
    expectation: float
    kl: float


class Covariances(NamedTuple):
    """Covariances of a component, without jitter."""

    #: ``M x M``.
    kuu: np.ndarray
    #: ``responses x M x images``.
    kuf: np.ndarray
    #: ``responses x images``.
    kff: np.ndarray


class Gradients(dict):
    """Derivatives of the bound by name of the parameter, in the order of :attr:`Model.values`."""

    @property
    def flat(self) -> np.ndarray:
        """One vector."""
        return np.concatenate([array.ravel() for array in self.values()])


class Parameters(Mapping):
    """Parameters by name. Reading copies; assigning changes the model."""

    def __init__(self, native: _convgp.Model) -> None:
        self._native = native

    def __getitem__(self, name: str) -> np.ndarray:
        return self._native.parameter(name)

    def __setitem__(self, name: str, numbers: Any) -> None:
        shape = self[name].shape
        array = np.ascontiguousarray(numbers, dtype=np.float64)
        self._native.set_parameter(name, np.ascontiguousarray(np.broadcast_to(array, shape) if array.ndim == 0 else array))

    def __iter__(self) -> Iterator[str]:
        return iter(self._native.parameter_names())

    def __len__(self) -> int:
        return len(self._native.parameter_names())

    def freeze(self, name: str) -> None:
        """Training no longer moves ``name``, or anything under it."""
        self._native.set_trainable(name, False)

    def free(self, name: str) -> None:
        """Training moves ``name``, and everything under it."""
        self._native.set_trainable(name, True)

    def is_trainable(self, name: str) -> bool:
        """Whether training may move it."""
        return self._native.is_trainable(name)


class Model:
    """A model with its parameters.

    Parameters
    ----------
    spec : ModelSpec or dict
        Structure.
    images : array of shape (n, H, W) or (n, H, W, C)
        Where inducing inputs and median lengthscales are taken from.
    seed : int
        Seed of the initial parameters.
    threads : int, optional
        Threads to compute with; all cores if ``None``. Results do not depend on it.
    """

    def __init__(self, spec: Any, images: Any, seed: int = 0, threads: int | None = None) -> None:
        text = json.dumps(spec.to_dict() if hasattr(spec, "to_dict") else spec)
        self.threads = threads
        self._native = _convgp.Model.create(_convgp.Data(*_pixels(images)), spec=text, seed=seed, threads=threads)

    @classmethod
    def _of(cls, native: _convgp.Model, threads: int | None) -> Model:
        model = cls.__new__(cls)
        model.threads, model._native = threads, native
        return model

    def __repr__(self) -> str:
        return repr(self._native)

    @property
    def spec(self) -> dict[str, Any]:
        """Its structure, as it would stand in a TOML file."""
        return json.loads(self._native.spec)["model"]

    @classmethod
    def load(cls, path: str | PathLike[str], threads: int | None = None) -> Model:
        """Reads a model file."""
        return cls._of(_convgp.Model.load(path), threads)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a model file; one that is there is replaced as a whole."""
        self._native.save(path)

    @property
    def parameters(self) -> Parameters:
        """Parameters by name."""
        return Parameters(self._native)

    @property
    def values(self) -> np.ndarray:
        """All parameters as one vector."""
        return self._native.values

    @property
    def form(self) -> str:
        """How q is written: ``"covariance"`` (means and factors) or ``"natural"`` (what natural steps need)."""
        return self._native.form

    @form.setter
    def form(self, form: str) -> None:
        self._native.form = form

    def elbo(self, images: Any, targets: Any, data_count: int | None = None, *, draw: int = 0) -> Bound:
        """The bound on a minibatch of a data set of ``data_count`` images, the batch's own number if ``None``.

        ``draw`` numbers the evaluation for likelihoods that sample.
        """
        return Bound(*self._native.elbo(self._batch(images, targets), data_count, draw=draw, threads=self.threads))

    def gradients(
        self, images: Any, targets: Any, data_count: int | None = None, *, draw: int = 0
    ) -> tuple[Bound, Gradients]:
        """The bound and its derivatives in every parameter; in natural form those of q are left out."""
        batch = self._batch(images, targets)
        bound, grads = self._native.gradients(batch, data_count, draw=draw, threads=self.threads)
        return Bound(*bound), Gradients(grads)

    def covariances(self, images: Any) -> dict[str, Covariances]:
        """``Kuu``, ``Kuf`` and ``kff`` of every component, by its name."""
        names = [c["name"] for c in self._native.components()]
        found = self._native.covariances(_convgp.Data(*_pixels(images)), threads=self.threads)
        return {name: Covariances(kuu, np.array(kuf), np.array(kff)) for name, (kuu, kuf, kff) in zip(names, found)}

    def predict_f(self, images: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the latent functions, (images, latents) each."""
        return self._native.latent_marginals(_convgp.Data(*_pixels(images)), threads=self.threads)

    def predict(self, images: Any) -> Any:
        """Class probabilities, or mean and variance of a real target."""
        ask = self._native.mean_and_variance if self._classes() is None else self._native.probabilities
        return ask(_convgp.Data(*_pixels(images)), threads=self.threads)

    def _classes(self) -> int | None:
        """Number of classes; ``None`` for real targets."""
        likelihood = self.spec["likelihood"]
        return None if likelihood["type"] == "gaussian" else likelihood.get("classes", 2)

    def _batch(self, images: Any, targets: Any) -> _convgp.Data:
        """Images with targets: numbers, or labels from 0."""
        classes, targets = self._classes(), np.asarray(targets)
        if classes is None:
            return _convgp.Data(*_pixels(images), values=np.ascontiguousarray(targets, dtype=np.float64))
        if targets.dtype.kind not in "iub" or targets.min(initial=0) < 0:
            raise ValueError(f"targets are {targets.dtype}; they are labels from 0 to {classes - 1}")
        names = [str(c) for c in range(classes)]
        return _convgp.Data(*_pixels(images), labels=targets.astype(np.uint32), class_names=names)


class Stepper:
    """Takes single steps of training on minibatches of one's choice; remembers Adam's moments.

    Parameters
    ----------
    model : Model
        What is trained.
    q : {"natural", "adam"}
        What moves the posterior: natural steps, or Adam like everything else.
    settings : dict, optional
        Settings of training, as under ``[train]`` in a TOML file. With
        ``{"objective": {"type": "power-ep", "alpha": 0.5}}`` steps follow an energy, and return it in place of the bound.
    """

    def __init__(self, model: Model, q: str = "natural", settings: dict[str, Any] | None = None) -> None:
        self.model = model
        self._native = _convgp.Stepper(model._native, q, None if settings is None else json.dumps(settings))

    @property
    def taken(self) -> int:
        """Steps taken."""
        return self._native.taken

    def step(
        self,
        images: Any,
        targets: Any,
        data_count: int | None = None,
        *,
        rate: float | None = None,
        gamma: float | None = None,
    ) -> Bound:
        """A natural step of size ``gamma`` and an Adam step of size ``rate`` from one evaluation; returns the bound before them.

        Sizes are those of the settings if ``None``. Where the bound cannot be computed there is a
        :class:`convgp.NumericalError`, and the parameters go back to those of the step before.
        """
        model = self.model
        batch = model._batch(images, targets)
        bound = self._native.step(model._native, batch, data_count, rate=rate, gamma=gamma, threads=model.threads)
        return Bound(*bound)

    def adam_step(self, images: Any, targets: Any, data_count: int | None = None, *, rate: float | None = None) -> Bound:
        """An Adam step alone."""
        return self.step(images, targets, data_count, rate=rate, gamma=0.0)

    def natural_step(
        self, images: Any, targets: Any, data_count: int | None = None, *, gamma: float | None = None
    ) -> Bound:
        """A natural step alone."""
        return self.step(images, targets, data_count, rate=0.0, gamma=gamma)


def _pixels(images: Any) -> tuple[np.ndarray, tuple[int, int, int]]:
    """A contiguous array the native half can use, and the shape of an image."""
    images = np.asarray(images)
    if images.ndim not in (3, 4):
        raise ValueError(f"images have shape {images.shape}; it is (n, H, W) or (n, H, W, C)")
    dtype = images.dtype if images.dtype in (np.uint8, np.float32, np.float64) else np.float64
    return np.ascontiguousarray(images, dtype=dtype), image_shape(images.shape[1:])
