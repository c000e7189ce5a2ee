#!/usr/bin/env python3
"""Little data: a support-vector machine, two convolutional networks and convgp, all on the same few images.

    python3 bench/peers/little_data.py --data DIR --data-set mnist

Images are drawn balanced over classes, a function of size and seed; their indices are kept beside the results. Every
contestant is judged by the same code on the whole test set, or with --held-out on 3,000 training images: error, NLPP,
expected calibration error in 15 bins of equal width, the seconds the whole of its training took, choosing included, and
the processor's seconds meanwhile, on which other programs have less influence. Records replace those of the same data
set, size, seed and contestant in docs/results/little-data.jsonl, so contestants can be run one by one; --resume leaves
out what is there. Prints a table in Markdown.
"""
import argparse
import csv
import json
import os
import subprocess
import tempfile
from pathlib import Path

import environment
from run import ROOT

environment.enter()

import numpy as np  # noqa: E402
import torch  # noqa: E402

import contestants  # noqa: E402
import ours  # noqa: E402
import settings  # noqa: E402
from contestants import CLASSES  # noqa: E402

SHAPES = dict(mnist=(28, 28, 1), cifar10=(32, 32, 3))
HELD_OUT = 3000  # training images that settings may be chosen by
OUT = ROOT / "docs" / "results" / "little-data.jsonl"


def draw(labels, size, seed):
    """Indices of `size` images, equally many of every class, in the order of the file."""
    rng = np.random.default_rng([seed, size])
    each = [rng.choice(np.flatnonzero(labels == c), size // CLASSES, replace=False) for c in range(CLASSES)]
    return np.sort(np.concatenate(each))


def without_test(images, labels):
    """Training images that may be drawn from, and others to judge by instead of the test set."""
    held_out = np.zeros(len(labels), dtype=bool)
    held_out[np.random.default_rng(77).choice(len(labels), HELD_OUT, replace=False)] = True
    return images[~held_out], labels[~held_out], images[held_out], labels[held_out]


def convgp(train, labels, test, shape, seed, program, given, **_):
    """`convgp train` on a file with nothing but the training images; its time is that of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        pixels = lambda images: np.rint(255 * images).astype(np.uint8).reshape(-1, *shape)
        np.savez(folder / "train.npz", x_train=pixels(train), y_train=labels)
        np.savez(folder / "test.npz", x_test=pixels(test))
        command = [program, "train", folder / "train.npz", "--seed", seed, "--runs-dir", folder / "runs"]
        start = ours.clock()
        run([*command, "--name", "run", "--quiet", "--no-report", *given])
        seconds = ours.clock() - start
        answers = folder / "answers.csv"
        run([program, "predict", folder / "runs" / "0001-run", folder / "test.npz", "-o", answers])
        with open(answers) as file:
            rows = list(csv.DictReader(file))
        chosen = json.loads((folder / "runs" / "0001-run" / "run.json").read_text())["reasons"]
    probabilities = np.array([[float(row[f"p_{c}"]) for c in range(CLASSES)] for row in rows])
    return probabilities, seconds, dict(given=" ".join(given), chosen=chosen)


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(str(c) for c in command)}\n{done.stderr}")


CONTESTANTS = {
    "svm": contestants.svm,
    "network": contestants.network,
    "network-tuned": contestants.network_tuned,
    "convgp": convgp,
}


def key(record):
    """What a record is about; records are kept in this order."""
    order = [list(SHAPES).index(record["data_set"]), record["size"], record["seed"]]
    return (*order, list(CONTESTANTS).index(record["contestant"])) if "contestant" in record else tuple(order)


def merge(path, record):
    """Adds a record to a file in the place of one that is about the same; all records."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    records = {key(r): r for r in [*map(json.loads, lines), record]}
    records = [records[k] for k in sorted(records)]
    if path:
        ours.write_jsonl(path, records)
    return records


def table(records):
    yield "| data | images | contestant | seeds | error % | NLPP | ECE | seconds | processor's |\n|" + "---|" * 9
    about = lambda r: (r["data_set"], r["size"], r["contestant"])
    for which in dict.fromkeys(about(r) for r in sorted(records, key=lambda r: (key(r)[:2], key(r)[3]))):
        of = [r for r in records if about(r) == which]
        mean = {k: np.mean([r.get(k, np.nan) for r in of]) for k in ("error", "nlpp", "ece", "seconds", "cpu_seconds")}
        cells = f"{100 * mean['error']:.2f} | {mean['nlpp']:.3f} | {mean['ece']:.3f}"
        cells += f" | {mean['seconds']:.1f} | {mean['cpu_seconds']:.1f}"
        yield f"| {' | '.join(str(w) for w in which)} | {len(of)} | {cells} |"


def arguments():
    numbers = lambda text: [int(t) for t in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("CONVGP_DATA"), help="folder with mnist/ and cifar10/")
    parser.add_argument("--data-set", choices=list(SHAPES), default="mnist")
    parser.add_argument("--sizes", type=numbers, default=[100, 300, 1000, 5000])
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    parser.add_argument("--contestants", type=lambda t: t.split(","), default=list(CONTESTANTS))
    parser.add_argument("--time", help="training time of convgp, for models that are trained in steps (default: none)")
    parser.add_argument("--held-out", action="store_true", help="judge on training images kept apart, not on the test set")
    parser.add_argument("--settings", type=str.split, default=[], help="of `convgp train`, as one word: --settings='-m 256'")
    parser.add_argument("--updates", type=int, help="of the networks (default: each one's own)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the networks")
    parser.add_argument("--resume", action="store_true", help="leave out what has been recorded")
    parser.add_argument("--program", help="convgp itself (default: built from this repository)")
    parser.add_argument("--out", type=Path, help=f"default: {OUT.relative_to(ROOT)}, nothing with --held-out")
    options = parser.parse_args()
    unknown = [c for c in options.contestants if c not in CONTESTANTS]
    if unknown or not options.data:
        parser.error(f"unknown contestants: {unknown}" if unknown else "--data or $CONVGP_DATA is needed")
    wrong = [size for size in options.sizes if size % CLASSES]
    if wrong:
        parser.error(f"sizes must be multiples of {CLASSES}, not {wrong}")
    options.out = options.out or (None if options.held_out else OUT)
    options.given = [*(["--time", options.time] if options.time else []), *options.settings]
    return options


def main():
    options = arguments()
    images, labels, test, test_labels = settings.whole(options.data_set, options.data)
    if options.held_out:
        images, labels, test, test_labels = without_test(images, labels)
    program = options.program or ("convgp" in options.contestants and ours.build_convgp())
    there = options.out and options.out.exists() and options.resume
    done = {key(json.loads(line)) for line in options.out.read_text().splitlines()} if there else set()
    torch.set_num_threads(options.threads)
    updates = dict(updates=options.updates) if options.updates else {}
    records = []
    for size, seed, name in [(n, s, c) for n in options.sizes for s in options.seeds for c in options.contestants]:
        about = dict(data_set=options.data_set, size=size, seed=seed)
        if key(dict(about, contestant=name)) in done:
            continue
        chosen = draw(labels, size, seed)
        if options.out:
            merge(options.out.with_name(options.out.stem + "-indices.jsonl"), dict(about, indices=chosen.tolist()))
        probabilities, seconds, how = CONTESTANTS[name](
            images[chosen], labels[chosen], test, shape=SHAPES[options.data_set], seed=seed, program=program,
            given=options.given, **updates,
        )
        record = dict(about, contestant=name, seconds=seconds[0], cpu_seconds=seconds[1], **how)
        records.append({**record, **ours.figures(probabilities, test_labels)})
        merge(options.out, records[-1])
        print(*list(table(records[-1:]))[1:], sep="\n", flush=True)
    print(ours.provenance("scikit-learn", "torch"), *table(records), sep="\n")


if __name__ == "__main__":
    main()
