#!/usr/bin/env python3
"""usage: learning.py KIZZASI [--architectures A,B,...] [--out docs/backbones_learning.md]

Does every backbone learn? Each is trained on five series: a sensor, an electrocardiogram, a voice, the Mackey-Glass equation and Lorenz' system; and
judged on the last fifth beside its own linear short-cut and beside a copy of itself that was trained on the same rows in random order of time. One
table: error, parameters, time of training and of a step. A second one: how long forecasts of some of them stay with Lorenz' system when their own
steps are fed back. Results are kept in build/evidence/learning.json as they come; begun again, it goes on.
"""

import argparse
import csv
import json
import math
import pathlib
import random
import resource
import statistics
import struct
import sys
import tempfile
import wave

from backbone_tables import Kept, architectures, run

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "build/evidence/learning.json"
STEPS = ["--steps", "400", "--learning-rate", "0.002"]
SHAPE = ["--d-model", "32", "--n-layers", "2", "--recent", "16", "--context", "64", "--head", "point", "--loss", "l1", "--calibration-windows", "0",
         "--train-share", "0.6", "--validation-share", "0.2"]
VOICE_ROWS, HEART_ROWS = 48000, 24000
COLUMNS = ["--id-column", "id", "--time-column", "none"]


def read_recordings(path, name):
    """One list of rows for each recording of the file."""
    found = {}
    with open(path) as file:
        for row in csv.DictReader(file):
            found.setdefault(row["unique_id"], []).append((float(row[name]),))
    return list(found.values())


def read_voice(path):
    with wave.open(str(path)) as sound:
        data = sound.readframes(sound.getnframes())
    return [value / 32768 for value in struct.unpack(f"<{len(data) // 2}h", data)]


def read_heart(path):
    """Millivolts; every third value, 120 a second, so that a minute and more of a wandering base line is learned from."""
    data = path.read_bytes()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    counts = struct.unpack(f"<{(len(data) - begin) // 2}h", data[begin:])
    return [(count - 1024) / 200 for count in counts[: 3 * HEART_ROWS : 3]]


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
    """Of each its columns, its recordings as lists of rows, and how many steps ahead it is forecast."""
    bundle = ROOT / "data/bundle"
    voice = read_voice(bundle / "audio/arctic_a0007_16k.wav")
    loud = max(range(0, len(voice) - VOICE_ROWS, 1000), key=lambda at: sum(abs(v) for v in voice[at : at + VOICE_ROWS]))
    return {
        "sensor": (["value"], read_recordings(bundle / "watch_imu_50hz.csv", "wx"), 8),
        "ecg": (["value"], [[(v,) for v in read_heart(bundle / "ecg_360hz_counts.npy")]], 8),
        "voice": (["value"], [[(v,) for v in voice[loud : loud + VOICE_ROWS]]], 8),
        "mackey_glass": (["value"], [[(v,) for v in mackey_glass(4000)]], 16),
        "lorenz": (["x", "y", "z"], [lorenz(5000)], 8),
    }


# Free runs of Lorenz' system: 8,000 points 0.025 apart to learn single steps from, 40 starts elsewhere, each followed for 600 steps. A frame is the
# whole state of the system, so a forecast reads FRAMES of them from reset state: what a recurrence gathered in a long run of fed-back frames it
# would not have met in training.
FREE_BACKBONES, STARTS, WARM, AHEAD, FRAMES = ["gru", "mingru", "lru", "s4d", "mamba2", "llama"], 40, 20, 600, 1
STEP, LYAPUNOV, THRESHOLD, LEAST_VALID = 0.025, 0.9056, 0.3, 4.0
FREE = ["--d-model", "64", "--n-layers", "2", "--windowed", "--context", str(FRAMES), "--recent", "1", "--head", "point", "--loss", "l2",
        "--calibration-windows", "0", "--train-share", "0.85", "--validation-share", "0.15", "--steps", "8000", "--batch", "128", "--learning-rate",
        "0.003", "--schedule", "cosine", "--min-learning-rate", "1e-7", "--ema", "0.99", "--patience", "0"]


def valid_times(answer, futures):
    """For each start the Lyapunov times until the error leaves THRESHOLD times the system's spread."""
    rows = [row for future in futures for row in future]
    means = [statistics.fmean(row[c] for row in rows) for c in range(3)]
    spread = math.sqrt(sum(statistics.fmean((row[c] - means[c]) ** 2 for row in rows) for c in range(3)))
    forecasts = {}
    for step in answer["steps"]:
        forecasts.setdefault(step["unique_id"], []).append([step["values"][name] for name in "xyz"])
    times = []
    for number, future in enumerate(futures):
        held = 0
        for truth, forecast in zip(future, forecasts[f"r{number:02d}"]):
            if math.dist(truth, forecast) > THRESHOLD * spread:
                break
            held += 1
        times.append(held * STEP * LYAPUNOV)
    return sorted(times)


def free_runs(kizzasi, backbones, store):
    kept = store.results.setdefault("free runs", {})
    draw = random.Random(3)
    starts = [lorenz(WARM + AHEAD, (draw.uniform(-10, 10), draw.uniform(-10, 10), draw.uniform(15, 35))) for _ in range(STARTS)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        write(folder / "true.csv", list("xyz"), [lorenz(8000)])
        write(folder / "starts.csv", list("xyz"), [rows[:WARM] for rows in starts])
        for architecture in (name for name in FREE_BACKBONES if name in backbones and name not in kept):
            begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            run([kizzasi, "train", "true.csv", "-o", "m.kz", *COLUMNS, "--preset", "custom", "--horizon", "1", *FREE, "--architecture", architecture,
                 "--quiet", "--threads", "1"], folder)
            seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin
            answer = json.loads(run([kizzasi, "forecast", "m.kz", "starts.csv", *COLUMNS, "-h", AHEAD, "--json", "--quiet"], folder))
            times = valid_times(answer, [rows[WARM:] for rows in starts])
            kept[architecture] = {"median": statistics.median(times), "least": times[0], "most": times[-1], "seconds": seconds}
            store.save()
            print(f"Lorenz {architecture}: median {statistics.median(times):.2f}", flush=True)
    return kept


def write(path, names, recordings):
    lines = [",".join(["id", *names])]
    for number, rows in enumerate(recordings):
        lines += [",".join([f"r{number:02d}", *(f"{value:.17g}" for value in row)]) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def judge(kizzasi, folder, model):
    """Error of the test part, as the mean over channels of the error in units of the seasonal naive one's (MASE of season 1)."""
    answer = json.loads(run([kizzasi, "backtest", model, "true.csv", *COLUMNS, "--split", "60,20", "--stride", "5", "--season", "1",
                             "--methods", "naive", "--json", "--quiet"], folder))
    return answer["methods"][0]["mase"]


def train(kizzasi, folder, data, out, horizon, *words):
    """Seconds of its one core."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run([kizzasi, "train", data, "-o", out, *COLUMNS, "--preset", "custom", "--horizon", horizon, *SHAPE, *STEPS, "--quiet",
         "--threads", "1", *words], folder)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin


def measure(kizzasi, name, backbones, store):
    kept = store.results
    names, recordings, horizon = series()[name]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        write(folder / "true.csv", names, recordings)
        # The rows that train and validate in random order; the last ones, never seen, keep theirs.
        mixed = []
        for rows in recordings:
            seen = rows[: len(rows) * 8 // 10]
            random.Random(5).shuffle(seen)
            mixed.append(seen + rows[len(seen) :])
        write(folder / "shuffled.csv", names, mixed)
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

Written by `tools/learning.py`. Each backbone (d_model 32, 2 layers, 400 steps, seed 1) forecasts five signals 8 steps ahead (Mackey-Glass 16): a
gyroscope (four recordings at 50 Hz), an electrocardiogram (200 s at 120 Hz), three seconds of a voice (16 kHz), and two chaotic equations; all with
the same settings, 60 % of the rows to learn from, 20 % to choose. The
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
    text += f"""
## Free runs

Lorenz' system, every step fed back ({STARTS} starts that training never saw): Lyapunov times until the error leaves {THRESHOLD} times the spread of
the system. 8,000 points, {STEP} apart, d_model 64, 2 layers, 8,000 steps; a forecast reads the newest frame alone, which is the whole state. For
comparison: NG-RC, re-run on such data with noise, a median of 4.0 (1.8 to 7.4). {AHEAD * STEP * LYAPUNOV:.1f} is as long as was looked.

"""
    free = kept["free runs"]
    table = [["backbone", "median", "least", "most", "training s"], ["---"] * 5]
    for name in sorted(free, key=lambda name: -free[name]["median"]):
        one = free[name]
        table.append([f"`{name}`", f"{one['median']:.2f}", f"{one['least']:.2f}", f"{one['most']:.2f}", f"{one['seconds']:.0f}"])
    text += "\n".join("| " + " | ".join(row) + " |" for row in table) + "\n"
    return text, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("kizzasi", type=pathlib.Path)
    parser.add_argument("--architectures")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/backbones_learning.md")
    options = parser.parse_args()
    kizzasi = options.kizzasi.resolve()
    store = Kept(KEPT, kizzasi)
    names = options.architectures.split(",") if options.architectures else architectures(kizzasi)
    for name in series():
        measure(kizzasi, name, names, store)
    free = free_runs(kizzasi, names, store)
    best = max(free, key=lambda name: free[name]["median"])
    text, failed = page(names, store.results)
    options.out.write_text(text)
    print(f"{len(names)} backbones on {len(series())} series, {failed} of {len(names) * len(series())} not better")
    print(f"Lorenz: {best} holds for a median of {free[best]['median']:.2f} Lyapunov times (at least {LEAST_VALID})")
    sys.exit(failed > 0 or free[best]["median"] < LEAST_VALID)


if __name__ == "__main__":
    main()
