"""The estimators by themselves."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import convgp
from convgp import ConvGPClassifier, ConvGPRegressor


def test_it_learns_and_says_what_it_learned(classifier, digits):
    X, y = digits
    assert classifier.score(X, y) > 0.95
    p = classifier.predict_proba(X)
    assert p.shape == (60, 2) and np.allclose(p.sum(axis=1), 1.0)
    assert list(classifier.classes_) == ["across", "down"]
    assert classifier.n_features_in_ == 81 and classifier.image_shape_ == (9, 9, 1)
    assert classifier.n_iter_ == 60 and np.isfinite(classifier.elbo_)
    assert classifier.nlpp(X, y) < 0.5
    assert "likelihood: probit (two classes)" in classifier.reasons_


def test_a_model_is_chosen_from_the_data(digits):
    model = ConvGPClassifier(steps=1, inducing=4, random_state=0).fit(*digits)
    assert model.reasons_[0].startswith("model: ") and model.reasons_[0].endswith("(images are grey)")


def test_images_and_rows_are_the_same(classifier, digits):
    X, y = digits
    rows = ConvGPClassifier("weighted", steps=60, random_state=0, image_shape=(9, 9)).fit(X.reshape(60, -1), y)
    assert np.array_equal(rows.predict_proba(X), classifier.predict_proba(X.reshape(60, 81)))
    channels = classifier.predict_proba(X[..., None])
    assert np.array_equal(channels, classifier.predict_proba(X))


def test_results_depend_on_the_seed_alone(classifier, digits):
    X, y = digits
    for settings in [{"n_jobs": 1}, {"n_jobs": 2}, {"n_jobs": -1}]:
        again = ConvGPClassifier("weighted", steps=60, random_state=0, **settings).fit(X, y)
        assert np.array_equal(again.predict_proba(X), classifier.predict_proba(X))
    other = ConvGPClassifier("weighted", steps=60, random_state=1).fit(X, y)
    assert not np.array_equal(other.predict_proba(X), classifier.predict_proba(X))


def test_bytes_and_fractions_give_the_same_model():
    X, y = convgp.rectangles(60, seed=3)
    assert X.dtype == np.uint8 and set(y) == {"wide", "tall"}
    fit = lambda images: ConvGPClassifier("weighted", steps=5, random_state=0).fit(images, y).predict_proba(images)  # noqa: E731
    assert np.array_equal(fit(X), fit(X / 255.0))


def test_regression(regressor, waves):
    X, y = waves
    mean, sd = regressor.predict(X, return_std=True)
    assert regressor.score(X, y) > 0.9 and np.all(sd > 0.0)
    assert np.array_equal(mean, regressor.predict(X))
    f, variance = regressor.predict_f(X)
    assert f.shape == variance.shape == (60, 1) and np.all(np.sqrt(variance[:, 0]) < sd / np.std(y)), "latents are standardised"
    draws = regressor.sample_f(X[:5], 400, random_state=0)
    assert draws.shape == (400, 5, 1)
    assert np.allclose(draws.mean(axis=0), f[:5], atol=5 * np.sqrt(variance[:5].max() / 400) + 1e-9)


def test_history_becomes_arrays_and_a_frame(digits):
    pandas = pytest.importorskip("pandas")
    X, y = digits
    model = ConvGPClassifier("weighted", steps=40, evaluate_every=10, random_state=0).fit(X, y, eval_set=(X, y))
    history = model.history_
    assert [row["step"] for row in history] == [10, 20, 30, 40]
    assert history["held_out_error"][-1] == 1.0 - model.score(X, y)
    assert history.to_dict()["held_out_nlpp"][-1] == pytest.approx(model.nlpp(X, y), rel=1e-12)
    frame = history.to_frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame["step"]) == [10, 20, 30, 40]
    with pytest.raises(KeyError, match="there are step"):
        history["loss"]
    assert "<table>" in history._repr_html_()


def test_callbacks_see_rows_and_may_stop(digits):
    X, y = digits
    seen = []
    stop = lambda row: seen.append(row["step"]) or row["step"] >= 20  # noqa: E731
    model = ConvGPClassifier("weighted", steps=1000, evaluate_every=10, random_state=0).fit(X, y, callbacks=stop)
    assert seen == [10, 20] and model.n_iter_ == 20

    def fails(row):
        raise RuntimeError("enough")

    model = ConvGPClassifier("weighted", steps=1000, evaluate_every=10, random_state=0)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(X, y, callbacks=[fails])
    assert model.predict(X).shape == (60,), "what was trained so far can be used"


def test_time_is_kept(digits):
    X, y = digits
    model = ConvGPClassifier("weighted", time="0.3s", random_state=0).fit(X, y)
    assert 0.1 < model.history_[-1]["seconds"] < 3.0 and model.n_iter_ > 3


def test_warm_start_goes_on(digits):
    X, y = digits
    model = ConvGPClassifier("weighted", steps=20, warm_start=True, random_state=0).fit(X, y)
    before = model.elbo(X, y)
    model.fit(X, y)
    assert model.n_iter_ == 40 and model.elbo(X, y) > before
    assert model.history_[-1]["step"] == 40
    assert model.set_params(warm_start=False).fit(X, y).n_iter_ == 20


def test_streams(digits, waves):
    X, y = digits
    model = ConvGPClassifier("weighted", batch_size=20, random_state=0)
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X[:20], y[:20])
    for _ in range(30):
        for start in range(0, 60, 20):
            model.partial_fit(X[start : start + 20], y[start : start + 20], classes=["across", "down"], n_total=60)
    assert model.n_iter_ == 90 and model.score(X, y) > 0.9
    model = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    assert model.score(X, y) > 0.9
    regression = ConvGPRegressor(model="rbf", random_state=0)
    for _ in range(40):
        regression.partial_fit(*waves, n_total=60)
    assert regression.score(*waves) > 0.8


def test_pickle_and_copies_predict_the_same_bits(classifier, regressor, digits, waves):
    for model, X in [(classifier, digits[0]), (regressor, waves[0])]:
        for twin in [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]:
            assert np.array_equal(twin.predict(X), model.predict(X))
            assert np.array_equal(twin.predict_f(X)[1], model.predict_f(X)[1])
            assert twin.history_ == model.history_ and twin.spec_ == model.spec_
    assert pickle.loads(pickle.dumps(ConvGPClassifier(steps=3))).steps == 3
    assert b"_convgp" not in pickle.dumps(classifier), "a pickle holds the bytes of a model file and nothing native"


def test_files_come_back(classifier, regressor, digits, waves, tmp_path):
    classifier.save(tmp_path / "c.safetensors")
    regressor.save(tmp_path / "r.safetensors")
    twin = convgp.load(tmp_path / "c.safetensors")
    assert isinstance(twin, ConvGPClassifier) and list(twin.classes_) == ["across", "down"]
    assert np.array_equal(twin.predict_proba(digits[0]), classifier.predict_proba(digits[0]))
    twin = convgp.load(tmp_path / "r.safetensors")
    assert isinstance(twin, ConvGPRegressor)
    assert np.array_equal(twin.predict(waves[0]), regressor.predict(waves[0]))
    with pytest.raises(ValueError, match="ConvGPRegressor"):
        ConvGPClassifier.load(tmp_path / "r.safetensors")
    with pytest.raises(ValueError, match="ConvGPClassifier"):
        ConvGPRegressor.load(tmp_path / "c.safetensors")


def test_whole_numbers_stay_numbers_in_files(digits, tmp_path):
    X, y = digits
    model = ConvGPClassifier("weighted", steps=2, random_state=0).fit(X, np.where(y == "down", 7, -2))
    model.save(tmp_path / "m.safetensors")
    assert convgp.load(tmp_path / "m.safetensors").classes_.tolist() == [-2, 7]


def test_unknown_is_an_answer(classifier, digits):
    X, y = digits
    model = copy.deepcopy(classifier)
    assert model.answer_rule_ is None and list(model.answer(X)) == list(model.predict(X))
    model.calibrate(X, y, risk=0.0)
    rule = model.answer_rule_
    assert rule["images"] == 60 and rule["risk"] == 0.0 and 0.0 < rule["threshold"] <= 1.0
    unsure = model.predict_proba(X).max(axis=1) < rule["threshold"]
    assert [a == "unknown" for a in model.answer(X)] == list(unsure)
    strange = np.full((1, 9, 9), 0.5, dtype=np.float32)
    assert model.answer(strange, unknown=None).dtype == object
    assert pickle.loads(pickle.dumps(model)).answer_rule_ == rule


def test_looking_in(classifier, digits):
    X, _ = digits
    patches, weights = classifier.inducing_patches_, classifier.patch_weights_
    assert list(patches) == ["conv"] and patches["conv"].shape[1:] == (3, 3, 1)
    assert weights["conv"].shape == (1, 1, 7, 7)
    assert classifier.component_shares_["conv"] == {"prior": 1.0, "explained": pytest.approx(1.0)}
    assert classifier.component_shares(X)["conv"]["explained"] == pytest.approx(1.0)
    f, _ = classifier.predict_f(X[:3])
    for explanation, mean in zip(classifier.explain(X[:3]), f):
        (part,) = explanation.parts
        assert part.mean.shape == part.sd.shape == (1, 7, 7, 1) and part.maps.shape == (1, 1, 9, 9)
        assert explanation.latent_means == pytest.approx(mean, rel=1e-3, abs=1e-3)
        assert explanation.map(0).sum() == pytest.approx(mean[0], rel=1e-3, abs=1e-3)
        assert part.inducing.sum() == pytest.approx(mean[0], rel=1e-3, abs=1e-3)


def test_reports_and_figures(classifier, regressor, digits, waves, tmp_path):
    X, y = digits
    report = classifier.report(X, y, title="Stripes <&>")
    assert {"reliability", "confusion", "weights-0"} <= set(report.figures)
    figure = report.figure("weights-0")
    assert figure.startswith(b"\x89PNG") and figure._repr_png_() == bytes(figure)
    with pytest.raises(ValueError, match="there are .*weights-0"):
        report.figure("weight")
    assert "Stripes &lt;&amp;&gt;" in report.html() and report._repr_html_().startswith("<iframe srcdoc=")
    report.save(tmp_path / "report")
    assert (tmp_path / "report" / "report.html").read_text() == report.html()
    assert (tmp_path / "report" / "figures" / "weights-0.png").read_bytes() == figure
    assert classifier.figure("weights-0").startswith(b"\x89PNG")
    assert "root mean square error" in regressor.report(*waves).html()


@pytest.mark.parametrize("verbose", [1, 2])
def test_progress_can_be_shown(digits, capsys, verbose, monkeypatch):
    if verbose == 2:
        monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    ConvGPClassifier("weighted", steps=20, random_state=0, verbose=verbose).fit(*digits)
    assert "inducing inputs" in capsys.readouterr().err


def test_models_by_name_dict_and_file(digits, tmp_path):
    X, y = digits
    spec = {
        "components": [
            {"views": {"type": "patches", "patch": 3}, "kernel": {"type": "rbf"}, "inducing": {"count": 8}},
        ]
    }
    by_dict = ConvGPClassifier(spec, steps=5, random_state=0).fit(X, y)
    assert by_dict.spec_["model"]["likelihood"]["type"] == "probit" and by_dict.spec_["train"]["steps"] == 5
    file = tmp_path / "model.toml"
    file.write_text(
        """
        [model]
        image = { height = 9, width = 9 }
        likelihood = { type = "probit" }
        [[model.components]]
        views = { type = "patches", patch = 3 }
        kernel = { type = "rbf" }
        inducing = { count = 8 }
        [train]
        batch_size = 20
        """
    )
    by_file = ConvGPClassifier(file, steps=5, random_state=0).fit(X, y)
    assert by_file.spec_["train"]["batch_size"] == 20
    for name in ["invariant", "rbf", "weighted+rbf", "additive"]:
        model = ConvGPClassifier(name, steps=2, inducing=5, random_state=0).fit(X, y)
        assert all(c["inducing"]["count"] == 5 for c in model.spec_["model"]["components"])
    paper = ConvGPClassifier("weighted", recipe="paper", patch=4, steps=2, random_state=0).fit(X, y)
    assert paper.inducing_patches_["conv"].shape[1:] == (4, 4, 1)


def test_colour(digits):
    draw = np.random.default_rng(2)
    X, y = draw.integers(0, 255, (24, 8, 8, 3), dtype=np.uint8), np.arange(24) % 3
    model = ConvGPClassifier("multi-channel", steps=3, inducing=6, random_state=0).fit(X, y)
    assert model.patch_weights_["conv"].shape == (3, 1, 6, 6) and model.predict_proba(X).shape == (24, 3)
    assert len(model.explain(X[:1])[0].parts) == 3


def test_units_do_not_matter(digits):
    X, y = digits
    X = np.round(16.0 * (X - X.min()) / (X.max() - X.min()))
    expected = None
    for other in [X, X.astype(np.uint8), X.astype(np.uint16), X.astype(np.float16), 255.0 * X + 3.0, 1e-3 * X]:
        for model in ["pooled", "weighted"]:
            fitted = convgp.ConvGPClassifier(model, steps=20, random_state=0).fit(other, y)
            p = fitted.predict_proba(other)
            expected = expected or {}
            np.testing.assert_allclose(p, expected.setdefault(model, p), atol=1e-4)


def test_channels_first_and_grey_stored_as_colour(digits):
    X, y = digits
    draw = np.random.default_rng(2)
    colour = X[..., None] * draw.random(3)
    last = convgp.ConvGPClassifier("rbf", steps=5, random_state=0).fit(colour, y)
    first = convgp.ConvGPClassifier("rbf", steps=5, random_state=0).fit(np.moveaxis(colour, -1, 1), y)
    assert first.image_shape_ == last.image_shape_ == (9, 9, 3)
    np.testing.assert_array_equal(first.predict_proba(np.moveaxis(colour, -1, 1)), last.predict_proba(colour))
    grey = convgp.ConvGPClassifier("rbf", steps=5, random_state=0).fit(np.repeat(X[..., None], 3, axis=-1), y)
    assert grey.image_shape_ == (9, 9, 1)
    np.testing.assert_array_equal(grey.predict(np.repeat(X[..., None], 3, axis=-1)), grey.predict(X))
    with pytest.raises(ValueError, match=r"\(9, 9, 3\)"):
        grey.predict(colour)
