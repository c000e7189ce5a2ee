"""What the comparisons of trained models share: our program, images in IDX files, figures of merit, the machine."""
import datetime
import gzip
import json
import os
import platform
import struct
import subprocess
import time
from importlib import metadata

import numpy as np

from run import ROOT

BINS = 15  # of equal width, for the calibration error


def build_convgp():
    """The program, built with optimisation."""
    command = ["cargo", "build", "--release", "--package", "convgp-cli", "--message-format", "json"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    built = [json.loads(line) for line in lines]
    return next(b["executable"] for b in built if b.get("executable") and b["target"]["name"] == "convgp")


def clock():
    """Seconds on the clock, and seconds that this process and its finished children had of all processors."""
    return np.array([time.perf_counter(), sum(os.times()[:4])])


def write_idx(path, array):
    """Bytes of any shape as a gzipped IDX file."""
    with gzip.open(path, "wb") as file:
        file.write(struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape))
        file.write(array.astype(np.uint8).tobytes())


def figures(probabilities, labels):
    """Error, NLPP and expected calibration error of class probabilities."""
    confidence, correct = probabilities.max(1), probabilities.argmax(1) == labels
    bins = np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1)
    gaps = [abs((correct[bins == b] - confidence[bins == b]).sum()) for b in range(BINS)]
    likelihood = probabilities[np.arange(len(labels)), labels]
    nlpp = -np.log(np.maximum(likelihood, 1e-300)).mean()
    return dict(error=1 - correct.mean(), nlpp=nlpp, ece=sum(gaps) / len(labels))


def provenance(*packages):
    """Machine, day and versions, for one line above a table."""
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "unknown")
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    versions = [f"Python {platform.python_version()}", *(f"{p} {metadata.version(p)}" for p in packages)]
    machine = f"{cpu}, {os.cpu_count()} cores; {datetime.date.today()}"
    return f"{machine}; convgp {commit.stdout.strip()}; {', '.join(versions)}"


def write_jsonl(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
