"""Data from files and from nothing."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from . import _convgp


def rectangles(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Outlines of rectangles on 28x28 images, ``"wide"`` or ``"tall"``: the first experiment of the paper.

    Equal seeds give equal images, here and on the command line.

    Returns
    -------
    X : uint8 array of shape (count, 28, 28)
    y : array of str
    """
    X, y = _arrays(*_convgp.rectangles(count, seed))
    return X[..., 0], y


def read(
    path: str | PathLike[str],
    *,
    size: tuple[int, int] | None = None,
    channels: int | None = None,
    limit: int | None = None,
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Reads images as the command line does: a folder of class/image files, IDX, CIFAR, NPY, NPZ or CSV files.

    Parameters
    ----------
    path : path
        File or folder.
    size : (height, width), optional
        Bring all images to this size: cut to the proportions, then scaled.
    channels : {1, 3}, optional
        Grey or RGB; as found if ``None``.
    limit : int, optional
        Keep at most so many images of every split, classes balanced.

    Returns
    -------
    dict
        ``(X, y)`` for every split there is: ``"train"``, ``"validation"``, ``"test"``. ``X`` has shape (n, H, W, C); ``y`` holds names
        of classes, or numbers.
    """
    splits = _convgp.read(path, size=size, channels=channels, limit=limit)
    return {name: _arrays(*arrays) for name, arrays in splits}


def _arrays(X: Any, targets: Any, class_names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    return X, np.array(class_names)[targets] if class_names else targets
