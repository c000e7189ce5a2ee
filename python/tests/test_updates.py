"""Images added to closed-form models, and removed."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import convgp
from convgp import ConvGPClassifier, ConvGPRegressor


def three(X):
    """Three classes that the pixels tell apart."""
    return np.array(["low", "middle", "high"])[np.digitize(X.mean(axis=(1, 2)), np.quantile(X.mean(axis=(1, 2)), [0.3, 0.7]))]


@pytest.fixture(scope="module")
def images():
    X = np.random.default_rng(4).random((120, 8, 8))
    X[:, :4] *= np.linspace(0.2, 1.0, 120)[np.random.default_rng(5).permutation(120), None, None]
    X[0, 0, 0], X[1, 0, 0] = 0.0, 1.0
    return X, three(X)


def answers(model, X):
    return np.concatenate([part.ravel() for part in model.predict_f(X)])


@pytest.mark.parametrize("inducing", [3, 40], ids=["many images", "few images"])
def test_images_are_added_and_removed_exactly(images, inducing):
    X, y = images
    make = lambda: ConvGPClassifier("pooled", inducing=inducing, random_state=0)  # noqa: E731
    first = make().partial_fit(X[:60], y[:60])
    assert list(first.classes_) == ["high", "low", "middle"] and first.spec_["model"]["likelihood"]["type"] == "labels"
    before = answers(first, X)
    plain = make().fit(X[:60], y[:60])
    np.testing.assert_allclose(before, answers(plain, X), rtol=1e-3, atol=1e-4)
    first.partial_fit(X[60:90], y[60:90]).partial_fit(X[90:], y[90:])
    at_once = make().set_params(keep_statistics=True).fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    np.testing.assert_allclose(answers(first, X), answers(at_once, X), rtol=1e-9, atol=1e-9)
    assert not np.allclose(answers(first, X), before, rtol=1e-3)
    assert first.remove_images(X[60:], y[60:]) is first
    np.testing.assert_allclose(answers(first, X), before, rtol=1e-9, atol=1e-9)


def test_the_result_is_a_fit_to_the_changed_set(images):
    X, y = images
    make = lambda: ConvGPClassifier("pooled", inducing=3, random_state=0, keep_statistics=True)  # noqa: E731
    updated = make().fit(X[:60], y[:60]).partial_fit(X[60:], y[60:]).remove_images(X[:10], y[:10])
    # A warm start keeps kernels and inducing inputs and solves for the images it is given.
    fresh = make().set_params(warm_start=True).fit(X[:60], y[:60]).fit(X[10:], y[10:])
    np.testing.assert_allclose(answers(updated, X), answers(fresh, X), rtol=1e-9, atol=1e-9)


def test_regression(images):
    X, _ = images
    y = 10.0 * X.mean(axis=(1, 2))
    model = ConvGPRegressor("pooled", inducing=3, random_state=0).partial_fit(X[:60], y[:60])
    before = model.predict(X)
    model.partial_fit(X[60:], y[60:])
    assert not np.array_equal(model.predict(X), before)
    np.testing.assert_allclose(model.remove_images(X[60:], y[60:]).predict(X), before, rtol=1e-9)


def test_classes_that_come_later_are_declared(images):
    X, y = images
    late = y == "high"
    model = ConvGPClassifier("pooled", inducing=3, random_state=0)
    model.partial_fit(X[~late], y[~late], classes=["low", "middle", "high"])
    assert model.partial_fit(X[late], y[late]).score(X, y) > 0.5
    undeclared = ConvGPClassifier("pooled", inducing=3, random_state=0).partial_fit(X[~late], y[~late])
    with pytest.raises(ValueError, match="class 'high'.*classes= at the first call"):
        undeclared.partial_fit(X[late], y[late])
    with pytest.raises(ValueError, match="one class, 'high'.*classes="):
        ConvGPClassifier("pooled").partial_fit(X[late], y[late])


def test_pickles_hold_statistics(images):
    X, y = images
    model = ConvGPClassifier("pooled", inducing=3, random_state=0).partial_fit(X[:60], y[:60])
    twin = pickle.loads(pickle.dumps(model)).partial_fit(X[60:], y[60:])
    assert np.array_equal(answers(twin, X), answers(model.partial_fit(X[60:], y[60:]), X))


def test_what_cannot_be_updated_is_said(images, classifier, digits, tmp_path):
    X, y = images
    make = lambda **settings: ConvGPClassifier("pooled", inducing=3, random_state=0, **settings)  # noqa: E731
    model = make(keep_statistics=True).fit(X[:60], y[:60])
    before = answers(model, X)
    with pytest.raises(ValueError, match="was ever added"):
        model.remove_images(X[50:70], y[50:70])
    with pytest.raises(ValueError, match="no image would be left"):
        model.remove_images(X[:60], y[:60])
    with pytest.raises(ValueError, match="n_total"):
        model.partial_fit(X[60:], y[60:], n_total=120)
    assert np.array_equal(answers(model, X), before), "nothing is changed"
    model.save(tmp_path / "m.safetensors")
    for bare in [make().fit(X[:60], y[:60]), convgp.load(tmp_path / "m.safetensors")]:
        for change in [bare.partial_fit, bare.remove_images]:
            with pytest.raises(ValueError, match="keep_statistics=True"):
                change(X[:3], y[:3])
    with pytest.raises(ValueError, match="trained in steps"):
        classifier.remove_images(*digits)
    with pytest.raises(ValueError, match="keep_statistics is True.*trained in steps"):
        ConvGPClassifier("weighted", steps=2, keep_statistics=True).fit(*digits)
    model.calibrate(X, y, risk=0.5)
    with pytest.warns(UserWarning, match="calibrate again"):
        model.partial_fit(X[60:], y[60:])
    assert model.answer_rule_ is None
    name = next(name for name in model.model_.parameters if name.endswith("lengthscale"))
    model.model_.parameters[name] = 2.0 * np.asarray(model.model_.parameters[name])
    with pytest.raises(ValueError, match="have changed since"):
        model.remove_images(X[:3], y[:3])
