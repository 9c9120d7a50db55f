#!/usr/bin/env python3
"""usage: m4_hourly.py KIZZASI FOLDER [--choose] [OPTION OF TRAIN...]

One global model for the hourly series of the M4 competition: Hourly-train.csv and Hourly-test.csv of FOLDER, 48 hours ahead of each series'
end. Prints the mean MASE (season 24) and sMAPE over the series, beside the seasonal naive method.

--choose: to choose options by. The last 48 hours of Hourly-train.csv stand for the test part, which is not read, and nothing after them is seen.
"""

import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

HORIZON, SEASON, MOST = 48, 24, 0.80  # MOST: the mean MASE that ours may have
# Chosen with --choose. No linear short-cut: what is linear differs from series to series, and the network reads it from the window. Errors count in
# units of each series' own seasonal change, since series that repeat themselves well have small errors beside their swing and the same MASE.
OPTIONS = ["--preset", "forecast", "--parts", "backbone", "--context", "336", "--recent", "336", "--patch", "24", "--horizon", str(HORIZON), "--season",
           "24", "--seasons", "14", "--window-norm", "mean_std", "--scaling", "robust", "--head", "point", "--loss", "l1", "--loss-unit", "seasonal",
           "--d-model", "64", "--d-decoder", "128", "--steps", "3000", "--batch", "64", "--learning-rate", "0.003", "--schedule", "cosine", "--ema",
           "0.995", "--patience", "0", "--train-share", "0.93", "--validation-share", "0.07", "--validate-every", "500", "--validation-windows", "2000",
           "--calibration-windows", "0", "--seed", "1"]


def read(path):
    return {row[0]: [float(cell) for cell in row[1:] if cell] for row in list(csv.reader(path.open()))[1:]}


def mase(history, truth, forecast):
    scale = statistics.mean(abs(a - b) for a, b in zip(history[SEASON:], history))
    return statistics.mean(abs(a - b) for a, b in zip(truth, forecast)) / scale


def smape(truth, forecast):
    return 200 * statistics.mean(abs(a - b) / (abs(a) + abs(b)) if a or b else 0 for a, b in zip(truth, forecast))


def run(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def main():
    kizzasi, folder = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    choose, words = "--choose" in sys.argv[3:], [word for word in sys.argv[3:] if word != "--choose"]
    train = read(folder / "Hourly-train.csv")
    if choose:
        test = {name: values[-HORIZON:] for name, values in train.items()}
        train = {name: values[:-HORIZON] for name, values in train.items()}
    else:
        test = read(folder / "Hourly-test.csv")
    with tempfile.TemporaryDirectory() as scratch:
        with open(f"{scratch}/hourly.csv", "w") as out:
            out.write("id,value\n")
            for name, values in train.items():
                out.writelines(f"{name},{value}\n" for value in values)
        columns = ["--id-column", "id", "--time-column", "none"]
        own = {word for word in words if word.startswith("--")}  # takes the place of the option here
        options = [word for at, word in enumerate(OPTIONS) if word not in own and (at == 0 or OPTIONS[at - 1] not in own)]
        run([kizzasi, "train", "hourly.csv", "-o", "m.kizzasi", *columns, *options, *words, "--quiet"], scratch)
        answer = json.loads(run([kizzasi, "forecast", "m.kizzasi", "hourly.csv", *columns, "--json", "--quiet"], scratch))
    ours = {}
    for step in answer["steps"]:
        ours.setdefault(step["unique_id"], []).append(step["values"]["value"])
    if sorted(ours) != sorted(test) or any(len(values) != HORIZON or not all(map(math.isfinite, values)) for values in ours.values()):
        sys.exit("not every series has a forecast of 48 finite values")
    naive = {name: (values[-SEASON:] * 2) for name, values in train.items()}
    scores = {}
    for label, forecasts in (("ours", ours), ("seasonal naive", naive)):
        scores[label] = statistics.mean(mase(train[name], test[name], forecasts[name]) for name in test)
        print(f"{label:>14}: MASE {scores[label]:.3f}, sMAPE {statistics.mean(smape(test[name], forecasts[name]) for name in test):.2f}, {len(test)} series")
    if not choose and scores["ours"] > MOST:
        sys.exit(f"the mean MASE is above {MOST}")


main()
