"""What predicting from Python costs over predicting from Rust: the same model, the same 10,000 images, rounds in turn.

    cargo build --release -p convgp-data --example predict_time
    pip install . && python3 python/bench/predict.py
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import convgp

PROGRAM = Path(__file__).parents[2] / "target/release/examples/predict_time"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--model", default="weighted")
    options.add_argument("--program", type=Path, default=PROGRAM)
    options = options.parse_args()
    X, y = convgp.rectangles(1200, seed=0)
    model = convgp.ConvGPClassifier(options.model, steps=5, random_state=0).fit(X, y)
    X, _ = convgp.rectangles(options.count, seed=1)
    rust, python = [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        model.save(file)
        command = [str(options.program), str(file), str(options.count), "2"]
        for _ in range(options.rounds):
            # The first of two rounds warms up, on either side.
            rust.append(float(subprocess.run(command, check=True, capture_output=True).stdout.split()[1]))
            model.predict_proba(X[:1000])
            started = time.perf_counter()
            model.predict_proba(X)
            python.append(time.perf_counter() - started)
    best = min(python) / min(rust)
    print(f"{options.model}, {options.count} images, {options.rounds} rounds in turn")
    print(f"Rust    {min(rust):.3f} s at best, {statistics.median(rust):.3f} s in the middle")
    print(f"Python  {min(python):.3f} s at best, {statistics.median(python):.3f} s in the middle")
    print(f"ratio   {best:.3f} at best, {statistics.median(python) / statistics.median(rust):.3f} in the middle")


if __name__ == "__main__":
    main()
