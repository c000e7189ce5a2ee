"""Convolutional Gaussian processes: image models that know what they do not know.

``ConvGPClassifier`` and ``ConvGPRegressor`` follow scikit-learn; :mod:`convgp.core` is for research.
"""

from __future__ import annotations

from os import PathLike

from . import core
from ._classifier import ConvGPClassifier
from ._convgp import __version__
from ._data import read, rectangles
from ._errors import NumericalError
from ._explain import Explanation, Part
from ._history import History
from ._regressor import ConvGPRegressor
from ._report import Figure, Report

__all__ = [
    "ConvGPClassifier",
    "ConvGPRegressor",
    "Explanation",
    "Figure",
    "History",
    "NumericalError",
    "Part",
    "Report",
    "__version__",
    "core",
    "load",
    "models",
    "read",
    "rectangles",
]


def models() -> dict[str, str]:
    """Names that ``model=`` takes, with a line about each; it also takes those of the paper's experiments, such as ``"mnist-weighted"``."""
    from ._convgp import model_names

    return dict(model_names())


def load(path: str | PathLike[str]) -> ConvGPClassifier | ConvGPRegressor:
    """Reads a model file, written here or by the command line: a classifier or a regressor, whichever it is."""
    from ._convgp import Model

    native = Model.load(path)
    estimator = ConvGPClassifier() if native.class_names else ConvGPRegressor()
    estimator._take(native)
    return estimator
