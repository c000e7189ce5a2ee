"""Small data, and models that fit in no time."""

from __future__ import annotations

import numpy as np
import pytest

import convgp


@pytest.fixture(scope="session")
def digits():
    """Ten images of stripes each way, 9x9, told apart by nothing else."""
    draw = np.random.default_rng(0)
    X = np.zeros((60, 9, 9), dtype=np.float32)
    y = np.where(np.arange(60) % 2, "across", "down")
    for image, kind in zip(X, y):
        place = draw.integers(0, 9)
        if kind == "across":
            image[place] = 1.0
        else:
            image[:, place] = 1.0
    return X + draw.normal(0.0, 0.05, X.shape).astype(np.float32), y


@pytest.fixture(scope="session")
def classifier(digits):
    """A fitted classifier of those."""
    return convgp.ConvGPClassifier("weighted", steps=60, random_state=0).fit(*digits)


@pytest.fixture(scope="session")
def waves():
    """Real targets: the mean of an image, stretched."""
    draw = np.random.default_rng(1)
    X = draw.random((60, 6, 6))
    return X, 10.0 * X.mean(axis=(1, 2))


@pytest.fixture(scope="session")
def regressor(waves):
    """A fitted regressor of those."""
    return convgp.ConvGPRegressor(model="rbf", steps=60, random_state=0).fit(*waves)
