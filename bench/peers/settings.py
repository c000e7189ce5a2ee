"""What all contenders share: configurations, images, initial inducing inputs, timing. NumPy only."""
import gzip
import json
import os
import resource
import struct
import time
from pathlib import Path

import numpy as np

# shape: rows, columns, channels. colour: "pooled" (patches of each channel in one set), "through" (patches through all
# channels) or "each" (one response function per channel). M inducing inputs, B images a step, N images in the bound.
CONFIGS = {
    "R": dict(data="rectangles", shape=(28, 28, 1), patch=3, colour="pooled", M=16, B=100, classes=2, N=1200),
    "M1s": dict(data="mnist", shape=(28, 28, 1), patch=5, colour="pooled", M=100, B=100, classes=10, N=60000),
    "M1": dict(data="mnist", shape=(28, 28, 1), patch=5, colour="pooled", M=750, B=200, classes=10, N=60000),
    "RBF": dict(data="mnist", shape=(28, 28, 1), patch=None, colour=None, M=750, B=200, classes=10, N=60000),
    "C1": dict(data="cifar10", shape=(32, 32, 3), patch=5, colour="pooled", M=1000, B=40, classes=10, N=50000),
    "C1cp": dict(data="cifar10", shape=(32, 32, 3), patch=5, colour="through", M=1000, B=40, classes=10, N=50000),
    "CMC": dict(data="cifar10", shape=(32, 32, 3), patch=5, colour="each", M=1000, B=40, classes=10, N=50000),
}
LENGTHSCALE = {"RBF": 5.0}
LEARNING_RATE = 1e-3
IMAGES = 2000  # loaded per run


def latents(config):
    """One latent function for two classes (probit), else one per class (robust-max)."""
    return 1 if config["classes"] == 2 else config["classes"]


def _idx(path):
    with gzip.open(path) as file:
        _, _, _, rank = struct.unpack(">4B", file.read(4))
        sizes = struct.unpack(f">{rank}I", file.read(4 * rank))
        return np.frombuffer(file.read(), np.uint8).reshape(sizes)


def _real(name, folder):
    folder = Path(folder) / name
    if name == "cifar10":
        images, labels = _cifar(folder / "data_batch_1.bin.gz")
        return images[:IMAGES], labels[:IMAGES]
    stem = "rectangles-train" if name == "rectangles" else "train"
    return _idx(folder / f"{stem}-images-idx3-ubyte.gz")[:IMAGES], _idx(folder / f"{stem}-labels-idx1-ubyte.gz")[:IMAGES]


def load(config, folder):
    """Images as (n, rows * columns * channels) in [0, 1], channel fastest, and labels; random bytes without a folder."""
    if folder:
        pixels, labels = _real(config["data"], folder)
    else:
        rng = np.random.default_rng(7)
        pixels = rng.integers(0, 256, (IMAGES, *config["shape"]), dtype=np.uint8)
        labels = rng.integers(0, config["classes"], IMAGES)
    return pixels.reshape(len(pixels), -1) / 255.0, labels.astype(np.int64)


def _cifar(path):
    """Images, channel last, and labels of a file in CIFAR-10's binary format."""
    with gzip.open(path) as file:
        records = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)
    return records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0]


def whole(name, folder):
    """All training images and labels of a data set, then the test images and labels; pixels in [0, 1]."""
    if name == "cifar10":
        train = [_cifar(Path(folder) / name / f"data_batch_{i}.bin.gz") for i in range(1, 6)]
        test = _cifar(Path(folder) / name / "test_batch.bin.gz")
        images, labels = [np.concatenate([part[i] for part in train]) for i in range(2)]
        flat = [p.reshape(len(p), -1) / np.float32(255) for p in (images, test[0])]
        return flat[0], labels.astype(np.int64), flat[1], test[1].astype(np.int64)
    folder, prefix = Path(folder) / name, "rectangles-" if name == "rectangles" else ""
    stems = [f"{prefix}train", f"{prefix}test" if prefix else "t10k"]
    pixels = [_idx(folder / f"{stem}-images-idx3-ubyte.gz") for stem in stems]
    labels = [_idx(folder / f"{stem}-labels-idx1-ubyte.gz").astype(np.int64) for stem in stems]
    flat = [p.reshape(len(p), -1) / 255.0 for p in pixels]
    return flat[0], labels[0], flat[1], labels[1]


def inducing(config, images):
    """Initial inducing inputs: distinct patches at random places, images for RBF, noise for R."""
    rng = np.random.default_rng(1)
    if config["patch"] is None:
        return images[: config["M"]].copy()
    rows, cols, channels = config["shape"]
    side, through = config["patch"], config["colour"] == "through"
    if config["data"] == "rectangles":
        return rng.uniform(size=(config["M"], side * side))
    found = {}
    for _ in range(1000 * config["M"]):
        image = images[rng.integers(len(images))].reshape(rows, cols, channels)
        top, left = rng.integers(rows - side + 1), rng.integers(cols - side + 1)
        patch = image[top : top + side, left : left + side]
        patch = patch.ravel() if through else patch[:, :, rng.integers(channels)].ravel()
        found.setdefault(patch.tobytes(), patch)
        if len(found) == config["M"]:
            return np.array(list(found.values()))
    raise ValueError("too few distinct patches")


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def _busy():
    fields = [int(f) for f in open("/proc/stat").readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def timed(run, count):
    """Seconds of each of `count` calls, and the share of the machine that other processes had meanwhile, per cent."""
    seconds, busy, own, start = [], _busy(), time.process_time(), time.perf_counter()
    for i in range(count):
        before = time.perf_counter()
        run(i)
        seconds.append(time.perf_counter() - before)
    others = _busy() - busy - (time.process_time() - own)
    return seconds, 100 * max(0.0, others) / (time.perf_counter() - start) / os.cpu_count()


def measure(step, predict, options, versions):
    """Steps, then predictions where wanted; prints the record that run.py reads."""
    first, _ = timed(step, 1)
    timed(lambda i: step(1 + i), 1)
    seconds, others = timed(lambda i: step(2 + i), options.steps)
    record = dict(seconds=seconds, first=first[0], other_cpu_percent=others, peak_MB=peak_mb(), versions=versions)
    if options.predict:
        predict()
        runs, _ = timed(lambda _: predict(), 3)
        record["predict_seconds"] = runs
        record["predict_count"] = PREDICT
    print(json.dumps(record), flush=True)


TESTED = {"rectangles": 3000}  # test images at the front that are used along a curve, as in the paper; else all
PREDICT = 1000  # images per prediction run
PREDICT_BATCH = 100


def arguments(parser):
    parser.add_argument("--config", required=True, choices=list(CONFIGS))
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--data", help="folder with mnist/, cifar10/, rectangles/; random bytes without it")
    parser.add_argument("--predict", action="store_true")
    return parser
