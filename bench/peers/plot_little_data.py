#!/usr/bin/env python3
"""Draws docs/results/images/little-data.svg from docs/results/little-data.jsonl: error and NLPP against images.

    python3 bench/peers/plot_little_data.py

Means over seeds, logarithmic axes. Needs nothing but Python.
"""
import argparse
import json
import math
from pathlib import Path

from run import ROOT

RESULTS = ROOT / "docs" / "results"
WIDTH, HEIGHT = 380, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 40, 48  # its margins
INK, MUTED, GRID = "#1f2328", "#656d76", "#d8dee4"
LINES = {  # contestant: name, colour
    "convgp": ("convgp", "#2f7ed8"),
    "network-tuned": ("tuned network", "#2d9d6a"),
    "network": ("small network", "#e06c2c"),
}
NAMES = dict(mnist="MNIST", cifar10="CIFAR-10")


def mean_curve(records, contestant, figure):
    """Sizes and means over seeds."""
    sizes = sorted({r["size"] for r in records if r["contestant"] == contestant})
    values = lambda size: [r[figure] for r in records if (r["size"], r["contestant"]) == (size, contestant)]
    return [(size, sum(values(size)) / len(values(size))) for size in sizes]


def axis(values, start, end):
    """From a number to its place on a logarithmic axis that holds all values and a little more."""
    low, high = math.log(min(values)), math.log(max(values))
    pad = 0.06 * max(high - low, 0.1)
    return lambda v: start + (math.log(v) - low + pad) / (high - low + 2 * pad) * (end - start)


def ticks(values):
    """1, 2 and 5 times powers of ten among the values."""
    low, high = min(values), max(values)
    round_numbers = [f * 10.0**d for d in range(-4, 6) for f in (1, 2, 5)]
    return [v for v in round_numbers if low <= v <= high]


def text(x, y, words, colour=MUTED, anchor="middle", size=12):
    halo = "stroke='white' stroke-width='4' paint-order='stroke'"  # keeps lines off the words
    place = f"x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'"
    return f"<text {place} fill='{colour}' font-size='{size}' {halo}>{words}</text>"


def panel(title, labels, curves, unit):
    """One set of axes; `curves` by contestant."""
    points = [point for curve in curves.values() for point in curve]
    xs, ys = sorted({p[0] for p in points}), [p[1] for p in points]
    x, y = axis(xs, LEFT, WIDTH - RIGHT), axis(ys, HEIGHT - BOTTOM, TOP)
    yield text(LEFT, 22, title, INK, "start", 14)
    for value in ticks(ys):
        yield f"<path d='M{LEFT} {y(value):.1f} H{WIDTH - RIGHT}' stroke='{GRID}'/>"
        yield text(LEFT - 6, y(value) + 4, f"{value:g}{unit}", anchor="end")
    yield f"<path d='M{LEFT} {HEIGHT - BOTTOM} H{WIDTH - RIGHT}' stroke='{MUTED}'/>"
    for value in xs:
        yield text(x(value), HEIGHT - BOTTOM + 17, f"{value:,}")
    yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, labels)
    for i, (contestant, curve) in enumerate(curves.items()):
        name, colour = LINES[contestant]
        places = [(x(size), y(value)) for size, value in curve]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        yield f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='2'/>"
        yield "".join(f"<circle cx='{a:.1f}' cy='{b:.1f}' r='3.5' fill='{colour}'/>" for a, b in places)
        yield text(WIDTH - RIGHT, TOP + 12 + 17 * i, name, colour, "end", 13)


def svg(records, data):
    curves = lambda figure, factor: {
        c: [(size, factor * value) for size, value in mean_curve(records, c, figure)]
        for c in LINES if any(r["contestant"] == c for r in records)
    }
    panels = [
        panel(f"{data}: error", "labelled images", curves("error", 100), " %"),
        panel(f"{data}: NLPP", "labelled images", curves("nlpp", 1), ""),
    ]
    yield f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {2 * WIDTH} {HEIGHT}' font-family='sans-serif'>"
    yield "<rect width='100%' height='100%' fill='white'/>"
    for i, parts in enumerate(panels):
        yield "\n".join([f"<g transform='translate({i * WIDTH},0)'>", *parts, "</g>"])
    yield "</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-set", choices=list(NAMES), default="mnist")
    parser.add_argument("--records", type=Path, default=RESULTS / "little-data.jsonl")
    parser.add_argument("--out", type=Path, default=RESULTS / "images" / "little-data.svg")
    options = parser.parse_args()
    records = [json.loads(line) for line in options.records.read_text().splitlines()]
    records = [r for r in records if r["data_set"] == options.data_set and r["contestant"] in LINES]
    if not records:
        parser.error(f"{options.records} has nothing on {options.data_set}")
    options.out.write_text("\n".join(svg(records, NAMES[options.data_set])))


if __name__ == "__main__":
    main()
