"""The scikit-learn contract, and what people build around it."""

from __future__ import annotations

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from convgp import ConvGPClassifier, ConvGPRegressor  # noqa: E402


@parametrize_with_checks([ConvGPClassifier(), ConvGPRegressor()])
def test_the_contract(estimator, check):
    check(estimator)


def test_clone_and_parameters(classifier):
    twin = clone(classifier)
    assert twin.get_params() == classifier.get_params() and not hasattr(twin, "classes_")
    assert clone(ConvGPClassifier(model={"components": []})).model == {"components": []}


def test_grid_search(digits):
    X, y = digits
    grid = {"inducing": [4, 16], "model": ["weighted", "rbf"]}
    search = GridSearchCV(ConvGPClassifier("weighted", steps=30, random_state=0), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.8 and search.best_estimator_.predict(X).shape == y.shape


def test_grid_search_in_processes(digits):
    X, y = digits
    estimator = ConvGPClassifier("weighted", steps=10, random_state=0, n_jobs=1)
    scores = cross_val_score(estimator, X, y, cv=2, n_jobs=2)
    assert np.array_equal(scores, cross_val_score(estimator, X, y, cv=2))


def test_pipeline(digits):
    X, y = digits
    images = make_pipeline(
        FunctionTransformer(lambda X: X.reshape(len(X), -1)),
        StandardScaler(),
        ConvGPClassifier("weighted", steps=60, random_state=0, image_shape=(9, 9)),
    )
    assert images.fit(X, y).score(X, y) > 0.9


def test_calibration(digits):
    X, y = digits
    estimator = ConvGPClassifier("weighted", steps=30, random_state=0, image_shape=(9, 9))
    calibrated = CalibratedClassifierCV(estimator, cv=2).fit(X.reshape(60, -1), y)
    p = calibrated.predict_proba(X.reshape(60, -1))
    assert p.shape == (60, 2) and np.allclose(p.sum(axis=1), 1.0)
