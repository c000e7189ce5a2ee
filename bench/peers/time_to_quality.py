#!/usr/bin/env python3
"""Time to quality: rectangles and a small MNIST model, trained by convgp and by GPflow one after the other.

    python3 bench/peers/time_to_quality.py --data DIR

Both see the same training and test images; curves are over seconds of training, without evaluating and compiling. GPflow has
its fastest setting (single precision, XLA) and Adam; convgp runs `convgp reproduce` with our recipe. Asks how long we
take to the peer's best error. Writes docs/results/time-to-quality.jsonl, a curve a line, and prints a table in Markdown.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import environment
from run import ROOT, last_json

environment.enter()

import ours  # noqa: E402

HERE = Path(__file__).resolve().parent
# Our experiment and steps between evaluations; the peer's configuration and Adam's step size (the published one); seconds
# for each.
PROBLEMS = {
    "rectangles": dict(experiment="rectangles-weighted", every=10, config="R", rate=0.01, ours=20, peer=300),
    "mnist-small": dict(experiment="mnist-small", every=200, config="M1s", rate=0.001, ours=120, peer=600),
}


def our_curve(problem, options, program):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "reproduce", problem["experiment"], "--time", f"{problem['ours']}s", "--out", folder]
        command += ["--runs-dir", Path(folder) / "runs", "--seed", options.seed, "--data", options.data]
        command += ["--evaluate-every", problem["every"], "--no-report", "--quiet"]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        with open(Path(folder) / f"{problem['experiment']}-fast-s{options.seed}.csv") as file:
            rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
    return [{k: row[k] for k in ("step", "seconds", "error", "nlpp")} for row in rows]


def peer_curve(problem, options):
    command = [sys.executable, HERE / "gpflow_peer.py", "--best", "--config", problem["config"], "--data", options.data]
    command += ["--curve", problem["peer"], "--evaluations", options.evaluations, "--rate", problem["rate"]]
    return last_json([*command, "--seed", options.seed], every=True)


def seconds_to(curve, error):
    """When a curve first was at or below an error; None if it never was."""
    return next((p["seconds"] for p in curve if p["error"] <= error), None)


def table(records):
    yield "| problem | GPflow's best error | NLPP there | reached after s | convgp as good after s | times faster |"
    yield "|" + "---|" * 6
    for name in dict.fromkeys(r["problem"] for r in records):
        curves = {r["contestant"]: r["curve"] for r in records if r["problem"] == name}
        if not curves.get("gpflow"):
            continue
        best = min(curves["gpflow"], key=lambda p: p["error"])
        reached = seconds_to(curves["convgp"], best["error"])
        ratio = f"{best['seconds'] / reached:.0f}" if reached else ""
        cells = f"{100 * best['error']:.2f} % | {best['nlpp']:.4f} | {best['seconds']:.1f}"
        yield f"| {name} | {cells} | {f'{reached:.2f}' if reached else 'not reached'} | {ratio} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("CONVGP_DATA"), help="folder with mnist/ and rectangles/")
    parser.add_argument("--problems", type=lambda t: t.split(","), default=list(PROBLEMS))
    parser.add_argument("--evaluations", type=int, default=20, help="along the peer's curve")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="for every contestant, instead of each problem's own")
    parser.add_argument("--program", help="convgp itself (default: built from this repository)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "time-to-quality.jsonl")
    options = parser.parse_args()
    unknown = [p for p in options.problems if p not in PROBLEMS]
    if unknown or not options.data:
        parser.error(f"unknown problems: {unknown}" if unknown else "--data or $CONVGP_DATA is needed")
    options.data = Path(options.data).resolve()
    program = options.program or ours.build_convgp()
    records = []
    for name in options.problems:
        problem = dict(PROBLEMS[name])
        if options.seconds:
            problem.update(ours=options.seconds, peer=options.seconds)
        curves = dict(convgp=our_curve(problem, options, program), gpflow=peer_curve(problem, options))
        for contestant, curve in curves.items():
            records.append(dict(problem=name, contestant=contestant, seed=options.seed, **problem, curve=curve))
        ours.write_jsonl(options.out, records)
    print(ours.provenance("gpflow", "tensorflow-cpu"), *table(records), sep="\n")


if __name__ == "__main__":
    main()
