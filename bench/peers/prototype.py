#!/usr/bin/env python3
"""The closed form of convgp next to a prototype of it in PyTorch: the same images, patches, windows and inducing patches.

    python3 bench/peers/prototype.py --data DIR --prototype closed_form.py

The prototype is a script that is given by its path: it takes --ds, --n, --K, --R, --Q, --stride and --flip and prints
"TEST err % nlpp" for all test images. One process after the other, both with reading, solving and predicting in their time:
seconds on the clock, the processor's seconds, peak memory (GNU time), error and NLPP, as a table.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import environment

environment.enter()

import numpy as np  # noqa: E402

import ours  # noqa: E402
import settings  # noqa: E402

# Images (0: all), inducing patches, windows a side, patch, stride; what the prototype does to patches without being told.
PROBLEMS = {
    "mnist": dict(ds="mnist", shape=(28, 28, 1), n=5000, K=400, R=5, Q=5, stride=1, flip=0, unit=1.0),
    "cifar10": dict(ds="cifar", shape=(32, 32, 3), n=0, K=1024, R=3, Q=6, stride=2, flip=1, unit=1e-3, contrast=10 / 255**2),
}

SPEC = """
[model]
image = {{ height = {shape[0]}, width = {shape[1]}, channels = {shape[2]} }}
likelihood = {{ type = "labels", classes = 10 }}
posterior = {{ structure = "shared" }}
jitter = {{ relative = 1e-3 }}

[[model.components]]
name = "conv"
image_norm = "nystrom"
kernel = {{ type = "rbf", lengthscale = {{ median = 0.5 }} }}
pooling = {{ grid = [{R}, {R}] }}
inducing = {{ count = {K} }}

[model.components.views]
type = "patches"
patch = {Q}
stride = {stride}
channels = "all"
orbit = [{orbit}]
transform = {{ {contrast}whiten = 0.1, unit = {unit} }}
"""


def spec(problem):
    contrast = f"contrast = {problem['contrast']}, " if "contrast" in problem else ""
    return SPEC.format(**{**problem, "orbit": '"flip-horizontal"' if problem["flip"] else "", "contrast": contrast})


def draw(labels, n):
    """The images that the prototype takes."""
    if not n:
        return np.arange(len(labels))
    rng = np.random.default_rng(0)
    return np.concatenate([rng.choice(np.flatnonzero(labels == c), n // 10, False) for c in range(10)])


def measured(command, environment=None):
    """What a command prints, and its seconds, the processor's and peak memory in MB."""
    # Through GNU time: a child of this process would count this process's memory at its start as its own.
    with tempfile.NamedTemporaryFile("r") as usage:
        command = ["/usr/bin/time", "-f", "%e %U %S %M", "-o", usage.name, *map(str, command)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})})
        if done.returncode != 0:
            raise SystemExit(f"failed: {' '.join(command)}")
        seconds, user, system, kilobytes = map(float, usage.read().split())
    return done.stdout, dict(seconds=seconds, cpu_seconds=user + system, peak_MB=kilobytes * 1024 / 1e6)


def theirs(problem, options):
    command = [sys.executable, options.prototype]
    for name in ("ds", "n", "K", "R", "Q", "stride", "flip"):
        command += [f"--{name}", problem[name]]
    printed, record = measured(command, dict(CONVGP_DATA=str(options.data)))
    error, nlpp = re.search(r"TEST err ([\d.]+) nlpp ([\d.]+)", printed).groups()
    return dict(record, error=float(error) / 100, nlpp=float(nlpp))


def convgp(problem, options, data_set):
    images, labels, test, test_labels = settings.whole(data_set, options.data)
    chosen = draw(labels, problem["n"])
    pixels = lambda part: np.rint(255 * part).astype(np.uint8).reshape(-1, *problem["shape"])
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        arrays = dict(x_train=pixels(images[chosen]), y_train=labels[chosen], x_test=pixels(test), y_test=test_labels)
        np.savez(folder / "data.npz", **arrays)
        del images, test, arrays
        (folder / "spec.toml").write_text(spec(problem))
        command = [options.program, "train", folder / "data.npz", "--spec", folder / "spec.toml", "--no-report", "--json"]
        command += ["--quiet", "--threads", "2", "--runs-dir", folder / "runs"]
        printed, record = measured(command)
    events = [json.loads(line) for line in printed.splitlines()]
    result = next(e for e in events if e["event"] == "result" and e["split"] == "test")
    return dict(record, error=result["error"], nlpp=result["nlpp"])


def table(records):
    yield "| problem | program | seconds | processor's | peak MB | error % | NLPP |\n|" + "---|" * 7
    for r in records:
        cost = f"{r['seconds']:.1f} | {r['cpu_seconds']:.1f} | {r['peak_MB']:.0f}"
        problem = f"{r['problem']}, {r['n'] or 'all'} images, K {r['K']}, {r['R']}x{r['R']} windows"
        yield f"| {problem} | {r['program']} | {cost} | {100 * r['error']:.2f} | {r['nlpp']:.4f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("CONVGP_DATA"), help="folder with mnist/ and cifar10/")
    parser.add_argument("--prototype", type=Path, required=True)
    parser.add_argument("--problems", type=lambda t: t.split(","), default=list(PROBLEMS))
    parser.add_argument("--images", type=int, help="train on so many, for a trial")
    parser.add_argument("--inducing", type=int, help="so many inducing patches, for a trial")
    parser.add_argument("--program", help="convgp itself (default: built from this repository)")
    parser.add_argument("--out", type=Path, help="keep the records in this file, a line each")
    options = parser.parse_args()
    unknown = [p for p in options.problems if p not in PROBLEMS]
    if unknown or not options.data:
        parser.error(f"unknown problems: {unknown}" if unknown else "--data or $CONVGP_DATA is needed")
    options.data, options.program = options.data.resolve(), options.program or ours.build_convgp()
    records = []
    for name in options.problems:
        problem = dict(PROBLEMS[name])
        problem.update(n=options.images or problem["n"], K=options.inducing or problem["K"])
        for program, figures in [("prototype", theirs(problem, options)), ("convgp", convgp(problem, options, name))]:
            records.append(dict(problem=name, program=program, **problem, **figures))
        if options.out:
            ours.write_jsonl(options.out, records)
    print(ours.provenance("torch"), *table(records), sep="\n")


if __name__ == "__main__":
    main()
