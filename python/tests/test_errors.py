"""Mistakes are told in Python's words."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import convgp
from convgp import ConvGPClassifier, ConvGPRegressor, core


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "weigthed"}, "weigthed.*one of .*weighted, "),
        ({"model": 3}, "name, the path of a TOML file, or a spec"),
        ({"model": {"components": []}}, "components"),
        ({"model": {"component": []}}, "component"),
        ({"model": "multi-channel"}, "one channel"),
        ({"recipe": "slow"}, "recipe `slow`.*fast, paper"),
        ({"time": "soon", "steps": None}, "time is 'soon'"),
        ({"time": -1.0, "steps": None}, "time is -1.0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"random_state": -1}, "seed"),
        ({"random_state": "x"}, "random_state"),
        ({"image_shape": (9, 8)}, "9, 8.*|shape"),
        ({"image_shape": 9}, "height, width"),
        ({"inducing": 4_000}, "distinct views"),
        ({"patch": 12}, "12"),
        ({"batch_size": 0}, "batch_size"),
        ({"steps": -1}, "steps is -1"),
        ({"steps": 2.5}, "steps is 2.5"),
        ({"time": "1s"}, "steps is 2 and time is '1s'"),
    ],
)
def test_settings(digits, settings, words):
    with pytest.raises(ValueError, match=words):
        ConvGPClassifier(**{"model": "weighted", "steps": 2, "random_state": 0, **settings}).fit(*digits)


def test_what_does_not_fit_in_memory_is_planned_and_refused(digits):
    for settings in [{"inducing": 10_000_000}, {"model": "rbf", "inducing": 10_000_000, "steps": 1}]:
        words = r"training would take about .* \(images .*, posterior .*\), more than .*\. inducing=\d+ would fit \(now 10000000\)"
        with pytest.raises(MemoryError, match=words):
            ConvGPClassifier(**{"model": "pooled", "random_state": 0, **settings}).fit(*digits)
    spec = core.ModelSpec((9, 9), core.Gaussian(), [core.Component(core.Image(), core.RBF(), inducing=10_000_000)])
    with pytest.raises(MemoryError, match="would fit"):
        core.Model(spec, digits[0])


def test_files(tmp_path, digits):
    with pytest.raises(FileNotFoundError) as caught:
        convgp.load(tmp_path / "none.safetensors")
    assert caught.value.filename == str(tmp_path / "none.safetensors")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"no model")
    with pytest.raises(ValueError, match="broken.safetensors: not a readable model"):
        convgp.load(broken)
    with pytest.raises(OSError):
        ConvGPClassifier("weighted", steps=1, random_state=0).fit(*digits).save(tmp_path / "no" / "place.safetensors")
    with pytest.raises(FileNotFoundError):
        ConvGPClassifier(tmp_path / "none.toml").fit(*digits)
    with pytest.raises(FileNotFoundError):
        convgp.read(tmp_path / "nothing")


def test_images(classifier, digits):
    X, y = digits
    with pytest.raises(ValueError, match=r"\(9, 8, 1\)"):
        classifier.predict(X[:, :, :8])
    with pytest.raises(ValueError, match="features"):
        classifier.predict(X.reshape(60, -1)[:, :80])
    with pytest.raises(ValueError, match="one image of shape"):
        classifier.predict(X[0])
    for empty in [X[:0], X.reshape(60, -1)[:0], []]:
        for ask in [classifier.predict, lambda X: ConvGPClassifier().fit(X, y[:0])]:
            with pytest.raises(ValueError, match="X holds no images"):
                ask(empty)
    assert len(repr(classifier.explain(X[:1]))) < 500
    with pytest.raises(ValueError, match="NaN"):
        classifier.predict(np.full_like(X, np.nan))
    with pytest.raises(ValueError, match="one class"):
        ConvGPClassifier().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="class 'sideways'"):
        classifier.nlpp(X, np.full(60, "sideways"))


def test_pixels_on_another_scale():
    X, y = convgp.rectangles(60, seed=0)
    model = ConvGPClassifier("weighted", steps=1, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X.astype(float)), model.predict(X)), "the same numbers in another type"
    for other in [X / 16.0, 257.0 * X]:
        with pytest.raises(ValueError, match="another scale"):
            model.predict(other)
        with pytest.raises(ValueError, match="another scale"):
            model.score(other, y)
    unit = ConvGPClassifier("weighted", steps=1, random_state=0).fit(X / 255.0, y)
    with pytest.raises(ValueError, match="from 0 to 65535.*from 0 to 1"):
        unit.predict(257.0 * X)
    with pytest.warns(UserWarning, match="divided by 255"):
        bytes_by_unit = unit.predict_proba(X)
    with pytest.warns(UserWarning, match="multiplied by 255"):
        unit_by_bytes = model.predict_proba(X / 255.0)
    for converted in [bytes_by_unit, unit_by_bytes]:
        assert np.allclose(converted, model.predict_proba(X), atol=1e-5)


def test_rows_of_numbers_are_never_converted():
    rows = np.linspace(0.0, 255.0, 60 * 4).reshape(60, 4)
    model = ConvGPRegressor(steps=3, random_state=0).fit(rows, rows[:, 0])
    small = rows / 255.0
    assert np.allclose(model.predict(small), model.predict(np.vstack([small, rows]))[:60], atol=1e-6)


def test_nothing_is_fitted_yet(digits):
    for ask in ["predict", "predict_f", "explain"]:
        with pytest.raises(ValueError, match="not fitted"):
            getattr(ConvGPRegressor(), ask)(digits[0])
    with pytest.raises(AttributeError, match="not fitted"):
        ConvGPClassifier().inducing_patches_  # noqa: B018


def test_numbers_that_go_wrong_have_their_own_exception(digits):
    X, _ = digits
    spec = core.ModelSpec((9, 9), core.Gaussian(), [core.Component(core.Image(), core.RBF(), inducing=5)])
    model = core.Model(spec, X)
    assert issubclass(convgp.NumericalError, ArithmeticError)
    stepper = core.Stepper(model)
    targets = np.zeros(60)
    stepper.step(X, targets)
    with pytest.raises(convgp.NumericalError):
        for _ in range(50):
            stepper.step(X, 1e300 * np.ones(60), rate=1e6)
    assert np.all(np.isfinite(model.values)), "the parameters are those of the last good step"


def test_no_warnings_on_import():
    subprocess.run([sys.executable, "-W", "error", "-c", "import convgp"], check=True)


def test_scikit_learn_is_optional(tmp_path):
    program = """
import sys
sys.modules["sklearn"] = None
import numpy as np, pickle, convgp
X, y = convgp.rectangles(60, seed=0)
model = convgp.ConvGPClassifier("weighted", steps=3, random_state=0).fit(X, y)
assert pickle.loads(pickle.dumps(model)).score(X, y) == model.score(X, y)
assert model.get_params()["steps"] == 3 and "steps=3" in repr(model)
assert model.set_params(steps=4).steps == 4
real = convgp.ConvGPRegressor(steps=3, random_state=0).fit(X.reshape(60, -1), np.arange(60.0))
assert real.score(X.reshape(60, -1), np.arange(60.0)) <= 1.0
for bad in [lambda: model.fit(X, None), lambda: model.fit(X, y[:5]), lambda: model.predict(X[0]), lambda: model.set_params(step=1)]:
    try:
        bad()
    except ValueError:
        continue
    raise SystemExit("no error")
assert "sklearn" not in {m.split(".")[0] for m in sys.modules if sys.modules[m]}
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
