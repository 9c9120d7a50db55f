#!/usr/bin/env python3
"""usage: constrained_training.py KIZZASI [--short]

Does training with a price on broken limits teach a model to keep them? A solar plant is learned with and without the price, from the same data with
the same seeds, under four limits: a floor, darkness at night, a ramp rate, and a temporal formula. Printed for each: the share of checks that
forecasts of the validation part break before anything moves them, how far on average, and the error on rows that neither training nor validation
saw. Exit 1 unless broken checks fall at least 10 times at no more than 2 % more error, as means over the seeds. --short: one seed and fewer steps,
5 times and 5 %.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KIZZASI = pathlib.Path(sys.argv[1]).resolve()
SHORT = "--short" in sys.argv[2:]
SEEDS, STEPS, TIMES, WORSE = ([1], 300, 5, 0.05) if SHORT else ([1, 2, 3, 4, 5], 600, 10, 0.02)
LIMITS = """\
[[constraint]]
name = "floor"
that = "ac_power_w >= -7"

[[constraint]]
name = "night"
that = "hour() >= 22 or hour() < 4 -> ac_power_w <= 20"

[[constraint]]
name = "ramp"
that = "abs(rate(ac_power_w)) <= 2.5"
weight = 5

[[constraint]]
name = "settles"
that = "ac_power_w <= 3 and prev(ac_power_w, 1) > 3 -> always[0,1h] ac_power_w <= 100"
"""
SHAPE = ["--targets", "ac_power_w", "--observed", "air_c,ghi_wm2", "--horizon", "24", "--season", "96", "--steps", str(STEPS)]
PRICE = ["--penalty", "hinge", "--penalty-weight", "2", "--penalty-margin", "0.005"]


def trained(folder, seed, *price):
    command = [KIZZASI, "train", ROOT / "data/bundle/solar_plant_15min.csv", *SHAPE, "--limits", "limits.toml", "--seed", str(seed), "-o", "plant.kizzasi",
               "--json", "--quiet", *price]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    broken = answer["broken_before_projection"]["model"]
    return [broken["share"], broken["mean_size"], answer["mae"], *(part["share"] for part in broken["conditions"])]


def main():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "limits.toml").write_text(LIMITS)
        print(f"{'seed':<6}{'price':<9}{'broken %':>10}{'size, sd':>12}{'MAE, W':>9}   floor %  night %   ramp %  settles %")
        rows = {"without": [], "with": []}
        for seed in SEEDS:
            for name, price in (("without", []), ("with", PRICE)):
                row = trained(folder, seed, *price)
                rows[name].append(row)
                parts = "".join(f"{100 * share:9.3f}" for share in row[3:])
                print(f"{seed:<6}{name:<9}{100 * row[0]:10.3f}{row[1]:12.2e}{row[2]:9.1f} {parts}", flush=True)
    without, paid = ([statistics.mean(column) for column in zip(*rows[name])] for name in ("without", "with"))
    times, size, worse = without[0] / max(paid[0], 1e-12), without[1] / max(paid[1], 1e-15), paid[2] / without[2] - 1
    print(f"broken checks: {times:.1f} times fewer, {size:.1f} times smaller on average; error {100 * worse:+.2f} %")
    return 0 if times >= TIMES and worse <= WORSE else 1


sys.exit(main())
