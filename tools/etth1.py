#!/usr/bin/env python3
"""usage: etth1.py KIZZASI ETTh1.csv [HORIZON...]

The table of ETTh1 under the standard protocol: first 12 months of 30 days train, the next 4 validate, the next 4 test; every test window;
mean squared error of values scaled with the training rows, over windows, steps and channels. Beside it ridge NLinear, from the same run.
"""

import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

TRAIN, VALIDATE, TEST = 8640, 2880, 2880
CONTEXT = 512  # rows that our model sees
RIDGE = ["--methods", "ridge", "--ridge-pooled", "--lookback", "336", "--lambda", "1000"]
PUBLISHED = {96: 0.370, 192: 0.403, 336: 0.426, 720: 0.422}  # ridge NLinear, 336 inputs, no intercept
MOST = 0.405  # mean error that ours may have


def run(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def scaled_mse(method, channels, deviations):
    """Mean over channels of each channel's squared error in units of its training deviation."""
    rmse = {row["channel"]: row["rmse"] for row in method["channels"]}
    return statistics.mean(rmse[name] ** 2 / deviations[name] ** 2 for name in channels)


def main():
    kizzasi, source = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    horizons = [int(word) for word in sys.argv[3:]] or sorted(PUBLISHED)
    rows = list(csv.reader(source.open()))[: 1 + TRAIN + VALIDATE + TEST]
    channels = rows[0][1:]
    deviations = {name: statistics.pstdev(float(row[1 + i]) for row in rows[1 : 1 + TRAIN]) for i, name in enumerate(channels)}
    print(f"{'horizon':>8} {'Kizzasi':>9} {'short-cut':>9} {'ridge':>9} {'ridge, published':>17}")
    sums = [0.0, 0.0, 0.0]
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/etth1.csv", "w") as out:
            out.writelines(",".join(row) + "\n" for row in rows)
        # Answers of the test part begin right after validation; their inputs reach back before it.
        for horizon in horizons:
            errors = []
            for parts in ("both", "shortcut"):
                run([kizzasi, "train", "etth1.csv", "-o", "m.kizzasi", "--preset", "forecast", "--channel-mode", "independent", "--context",
                     str(CONTEXT), "--recent", str(CONTEXT), "--patch", "16", "--horizon", str(horizon), "--window-norm", "last",
                     "--no-intercept", "--head", "point", "--loss", "l2", "--parts", parts, "--steps", "400", "--learning-rate", "0.0005",
                     "--train-share", "0.6", "--validation-share", "0.2", "--calibration-windows", "0", "--quiet"], folder)
                answer = json.loads(run([kizzasi, "backtest", "m.kizzasi", "etth1.csv", "--horizon", str(horizon), "--stride", "1",
                                         "--split", "60,20", "--season", "24", *RIDGE, "--json", "--quiet"], folder))
                errors.append(scaled_mse(answer["methods"][0], channels, deviations))
            ridge = next(m for m in answer["methods"] if m["name"].startswith("ridge"))
            errors.append(scaled_mse(ridge, channels, deviations))
            print(f"{horizon:>8} {errors[0]:>9.4f} {errors[1]:>9.4f} {errors[2]:>9.4f} {PUBLISHED.get(horizon, float('nan')):>17.3f}", flush=True)
            sums = [total + error for total, error in zip(sums, errors)]
    means = [total / len(horizons) for total in sums]
    print(f"{'mean':>8} {means[0]:>9.4f} {means[1]:>9.4f} {means[2]:>9.4f}")
    if len(horizons) == len(PUBLISHED) and not means[0] <= MOST:
        sys.exit(f"the mean is above {MOST}")


main()
