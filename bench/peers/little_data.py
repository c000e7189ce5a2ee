#!/usr/bin/env python3
"""Little data: a support-vector machine, a small convolutional network and convgp, all on the same few MNIST digits.

    python3 bench/peers/little_data.py --data DIR

Digits are drawn balanced over classes, a function of size and seed; their indices are kept beside the results. Every
contestant is judged by the same code on the whole test set, or with --held-out on 3,000 training images: error, NLPP,
expected calibration error in 15 bins of equal width, and the seconds its training took. Writes
docs/results/little-data.jsonl and prints a table in Markdown.
"""
import argparse
import csv
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import environment
from run import ROOT

environment.enter()

import numpy as np  # noqa: E402
import scipy.optimize  # noqa: E402
import scipy.special  # noqa: E402
import torch  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

import ours  # noqa: E402
import settings  # noqa: E402

CLASSES = 10
FOLDS = 5
PENALTIES = [1.0, 10.0, 100.0]
UPDATES, BATCH = 2000, 64  # of the network
HELD_OUT = 3000  # training images that settings may be chosen by


def draw(labels, size, seed):
    """Indices of `size` images, equally many of every class, in the order of the file."""
    rng = np.random.default_rng([seed, size])
    each = [rng.choice(np.flatnonzero(labels == c), size // CLASSES, replace=False) for c in range(CLASSES)]
    return np.sort(np.concatenate(each))


def without_test(images, labels):
    """Training images that digits may be drawn from, and others to judge by instead of the test set."""
    held_out = np.zeros(len(labels), dtype=bool)
    held_out[np.random.default_rng(77).choice(len(labels), HELD_OUT, replace=False)] = True
    return images[~held_out], labels[~held_out], images[held_out], labels[held_out]


def temperature(scores, labels):
    """The factor on scores whose softmax has the best log likelihood, and that likelihood's negative mean."""

    def loss(log_factor):
        log_p = scipy.special.log_softmax(np.exp(log_factor) * scores, axis=1)
        return -log_p[np.arange(len(labels)), labels].mean()

    best = scipy.optimize.minimize_scalar(loss, bounds=(-5, 5), method="bounded")
    return np.exp(best.x), best.fun


def svm(train, labels, test, **_):
    """RBF kernel of scikit-learn's default width; penalty and temperature by cross-validation."""

    def machine(penalty):
        return SVC(C=penalty, gamma="scale", decision_function_shape="ovr")

    def out_of_fold(penalty):
        scores = np.empty((len(labels), CLASSES))
        for inside, outside in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(train, labels):
            fitted = machine(penalty).fit(train[inside], labels[inside])
            scores[outside] = fitted.decision_function(train[outside])
        return temperature(scores, labels)

    start = time.perf_counter()
    chosen = {penalty: out_of_fold(penalty) for penalty in PENALTIES}
    penalty = min(chosen, key=lambda p: chosen[p][1])
    fitted = machine(penalty).fit(train, labels)
    seconds = time.perf_counter() - start
    scores = chosen[penalty][0] * fitted.decision_function(test)
    return scipy.special.softmax(scores, axis=1), seconds, dict(penalty=penalty)


def network(train, labels, test, seed, updates=UPDATES, **_):
    """Two convolutions and two dense layers with dropout, Adam with a cosine schedule."""
    torch.manual_seed(seed)
    side = 28
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Dropout(0.25), torch.nn.Linear(64 * 49, 128), torch.nn.ReLU(),
        torch.nn.Dropout(0.5), torch.nn.Linear(128, CLASSES),
    )
    images = torch.tensor(train, dtype=torch.float32).reshape(-1, 1, side, side)
    targets = torch.tensor(labels)
    optimiser = torch.optim.Adam(layers.parameters(), lr=1e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    start, order = time.perf_counter(), torch.empty(0, dtype=torch.long)
    for _ in range(updates):
        if len(order) < min(BATCH, len(images)):
            order = torch.randperm(len(images))
        batch, order = order[:BATCH], order[BATCH:]
        loss = torch.nn.functional.cross_entropy(layers(images[batch]), targets[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    seconds = time.perf_counter() - start
    layers.eval()
    with torch.no_grad():
        parts = torch.tensor(test, dtype=torch.float32).reshape(-1, 1, side, side).split(1000)
        logits = torch.cat([layers(part) for part in parts]).double()
    return torch.softmax(logits, 1).numpy(), seconds, dict(updates=updates)


def convgp(train, labels, test, seed, program, span, settings_given, test_labels, **_):
    """`convgp train` with its defaults or settings given, for so long; the reading of files and the report are not counted."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for prefix, images, y in [("train", train, labels), ("t10k", test, test_labels)]:
            pixels = np.rint(255 * images).reshape(-1, 28, 28)
            ours.write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", pixels)
            ours.write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", y)
        command = [program, "train", folder, "--time", span, "--seed", seed, "--runs-dir", folder / "runs"]
        command += ["--name", "run", "--json", "--quiet", "--no-report", *settings_given]
        lines = run(command).splitlines()
        end = json.loads(lines[-1])
        table = folder / "answers.csv"
        run([program, "predict", folder / "runs" / "0001-run", folder, "-o", table])
        with open(table) as file:
            rows = list(csv.DictReader(file))
        probabilities = np.array([[float(row[f"p_{c}"]) for c in range(CLASSES)] for row in rows])
    return probabilities, end["seconds"], dict(steps=end["step"], span=span)


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(str(c) for c in command)}\n{done.stderr}")
    return done.stdout


CONTESTANTS = dict(svm=svm, network=network, convgp=convgp)


def table(records):
    yield "| digits | contestant | seeds | error % | NLPP | ECE | seconds |\n|" + "---|" * 7
    keys = dict.fromkeys((r["size"], r["contestant"]) for r in records)
    for size, contestant in keys:
        of = [r for r in records if (r["size"], r["contestant"]) == (size, contestant)]
        mean = {k: np.mean([r[k] for r in of]) for k in ("error", "nlpp", "ece", "seconds")}
        cells = f"{100 * mean['error']:.2f} | {mean['nlpp']:.3f} | {mean['ece']:.3f} | {mean['seconds']:.1f}"
        yield f"| {size} | {contestant} | {len(of)} | {cells} |"


def main():
    numbers = lambda text: [int(t) for t in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("CONVGP_DATA"), help="folder with mnist/")
    parser.add_argument("--sizes", type=numbers, default=[100, 300, 1000, 5000])
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    parser.add_argument("--contestants", type=lambda t: t.split(","), default=list(CONTESTANTS))
    parser.add_argument("--time", default="60s", help="training time of convgp")
    parser.add_argument("--held-out", action="store_true", help="judge on training images kept apart, not on the test set")
    parser.add_argument("--settings", type=str.split, default=[], help="of `convgp train`, as one word: --settings='-m 256'")
    parser.add_argument("--updates", type=int, default=UPDATES, help="of the network")
    parser.add_argument("--program", help="convgp itself (default: built from this repository)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "little-data.jsonl")
    options = parser.parse_args()
    unknown = [c for c in options.contestants if c not in CONTESTANTS]
    if unknown or not options.data:
        parser.error(f"unknown contestants: {unknown}" if unknown else "--data or $CONVGP_DATA is needed")
    wrong = [size for size in options.sizes if size % CLASSES]
    if wrong:
        parser.error(f"sizes must be multiples of {CLASSES}, not {wrong}")
    images, labels, test, test_labels = settings.whole("mnist", options.data)
    if options.held_out:
        images, labels, test, test_labels = without_test(images, labels)
    program = options.program or ("convgp" in options.contestants and ours.build_convgp())
    records, indices = [], []
    for size in options.sizes:
        for seed in options.seeds:
            chosen = draw(labels, size, seed)
            indices.append(dict(size=size, seed=seed, indices=chosen.tolist()))
            for name in options.contestants:
                probabilities, seconds, how = CONTESTANTS[name](
                    images[chosen], labels[chosen], test, seed=seed, program=program, span=options.time,
                    test_labels=test_labels, updates=options.updates, settings_given=options.settings,
                )
                record = dict(size=size, seed=seed, contestant=name, seconds=seconds, **how)
                records.append({**record, **ours.figures(probabilities, test_labels)})
                ours.write_jsonl(options.out, records)
    ours.write_jsonl(options.out.with_name(options.out.stem + "-indices.jsonl"), indices)
    print(ours.provenance("scikit-learn", "torch"), *table(records), sep="\n")


if __name__ == "__main__":
    main()
