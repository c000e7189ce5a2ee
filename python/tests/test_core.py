"""The level for research."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import convgp
from convgp import core

SIDE = 6
DRAW = np.random.default_rng(3)
IMAGES = DRAW.random((12, SIDE, SIDE))
LABELS = np.arange(12) % 3
VALUES = IMAGES.sum(axis=(1, 2)) / 6.0


def conv(**settings):
    kernel = core.RBF(variance=2.0, lengthscale=0.7)
    return core.Component(core.Patches(3), kernel, inducing=5, **{"name": "conv", **settings})


def model(likelihood, *components, **settings):
    spec = core.ModelSpec((SIDE, SIDE), likelihood, components or [conv(weights="learned")], **settings)
    return core.Model(spec, IMAGES, seed=1)


def test_examples_in_the_documentation():
    for module in [core, convgp._classifier]:
        assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("likelihood", "targets"),
    [
        (core.Gaussian(variance=0.3), VALUES),
        (core.Probit(1e-3), LABELS % 2),
        (core.Logit(), LABELS % 2),
        (core.RobustMax(3, learn_epsilon=True), LABELS),
        (core.Softmax(3), LABELS),
        (core.Softmax(3, derivative="pathwise"), LABELS),
    ],
)
def test_gradients_are_those_of_the_bound(likelihood, targets):
    m = model(likelihood)
    rng = np.random.default_rng(0)
    m.parameters["q.mean"] = rng.normal(size=m.parameters["q.mean"].shape)
    bound, gradients = m.gradients(IMAGES, targets, 100)
    assert bound == m.elbo(IMAGES, targets, 100) and bound.elbo == bound.expectation - bound.kl
    assert list(gradients) == list(m.parameters) and gradients.flat.shape == m.values.shape
    # Tiles are single precision: differences need steps far above their rounding.
    for name in ["conv.kernel.lengthscale", "conv.weights", "q.mean"]:
        start, step = m.parameters[name], 1e-2
        direction = gradients[name] / np.linalg.norm(gradients[name])
        values = []
        for sign in [1.0, -1.0]:
            m.parameters[name] = start + sign * step * direction
            values.append(m.elbo(IMAGES, targets, 100).elbo)
        m.parameters[name] = start
        slope = (values[0] - values[1]) / (2.0 * step)
        assert slope == pytest.approx(np.linalg.norm(gradients[name]), rel=2e-2), name


def test_covariances_are_sums_over_patches():
    m = model(core.Gaussian(), conv(weights="learned", normalise=True))
    weights = DRAW.normal(size=16)
    m.parameters["conv.weights"] = weights
    found = m.covariances(IMAGES)["conv"]
    z = m.parameters["conv.z"]
    windows = np.lib.stride_tricks.sliding_window_view(IMAGES, (3, 3), axis=(1, 2)).reshape(12, 16, 9)

    def kernel(a, b):
        distance = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1)
        return 2.0 * np.exp(-0.5 * distance / 0.7**2)

    effective = weights / 16.0
    kuf = np.stack([kernel(z, image) @ effective for image in windows], axis=1)
    kff = np.array([effective @ kernel(image, image) @ effective for image in windows])
    assert found.kuu.shape == (5, 5) and np.allclose(found.kuu, kernel(z, z), rtol=1e-5)
    assert found.kuf.shape == (1, 5, 12) and np.allclose(found.kuf[0], kuf, rtol=1e-4, atol=1e-6)
    assert found.kff.shape == (1, 12) and np.allclose(found.kff[0], kff, rtol=1e-4)


@pytest.mark.parametrize("q", ["natural", "adam"])
def test_one_s_own_loop(q):
    m = model(core.Softmax(3))
    stepper = core.Stepper(m, q, {"adam": {"rate": 0.05}, "natural": {"gamma": 0.3}})
    first = stepper.step(IMAGES, LABELS)
    for _ in range(40):
        last = stepper.step(IMAGES, LABELS)
    assert stepper.taken == 41 and last.elbo > first.elbo + 1.0
    assert m.form == ("natural" if q == "natural" else "covariance")
    m.form = "covariance"
    assert m.predict(IMAGES).shape == (12, 3)
    with pytest.raises(ValueError, match="make a new one") if q == "natural" else _nothing():
        stepper.step(IMAGES, LABELS)


def test_steps_move_what_they_should():
    m = model(core.Probit())
    m.parameters.freeze("conv.z")
    assert not m.parameters.is_trainable("conv.z")
    stepper, y = core.Stepper(m), LABELS % 2
    before = dict(m.parameters)
    stepper.natural_step(IMAGES, y, 50)
    changed = {name for name in before if not np.array_equal(before[name], m.parameters[name])}
    assert changed and all(name.startswith("q.") for name in changed)
    before = dict(m.parameters)
    stepper.adam_step(IMAGES, y, 50)
    changed = {name for name in before if not np.array_equal(before[name], m.parameters[name])}
    assert {"conv.weights", "conv.kernel.lengthscale"} <= changed and "conv.z" not in changed
    assert not any(name.startswith("q.") for name in changed)


def test_a_gaussian_model_needs_one_natural_step():
    m = model(core.Gaussian(variance=0.1))
    m.parameters.freeze("conv")
    stepper = core.Stepper(m)
    stepper.natural_step(IMAGES, VALUES, gamma=1.0)
    best = m.elbo(IMAGES, VALUES).elbo
    stepper.natural_step(IMAGES, VALUES, gamma=1.0)
    assert m.elbo(IMAGES, VALUES).elbo == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(
    "component",
    [
        core.Component(core.Image(orbit=["flip-horizontal"]), core.RBF(lengthscale="median"), inducing=4),
        core.Component(core.Pixels(), core.Matern12() + core.Matern52(lengthscale=2.0), inducing=4),
        core.Component(core.Image(), core.Additive(of="matern32"), inducing=4, white=1e-3),
        core.Component(core.Image(), core.RBF() * core.Matern32(), inducing=4, init="uniform"),
        core.Component(core.Patches(3, location_aware=True), core.RBF(), 4, location=core.Matern32(lengthscale=3.0)),
        core.Component(core.Patches(3, contrast={"floor": 0.2}), core.RBF(), inducing=4),
        core.Component(core.Patches((3, 2), stride=(1, 2)), core.RBF(ard=True), inducing=4, init="k-means"),
    ],
)
def test_every_part_builds_and_estimators_take_it(component):
    spec = core.ModelSpec((SIDE, SIDE), core.Gaussian(), [component, conv()], structure="mean-field")
    assert np.isfinite(core.Model(spec, IMAGES).elbo(IMAGES, VALUES).elbo)
    fitted = convgp.ConvGPRegressor(spec, steps=3, random_state=0).fit(IMAGES, VALUES)
    assert len(fitted.model_.covariances(IMAGES)) == 2


def test_colour_patches():
    images = DRAW.random((6, SIDE, SIDE, 3))
    component = core.Component(core.Patches(3, channels="all"), core.Channels(), inducing=4)
    m = core.Model(core.ModelSpec((SIDE, SIDE, 3), core.Probit(), [component]), images)
    assert m.predict(images).shape == (6, 2)


def test_parameters_are_checked():
    m = model(core.Gaussian())
    with pytest.raises(ValueError, match="there is no parameter `conv.kernel.scale`; there are .*lengthscale"):
        m.parameters["conv.kernel.scale"]
    with pytest.raises(ValueError, match="positive"):
        m.parameters["conv.kernel.lengthscale"] = -1.0
    with pytest.raises(ValueError, match="shape"):
        m.parameters["conv.weights"] = np.ones(3)
    with pytest.raises(ValueError, match="labels from 0 to 2"):
        model(core.Softmax(3)).elbo(IMAGES, VALUES)
    with pytest.raises(ValueError, match="12 images but 3 targets"):
        m.elbo(IMAGES, np.ones(3))


def test_files_and_estimators_share_models(tmp_path, classifier, digits):
    m = model(core.Gaussian())
    m.save(tmp_path / "m.safetensors")
    twin = core.Model.load(tmp_path / "m.safetensors")
    assert np.array_equal(twin.values, m.values) and twin.spec == m.spec
    inner = classifier.model_
    assert np.array_equal(inner.predict(digits[0]), classifier.predict_proba(digits[0]))
    assert len(inner.parameters) == len(list(inner.parameters)) and "conv" in repr(inner)


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_steppers_follow_the_objective():
    m, y = model(core.Probit()), LABELS % 2

    def energy(alpha):
        settings = {"objective": {"type": "power-ep", "alpha": alpha}}
        return core.Stepper(m, "adam", settings).step(IMAGES, y, rate=0.0).elbo

    bound = m.elbo(IMAGES, y).elbo
    # Power means rise with the power.
    assert bound < energy(0.5) < energy(1.0) and energy(1e-9) == pytest.approx(bound, rel=1e-5)
    with pytest.raises(ValueError, match="`objective.alpha` is 2; it must be above 0 and at most 1"):
        energy(2.0)
