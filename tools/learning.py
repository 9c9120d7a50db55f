#!/usr/bin/env python3
"""usage: learning.py KIZZASI [--architectures A,B,...] [--out docs/learning.md]

Does every backbone learn? Each is trained on five series: a sensor, an electrocardiogram, a voice, the Mackey-Glass equation and Lorenz' system; and
judged on the last fifth beside its own linear short-cut and beside a copy of itself that was trained on the same rows in random order of time. One
table: error, parameters, time of training and of a step. Results are kept in build/evidence/learning.json as they come; begun again, it goes on.
"""

import argparse
import csv
import json
import pathlib
import random
import struct
import sys
import tempfile
import time
import wave

from backbone_tables import Kept, architectures, run

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "build/evidence/learning.json"
STEPS = ["--steps", "400", "--learning-rate", "0.002"]
SHAPE = ["--d-model", "32", "--n-layers", "2", "--recent", "16", "--context", "64", "--head", "point", "--loss", "l2", "--calibration-windows", "0",
         "--train-share", "0.7", "--validation-share", "0.1"]
MOST_ROWS = 8000


def read_column(path, name, unique_id=None):
    with open(path) as file:
        return [float(row[name]) for row in csv.DictReader(file) if unique_id is None or row["unique_id"] == unique_id]


def read_voice(path):
    with wave.open(str(path)) as sound:
        data = sound.readframes(sound.getnframes())
    return [value / 32768 for value in struct.unpack(f"<{len(data) // 2}h", data)]


def mackey_glass(rows, tau=17.0, h=0.1, every=10):
    """Its delay equation by Runge and Kutta's method of order 4, the delayed value between steps by the mean of its neighbours."""
    delay = round(tau / h)
    x = [1.2] * (delay + 1)

    def slope(now, before):
        return 0.2 * before / (1 + before**10) - 0.1 * now

    while len(x) < delay + 1 + (rows + 200) * every:
        now, first, last = x[-1], x[-1 - delay], x[-delay]
        middle = (first + last) / 2
        k1 = slope(now, first)
        k2 = slope(now + h / 2 * k1, middle)
        k3 = slope(now + h / 2 * k2, middle)
        k4 = slope(now + h * k3, last)
        x.append(now + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return x[delay + 1 + 200 * every :: every][:rows]


def lorenz(rows, start=(1.0, 1.0, 1.0), dt=0.025, skip=400, parts=10):
    def slope(s):
        return 10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]

    def along(s, k, h):
        return tuple(a + h * b for a, b in zip(s, k))

    s, out, h = start, [], dt / parts
    for i in range(skip + rows):
        for _ in range(parts):
            k1 = slope(s)
            k2 = slope(along(s, k1, h / 2))
            k3 = slope(along(s, k2, h / 2))
            k4 = slope(along(s, k3, h))
            s = tuple(a + h / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(s, k1, k2, k3, k4))
        if i >= skip:
            out.append(s)
    return out


def series():
    """Name, columns, rows."""
    bundle = ROOT / "data/bundle"
    voice = read_voice(bundle / "audio/arctic_a0007_16k.wav")
    loud = max(range(0, len(voice) - MOST_ROWS, 1000), key=lambda at: sum(abs(v) for v in voice[at : at + MOST_ROWS]))
    return {
        "sensor": (["value"], [(v,) for v in read_column(bundle / "watch_imu_50hz.csv", "wx", "pen")[:MOST_ROWS]], 8),
        "ecg": (["value"], [(v,) for v in read_column(bundle / "ecg_360hz_10s.csv", "ecg_mv")], 8),
        "voice": (["value"], [(v,) for v in voice[loud : loud + MOST_ROWS]], 8),
        "mackey_glass": (["value"], [(v,) for v in mackey_glass(4000)], 16),
        "lorenz": (["x", "y", "z"], lorenz(5000), 8),
    }


def write(path, names, rows):
    path.write_text(",".join(names) + "\n" + "".join(",".join(f"{value:.17g}" for value in row) + "\n" for row in rows))


def judge(kizzasi, folder, model):
    """Error of the test part, as the mean over channels of the error in units of the seasonal naive one's (MASE of season 1)."""
    answer = json.loads(run([kizzasi, "backtest", model, "true.csv", "--time-column", "none", "--split", "70,10", "--stride", "5", "--season", "1",
                             "--methods", "naive", "--json", "--quiet"], folder))
    return answer["methods"][0]["mase"]


def train(kizzasi, folder, data, out, horizon, *words):
    begin = time.monotonic()
    run([kizzasi, "train", data, "-o", out, "--time-column", "none", "--preset", "custom", "--horizon", horizon, *SHAPE, *STEPS, "--quiet",
         "--threads", "1", *words], folder)
    return time.monotonic() - begin


def measure(kizzasi, name, backbones, store):
    kept = store.results
    names, rows, horizon = series()[name]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        write(folder / "true.csv", names, rows)
        # The rows that train and validate in random order; the last ones, never seen, keep theirs.
        seen = rows[: len(rows) * 8 // 10]
        random.Random(5).shuffle(seen)
        write(folder / "shuffled.csv", names, seen + rows[len(seen) :])
        for architecture in backbones:
            entry = kept.setdefault(name, {}).setdefault(architecture, {})
            if "shuffled" in entry:
                continue
            if "shortcut" not in kept[name]:
                train(kizzasi, folder, "true.csv", "s.kz", horizon, "--parts", "shortcut")
                kept[name]["shortcut"] = judge(kizzasi, folder, "s.kz")
            entry["seconds"] = train(kizzasi, folder, "true.csv", "m.kz", horizon, "--architecture", architecture)
            entry["error"] = judge(kizzasi, folder, "m.kz")
            card = json.loads(run([kizzasi, "inspect", "m.kz", "--json"], folder))
            entry["parameters"] = card["parameters"]
            layers = json.loads(run([kizzasi, "bench", "--model", "m.kz", "--seconds", "0.3", "--json"], folder))
            entry["step_us"] = layers["step_us"]
            train(kizzasi, folder, "shuffled.csv", "r.kz", horizon, "--architecture", architecture)
            entry["shuffled"] = judge(kizzasi, folder, "r.kz")
            store.save()
            better = entry["error"] < kept[name]["shortcut"] and entry["error"] < entry["shuffled"]
            print(f"{'holds ' if better else 'FAILS '} {name} {architecture}: {entry['error']:.4f}, short-cut {kept[name]['shortcut']:.4f}, "
                  f"shuffled {entry['shuffled']:.4f}", flush=True)


def page(backbones, kept):
    names = list(series())
    text = """# What every backbone learns

Written by `tools/learning.py`. Each backbone (d_model 32, 2 layers, 400 steps, seed 1) forecasts five series 8 steps ahead (Mackey-Glass 16). The
number is the mean absolute error of the last fifth divided by that of repeating the last value in training (MASE of season 1). In brackets: the same
network trained on the same rows in random order of time. The first row is the linear short-cut that each has and has to beat.

"""
    head = ["backbone", *names, "parameters", "training s", "step us"]
    rows = [["short-cut alone", *(f"{kept[name]['shortcut']:.4f}" for name in names), "", "", ""]]
    failed = 0
    for architecture in backbones:
        entries = [kept[name][architecture] for name in names]
        row = [f"`{architecture}`"]
        for name, entry in zip(names, entries):
            good = entry["error"] < kept[name]["shortcut"] and entry["error"] < entry["shuffled"]
            failed += not good
            row.append(f"{entry['error']:.4f} ({entry['shuffled']:.2f}){'' if good else ' **not better**'}")
        rows.append([*row, f"{entries[0]['parameters']}", f"{sum(e['seconds'] for e in entries) / len(entries):.1f}", f"{entries[0]['step_us']:.1f}"])
    text += "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"
    return text, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("kizzasi", type=pathlib.Path)
    parser.add_argument("--architectures")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/learning.md")
    options = parser.parse_args()
    kizzasi = options.kizzasi.resolve()
    store = Kept(KEPT, kizzasi)
    names = options.architectures.split(",") if options.architectures else architectures(kizzasi)
    for name in series():
        measure(kizzasi, name, names, store)
    text, failed = page(names, store.results)
    options.out.write_text(text)
    print(f"{len(names)} backbones on {len(series())} series, {failed} of {len(names) * len(series())} not better")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
