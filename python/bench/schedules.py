"""What falling rates, averages of iterates and late kernels bring: MNIST, judged on held-out training images, equal steps.

    pip install . && python3 python/bench/schedules.py --data DIR

Every run takes the same minibatches. An average is one of all parameters, the posterior in natural form, over the last
fifth of the steps.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import convgp
import numpy as np
from convgp import core

WARMUP, FLOORS = 50, {"rate": 0.05, "gamma": 0.1}
RATE, GAMMA = 0.05, 0.1
# Part of the run after which kernels move.
RUNS = {"from the start": 0.0, "after a tenth": 0.1, "after half": 0.5, "never": 1.0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with mnist/")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--inducing", type=int, default=256)
    parser.add_argument("--batch", type=int, default=200)
    options = parser.parse_args()
    X, y = convgp.read(options.data / "mnist")["train"]
    y = y.astype(int)
    held_out = np.random.default_rng(0).permutation(len(y)) < 5000
    train, judge = (X[~held_out], y[~held_out]), (X[held_out], y[held_out])
    print("| rates | kernels move | seconds | error % | NLPP |\n|---|---|---|---|---|")
    for about, start in RUNS.items():
        run(options, train, judge, "falling", about, start)
    run(options, train, judge, "constant", next(iter(RUNS)), 0.0)


def run(options: argparse.Namespace, train, judge, rates: str, about: str, start: float) -> None:
    """Trains one model and prints its row; with constant rates also the row of its average."""
    X, y = train
    model = core.Model(spec(options), X, seed=0)
    draw = np.random.default_rng(1)
    started, mean, count = time.perf_counter(), None, 0
    for step in range(options.steps):
        if step == 0:
            stepper = stepper_of(model, kernels=start == 0)
        elif step == round(start * options.steps):
            stepper = stepper_of(model, kernels=True)
        chosen = draw.choice(len(y), options.batch, replace=False)
        factor = {name: factor_at(step, options.steps, FLOORS[name] if rates == "falling" else 1.0) for name in FLOORS}
        stepper.step(X[chosen], y[chosen], len(y), rate=RATE * factor["rate"], gamma=GAMMA * factor["gamma"])
        if step >= 0.8 * options.steps:
            count += 1
            mean = model.values if mean is None else mean + (model.values - mean) / count
    seconds = time.perf_counter() - started
    row(rates, about, seconds, model, judge)
    if rates == "constant":
        put(model, mean)
        row("constant, averaged", about, seconds, model, judge)


def spec(options: argparse.Namespace) -> core.ModelSpec:
    """The weighted model of the paper as our recipe starts it."""
    kernel = core.RBF(variance=500.0)
    conv = core.Component(core.Patches(5), kernel, inducing=options.inducing, weights="learned", normalise=True, white=1e-3)
    return core.ModelSpec(image_shape=(28, 28), likelihood=core.Softmax(10), components=[conv])


def stepper_of(model: core.Model, kernels: bool) -> core.Stepper:
    change = model.parameters.free if kernels else model.parameters.freeze
    for name in model.parameters:
        if ".kernel." in name or name.endswith(".white"):
            change(name)
    return core.Stepper(model)


def factor_at(step: int, steps: int, floor: float) -> float:
    """Warm-up, then half a cosine down to `floor`."""
    if step < WARMUP:
        return (step + 1) / WARMUP
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP)))


def put(model: core.Model, values: np.ndarray) -> None:
    """Gives the model all its parameters, in the order of `model.values`."""
    at = 0
    for name in model.parameters:
        shape = model.parameters[name].shape
        size = math.prod(shape)
        model.parameters[name] = values[at : at + size].reshape(shape)
        at += size


def row(rates: str, about: str, seconds: float, model: core.Model, judge) -> None:
    X, y = judge
    p = model.predict(X)
    error = 100 * np.mean(p.argmax(1) != y)
    nlpp = -np.mean(np.log(p[np.arange(len(y)), y]))
    print(f"| {rates} | {about} | {seconds:.0f} | {error:.2f} | {nlpp:.4f} |", flush=True)


if __name__ == "__main__":
    main()
