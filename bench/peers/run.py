#!/usr/bin/env python3
"""convgp next to GPflow and PyTorch, in turn, on this machine: seconds per training step, memory, predictions.

    python3 bench/peers/run.py --configs R,M1 --data DIR

Installs the peers (requirements.txt) in .venv-peers at the first run. Every measurement is a process of its own;
contenders take turns for --rounds rounds, so that what disturbs the machine hits all of them, and the steps of all
rounds are put together. Writes docs/results/peers.md and, run by run, docs/results/peers.jsonl.
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CONFIGS = ["R", "M1s", "M1", "RBF", "C1", "C1cp", "CMC"]
NOT_IN_GPFLOW = ["C1cp", "CMC"]
PEERS = {
    "gpflow": ("GPflow, default (f64)", ["gpflow_peer.py"]),
    "gpflow-best": ("GPflow, best setting (f32, XLA)", ["gpflow_peer.py", "--best"]),
    "torch": ("PyTorch by hand", ["torch_peer.py"]),
}
# The C library keeps freed memory instead of returning it: spares large temporaries new page faults.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(10**11), "MALLOC_TOP_PAD_": str(2**28)}


def peers_python(folder):
    """The interpreter of the virtual environment, made and filled if need be."""
    python = folder / "bin" / "python"
    done = folder / "installed.txt"
    wanted = (HERE / "requirements.txt").read_text()
    if not done.exists() or done.read_text() != wanted:
        if not python.exists():
            venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True)
        done.write_text(wanted)
    return python


def build_xtask():
    """The program behind `cargo xtask`, built once so that all rounds run the same one."""
    command = ["cargo", "build", "--release", "--package", "xtask", "--message-format", "json"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    built = [json.loads(line) for line in lines]
    return next(b["executable"] for b in built if b.get("executable") and b["target"]["name"] == "xtask")


def last_json(command, environment=None, every=False):
    """The JSON lines a command prints; None when it fails, with the reason on stderr."""
    command, environment = [str(c) for c in command], {**os.environ, **(environment or {})}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode != 0 or not lines:
        print(f"failed: {' '.join(command)}\n{run.stderr[-2000:]}", file=sys.stderr)
        return [] if every else None
    return lines if every else lines[-1]


class Bench:
    def __init__(self, options):
        self.options = options
        self.python = peers_python(ROOT / ".venv-peers")
        self.program = build_xtask()
        self.raw = []  # every run
        self.versions = {}

    def xtask(self, *arguments):
        command = [self.program, "bench", "--json", *arguments]
        if self.options.data:
            command += ["--data", self.options.data]
        return last_json(command, every=True)

    def ours(self, config, mode, images):
        steps = str(max(self.options.steps, 15))
        lines = self.xtask("--config", config, "--mode", mode, "--images", images, "--steps", steps, "--each")
        for line in (line for line in lines if line.get("section") == "steps"):
            line["seconds"] = [float(s) for s in line["seconds"].split()]
            self.keep(config, f"convgp {mode}, {images}", line)

    def peer(self, config, peer, tuned=False, predict=False):
        if peer.startswith("gpflow") and config in NOT_IN_GPFLOW:
            return
        name, (script, *flags) = PEERS[peer]
        command = [self.python, HERE / script, "--config", config, "--steps", self.options.steps, *flags]
        command += ["--data", self.options.data] if self.options.data else []
        command += ["--predict"] if predict else []
        record = last_json(command, KEEP_MEMORY if tuned else None)
        if record:
            self.versions[peer] = record.pop("versions")
            self.keep(config, name + (", tuned malloc" if tuned else ""), record)

    def keep(self, config, contender, record):
        self.raw.append({**record, "config": config, "contender": contender})
        print(f"{config:5} {contender:48} {statistics.median(record['seconds']):8.4f} s", file=sys.stderr, flush=True)

    def run(self):
        images = ["real", "random"] if self.options.data else ["random"]
        for config in self.options.configs:
            for turn in range(self.options.rounds):
                for kind in images:
                    for mode in ("adam", "natural"):
                        self.ours(config, mode, kind)
                for peer in self.options.peers:
                    # Predictions come after the steps, in the same process.
                    self.peer(config, peer, predict=self.options.predict and config == "M1")
                    if self.options.malloc and peer == "torch":
                        self.peer(config, peer, tuned=True, predict=self.options.predict and config == "M1")
                if self.options.predict and config == "M1":
                    self.predict(images[0])

    def predict(self, images):
        lines = self.xtask("--sections", "predict", "--images", images)
        for line in (line for line in lines if line.get("section") == "prediction" and line["threads"] == 2):
            seconds = [line["count"] / line["images_per_s"]]
            self.raw.append(dict(config="M1", contender="convgp", predict_seconds=seconds, predict_count=line["count"]))

    def contenders(self, key):
        return list(dict.fromkeys(r["contender"] for r in self.raw if key in r))

    def runs(self, config, contender, key):
        return [r for r in self.raw if r["config"] == config and r["contender"] == contender and key in r]

    def seconds(self, config, contender):
        return [s for r in self.runs(config, contender, "seconds") for s in r["seconds"]]

    def report(self):
        configs = [c for c in self.options.configs if any(r["config"] == c for r in self.raw)]
        return "\n".join([*self.preamble(), *self.step_table(configs), *self.ratio_table(configs), *self.predictions()])

    def preamble(self):
        cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "unknown")
        commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
        yield "# convgp and its peers, measured in one run\n"
        yield f"{cpu}, {os.cpu_count()} cores; {datetime.date.today()}; convgp {commit.stdout.strip()};"
        yield f"Python {platform.python_version()}, {', '.join(sorted(set(self.versions.values())))}.\n"
        yield f"`{' '.join(['python3 bench/peers/run.py', *self.shown_arguments()])}`: contenders in turn,"
        yield f"{self.options.rounds} rounds, every measurement a process of its own, two steps of warm-up each.\n"
        yield "A step is everything: covariances, bound, gradients of all parameters (inducing inputs and weights of patches"
        yield "included), and the optimiser's update. `convgp adam` moves everything with Adam as the peers do; `convgp natural`"
        yield "takes natural steps for q. `real`: MNIST, CIFAR-10, rectangles, where equal patches are merged; `random`: random"
        yield "bytes without equal patches. The peers treat all images alike, and were run on the first kind that was there."
        yield "convgp: f32 tiles, f64 elsewhere, relative jitter 1e-4. GPflow: jitter 1e-6 in f64, 1e-4 in f32; its best setting"
        yield "is XLA, except for RBF, where XLA is slower. PyTorch: our own backward passes over half of the pairs of patches,"
        yield "f32 patches and q, f64 Kuu. Peak memory is that of the whole process."
        if self.options.malloc:
            values = " ".join(f"{k}={v}" for k, v in KEEP_MEMORY.items())
            yield f"`tuned malloc`: with `{values}`."

    def shown_arguments(self):
        """The command line without this machine's folders."""
        arguments = sys.argv[1:]
        folders = {"--data": "DIR", "--out": "FILE"}
        return [folders.get(before, a) for before, a in zip(["", *arguments], arguments)]

    def step_table(self, configs):
        yield "\n## Seconds per step\n"
        yield "| config | contender | median s | min s | max s | n | first step s | peak MB | other CPU % |\n|" + "---|" * 9
        for config in configs:
            for contender in self.contenders("seconds"):
                runs, seconds = self.runs(config, contender, "seconds"), self.seconds(config, contender)
                if not runs:
                    continue
                first = min(r.get("first", r.get("first_s")) for r in runs)
                cells = [statistics.median(seconds), min(seconds), max(seconds)]
                peak, others = max(r["peak_MB"] for r in runs), max(r["other_cpu_percent"] for r in runs)
                cells = [f"{c:.3g}" for c in cells] + [str(len(seconds)), f"{first:.3g}", f"{peak:.0f}", f"{others:.0f}"]
                yield f"| {config} | {contender} | {' | '.join(cells)} |"

    def ratio_table(self, configs):
        ours = [c for c in self.contenders("seconds") if c.startswith("convgp")]
        theirs = [c for c in self.contenders("seconds") if not c.startswith("convgp")]
        yield "\n## Times faster than a peer (ratio of medians)\n"
        yield f"| config | peer | {' | '.join(ours)} |\n|---|---|{'---|' * len(ours)}"
        for config in configs:
            for peer in theirs:
                if self.seconds(config, peer):
                    slow = statistics.median(self.seconds(config, peer))
                    fast = [self.seconds(config, c) for c in ours]
                    cells = [f"{slow / statistics.median(s):.1f}" if s else "" for s in fast]
                    yield f"| {config} | {peer} | {' | '.join(cells)} |"

    def predictions(self):
        if self.options.predict:
            yield "\n## Predictions, M1: class probabilities of images per second\n"
            yield "GPflow with its cached posterior; peers in batches of 100, convgp all at once. Best run of each.\n"
            yield "| contender | images per second |\n|---|---|"
            for contender in self.contenders("predict_seconds"):
                runs = self.runs("M1", contender, "predict_seconds")
                best = max(r["predict_count"] / min(r["predict_seconds"]) for r in runs)
                yield f"| {contender} | {best:.0f} |"


def main():
    chosen = lambda known: lambda text: [c if c in known else sys.exit(f"unknown: {c}") for c in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", type=chosen(CONFIGS), default=CONFIGS, help=",".join(CONFIGS))
    parser.add_argument("--peers", type=chosen(PEERS), default=list(PEERS), help=",".join(PEERS))
    parser.add_argument("--steps", type=int, default=5, help="timed steps of a peer per round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", help="folder with mnist/, cifar10/ and rectangles/; random bytes without it")
    parser.add_argument("--predict", action="store_true", help="also predictions of the M1 model (with config M1)")
    parser.add_argument("--malloc", action="store_true", help="also PyTorch with a tuned C allocator")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "peers.md")
    options = parser.parse_args()
    options.data = options.data or os.environ.get("CONVGP_DATA")
    bench = Bench(options)
    try:
        bench.run()
    finally:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(bench.report() + "\n")
        with open(options.out.with_suffix(".jsonl"), "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in bench.raw)


if __name__ == "__main__":
    main()
