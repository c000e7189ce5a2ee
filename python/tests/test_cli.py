"""Models go both ways between Python and the command line, to the bit."""

from __future__ import annotations

import csv
import os
import subprocess

import numpy as np
import pytest

import convgp

CLI = os.environ.get("CONVGP_CLI")
pytestmark = pytest.mark.skipif(CLI is None, reason="CONVGP_CLI names no program")


def run(*arguments, **settings):
    done = subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


def predictions(model, data):
    rows = list(csv.DictReader(run("predict", model, data).splitlines()))
    names = [key for key in rows[0] if key.startswith("p_")]
    return rows, np.array([[float(row[name]) for name in names] for row in rows]), [name[2:] for name in names]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    X, y = convgp.rectangles(120, seed=5)
    images, names = X.astype(np.float32) / 320.0, np.unique(y)
    np.savez(folder / "train.npz", images=images, labels=np.searchsorted(names, y))
    return folder, images, y, np.searchsorted(names, y)


def test_a_model_of_ours_predicts_the_same_there(data):
    folder, X, y, labels = data
    model = convgp.ConvGPClassifier("weighted", steps=40, random_state=0).fit(X, labels)
    model.save(folder / "ours.safetensors")
    rows, p, names = predictions(folder / "ours.safetensors", folder / "train.npz")
    assert [int(name) for name in names] == list(model.classes_)
    assert np.array_equal(p, model.predict_proba(X))
    assert [int(row["class"]) for row in rows] == list(model.predict(X))
    means, variances = model.predict_f(X)
    assert np.array_equal([float(row["latent_mean_0"]) for row in rows], means[:, 0])
    assert np.array_equal([float(row["latent_variance_0"]) for row in rows], variances[:, 0])


def test_a_model_of_theirs_predicts_the_same_here(data):
    folder, X, _, labels = data
    run("train", "train.npz", "--model", "weighted", "--steps", 30, "--seed", 4, "--no-report", "--quiet", "--name", "theirs", cwd=folder)
    (file,) = (folder / "runs").glob("*theirs/model.safetensors")
    theirs = convgp.load(file)
    _, p, _ = predictions(file, folder / "train.npz")
    assert np.array_equal(p, theirs.predict_proba(X))
    ours = convgp.ConvGPClassifier("weighted", steps=30, random_state=4).fit(X, labels)
    assert np.array_equal(ours.predict_proba(X), p), "the same seed gives the same model"


def test_the_threshold_of_unknown_goes_both_ways(data):
    folder, X, _, labels = data
    model = convgp.ConvGPClassifier("weighted", steps=10, random_state=0).fit(X, labels).calibrate(X, labels, risk=0.02)
    model.save(folder / "sure.safetensors")
    rows, _, _ = predictions(folder / "sure.safetensors", folder / "train.npz")
    assert [row["class"] for row in rows] == [str(answer) for answer in model.answer(X)]
    run("calibrate", folder / "sure.safetensors", folder / "train.npz", "--risk", 0.05)
    assert convgp.load(folder / "sure.safetensors").answer_rule_["risk"] == 0.05


def test_folders_are_read_the_same(data, tmp_path):
    image = pytest.importorskip("PIL.Image")
    draw = np.random.default_rng(0)
    for n in range(24):
        name = ["cats", "dogs"][n % 2]
        (tmp_path / "pets" / name).mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 255, (16 + n % 3, 16, 3), dtype=np.uint8)
        image.fromarray(pixels).save(tmp_path / "pets" / name / f"{n:02}.png")
    X, y = convgp.read(tmp_path / "pets", size=(12, 12))["train"]
    assert X.shape == (24, 12, 12, 3) and set(y) == {"cats", "dogs"}
    model = convgp.ConvGPClassifier("weighted", steps=5, inducing=8, random_state=0).fit(X, y)
    model.save(tmp_path / "pets.safetensors")
    rows, p, _ = predictions(tmp_path / "pets.safetensors", tmp_path / "pets")
    assert np.array_equal(p, model.predict_proba(X)) and [row["label"] for row in rows] == list(y)
