#!/usr/bin/env python3
"""usage: worked_examples.py KIZZASI [--write]

The three examples of docs/examples.md: makes the proposals, lets the guard move them, judges both by arithmetic of its own, and draws them. Compares
with the files in docs/examples; --write puts them there instead.
"""

import csv
import io
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOME = ROOT / "docs/examples"
PROGRAM = str(pathlib.Path(sys.argv[1]).resolve()) if len(sys.argv) > 1 else sys.exit(__doc__)
WRITE = "--write" in sys.argv
SLACK = 1e-9  # of this checker's own arithmetic


def noise(state):
    """Numbers of about unit spread, the same on every machine."""
    while True:
        total = 0
        for _ in range(4):
            state = (state * 1103515245 + 12345) % 2**31
            total += state / 2**31 - 0.5
        yield total * math.sqrt(3)


def tank():
    spread = noise(7)
    for i in range(90):
        wish = 5.5 if 15 <= i < 45 else 1.0
        yield {"inflow": round(wish + 0.3 * next(spread), 3), "outflow": round(2.5 + 1.2 * math.sin(i / 9), 3),
               "level": round(2.5 + 2.6 * math.sin(i / 14) + 0.1 * next(spread), 3)}


def arm():
    with open(ROOT / "data/bundle/robot_arm_200hz.csv") as file:
        rows = list(csv.DictReader(file))[::4][:260]
    first = {name: float(rows[0][name]) for name in ("q4", "q6")}
    for row in rows:  # the recorded movement, half as far again
        yield {"elbow": round(first["q4"] + 1.5 * (float(row["q4"]) - first["q4"]), 4), "wrist": round(first["q6"] + 1.5 * (float(row["q6"]) - first["q6"]), 4)}


def heating():
    spread = noise(3)
    for i in range(240):
        night = 3.5 * math.exp(-(((i - 110) / 45) ** 2))
        yield {"room": round(21 - night + 0.05 * next(spread), 3)}


def rates(rows, name, step):
    return [(b[name] - a[name]) / step for a, b in zip(rows, rows[1:])]


def late(rows, when, goal, most):
    """Frames from which `goal` comes too late, of those whose deadline lies inside."""
    return [i for i in range(len(rows) - most) if when(rows[i]) and not any(goal(row) for row in rows[i : i + most + 1])]


def broken_tank(rows):
    bad = [f"level {row['level']}" for row in rows if not 0.5 <= row["level"] <= 4.5]
    bad += [f"{name} {row[name]}" for row in rows for name in ("inflow", "outflow") if not 0 <= row[name] <= 6]
    bad += [f"slew of {name}" for name in ("inflow", "outflow") for rate in rates(rows, name, 1) if abs(rate) > 0.5 + SLACK]
    return bad + ["balance" for rate, row in zip(rates(rows, "level", 1), rows[1:]) if abs(rate - (row["inflow"] - row["outflow"]) / 10) > SLACK]


def broken_arm(rows):
    bad = [f"elbow {row['elbow']}" for row in rows if not -3.07 <= row["elbow"] <= -0.07]
    bad += [f"wrist {row['wrist']}" for row in rows if not -0.01 <= row["wrist"] <= 3.75]
    bad += [f"speed of {name}" for name in ("elbow", "wrist") for rate in rates(rows, name, 0.02) if abs(rate) > 1.5 + SLACK]
    return bad + [f"long reach from row {i}" for i in late(rows, lambda row: row["elbow"] > -1.2, lambda row: row["elbow"] <= -1.4, 20)]


def broken_heating(rows):
    bad = [f"room {row['room']}" for row in rows if not 16 <= row["room"] <= 24]
    bad += ["rate" for rate in rates(rows, "room", 60) if abs(rate) > 0.0025 + SLACK]
    return bad + [f"cold from row {i}" for i in late(rows, lambda row: row["room"] < 19, lambda row: row["room"] >= 20, 45)]


def text_of(rows):
    out = io.StringIO()
    table = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()


def guarded(name, step, *options):
    words = [PROGRAM, "guard", f"{name}.toml", f"{name}.csv", "--step", step, "--quiet", *options]
    done = subprocess.run(words, cwd=HOME, capture_output=True, text=True, check=True)
    return [{key: value if key == "status" else float(value) for key, value in row.items()} for row in csv.DictReader(io.StringIO(done.stdout))]


def picture(before, after, limits):
    """One panel a channel: what was proposed (grey), what was allowed (blue), where the limits are (dashed)."""
    wide, high, left, gap = 640, 150, 70, 34
    names = list(before[0])
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{len(names) * (high + gap)}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for k, name in enumerate(names):
        values = [row[name] for rows in (before, after) for row in rows] + list(limits.get(name, ()))
        low, span = min(values), max(max(values) - min(values), 1e-9)
        top = k * (high + gap) + 22

        def place(i, value):
            return f"{left + (wide - left - 20) * i / (len(before) - 1):.1f},{top + high * (1 - (value - low) / span):.1f}"

        out.append(f'<text x="{left}" y="{top - 7}">{name}</text>')
        for value in (low, low + span):
            out.append(f'<text x="{left - 6}" y="{place(0, value).split(",")[1]}" text-anchor="end" fill="#666">{value:.4g}</text>')
        for value in limits.get(name, ()):
            a, b = place(0, value).split(","), place(len(before) - 1, value).split(",")
            out.append(f'<line x1="{a[0]}" y1="{a[1]}" x2="{b[0]}" y2="{b[1]}" stroke="#c33" stroke-dasharray="5 4"/>')
        for rows, colour, width in ((before, "#999", 1), (after, "#1f5fbf", 1.8)):
            line = " ".join(place(i, row[name]) for i, row in enumerate(rows))
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
    return "\n".join([*out, "</svg>", ""])


EXAMPLES = {  # proposals, judge, step, options of the guard, limits to draw
    "tank": (tank, broken_tank, "1s", ["--whole"], {"level": (0.5, 4.5), "inflow": (0, 6), "outflow": (0, 6)}),
    "arm": (arm, broken_arm, "20ms", [], {"elbow": (-1.2, -1.4), "wrist": (-0.01,)}),
    "heating": (heating, broken_heating, "1min", [], {"room": (19, 20)}),
}

faults = []
for name, (propose, judge, step, options, limits) in EXAMPLES.items():
    before = list(propose())
    files = {f"{name}.csv": text_of(before)}
    if WRITE:
        (HOME / f"{name}.csv").write_text(files[f"{name}.csv"])
    after = guarded(name, step, *options)
    infeasible = sum(row.pop("status") in ("infeasible", "rejected") for row in after)
    files[f"{name}.svg"] = picture(before, after, limits)
    bad, still = judge(before), judge(after)
    print(f"{name}: {len(before)} frames, {len(bad)} rules broken before, {len(still)} after, {infeasible} frames infeasible")
    if not bad or still or infeasible:
        faults.append(f"{name}: {still[:5]}")
    for file, text in files.items():
        if WRITE:
            (HOME / file).write_text(text)
        elif not (HOME / file).exists() or (HOME / file).read_text() != text:
            faults.append(f"docs/examples/{file} is not what is made now: run tools/worked_examples.py {PROGRAM} --write and look at it")
sys.exit("\n".join(faults) or 0)
