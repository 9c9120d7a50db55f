#!/usr/bin/env python3
"""usage: labelled_events.py KIZZASI [ROUNDS]

Does `detect` find what went wrong, and only that? Events of known kinds are put into the last fifth of recordings of data/bundle, which the
models of data/models never saw: spikes, level shifts, a stuck sensor, a drift, and values that are missing. States the share of events of each
kind that an event of the detector touches, and the share of normal frames above the threshold, beside the wanted share.

A stuck value is only unusual while it should move, a drift only once it is large; missing values are no event, but must not raise alarms. The
traffic has holidays among its normal days, which lift its threshold: there a single frame's spike is not told from one.
"""

import csv
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KIZZASI = str(pathlib.Path(sys.argv[1]).resolve())
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
KINDS = ("spike", "shift", "stuck", "drift", "missing")
RATE = 0.002  # wanted share of normal frames that alarm
# Least shares of events found, in models of such different use: a step's forecast of the arm, a day's of traffic and sun.
LEAST = {"arm": {"spike": 0.75, "shift": 0.75, "drift": 0.75}, "road": {"shift": 0.4, "drift": 0.2}, "plant": {"shift": 0.4, "drift": 0.2}}
MOST_CLEAN = 2 * RATE  # of false alarms in recordings without events
MOST_BETWEEN = 0.01    # and between events, while the model still holds something of the last one


class Recording:
    def __init__(self, model, source, columns, length, keep_out, calibrate):
        self.model, self.columns, self.length = ROOT / f"data/models/{model}.kizzasi", columns, length
        self.name, self.keep_out, self.calibrate = model, keep_out, calibrate
        rows = list(csv.reader((ROOT / f"data/bundle/{source}.csv").open()))
        self.head, self.rows = rows[0], rows[1:]
        self.begin = int(0.8 * len(self.rows))

    def column(self, name):
        return [float(row[self.head.index(name)] or "nan") for row in self.rows]


# The length of an event: half a day of traffic, six hours of sun, a tenth of a second of the arm; and for how many frames it is kept from the
# model: a model that looks a day back meets again what it was shown, one that looks a moment back soon loses an arm that it does not see. What is
# normal traffic changes with the season: it takes most of a year to set the threshold, though the model was trained on part of it.
RECORDINGS = [Recording("road", "road_traffic_hourly", ["vehicles"], 12, 24, "20,80"), Recording("plant", "solar_plant_15min", ["ac_power_w"], 24, 24, "70,80"),
              Recording("arm", "robot_arm_200hz", ["q2", "q4", "q6"], 20, 10, "70,80")]


def changed(kind, values, at, length, size, rng):
    """What stands instead of values[at : at + length]."""
    sign = rng.choice((-1, 1))
    old = values[at:at + length]
    if kind == "spike":
        return [old[0] + 4 * sign * size] + old[1:]
    if kind == "shift":
        return [v + 2 * sign * size for v in old]
    if kind == "stuck":
        return [old[0]] * length
    if kind == "drift":
        return [v + 3 * sign * size * (i + 1) / length for i, v in enumerate(old)]
    return [None] * length


def spoil(recording, path, rng, kinds):
    """Writes the recording with events; returns their (kind, first row, last row)."""
    rows = [list(row) for row in recording.rows]
    events, gap = [], 3 * recording.length
    at = recording.begin + gap
    order = list(kinds) * 100
    while order and at + recording.length + gap < len(rows):
        kind = order.pop(0)
        name = rng.choice(recording.columns)
        column = recording.head.index(name)
        values = recording.column(name)
        length = 1 if kind == "spike" else recording.length
        size = statistics.pstdev(v for v in values[: recording.begin] if v == v)
        for row, value in zip(range(at, at + length), changed(kind, values, at, length, size, rng)):
            rows[row][column] = "" if value is None else f"{value:.6g}"
        events.append((kind, at, at + length - 1))
        at += length + gap + rng.randrange(gap)
    labelled = {row for kind, first, last in events if kind != "missing" for row in range(first, last + 1)}
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(recording.head + ["event"])
        writer.writerows(row + [int(number in labelled)] for number, row in enumerate(rows))
    return events


def detect(recording, path, folder):
    words = [KIZZASI, "detect", str(recording.model), path.name, "--false-alarms", str(RATE), "--keep-out", str(recording.keep_out), "--calibrate", recording.calibrate, "--label", "event", "--json", "-o", "scores.csv", "--quiet"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.args}: exit {done.returncode}\n{done.stderr}"
    answer = json.loads(done.stdout)
    alarms = [row["score"] != "" and float(row["score"]) >= answer["threshold"] for row in csv.DictReader((folder / "scores.csv").open())]
    return answer, alarms


def main():
    found = {kind: [0, 0] for kind in KINDS}
    normal = alarmed = clean_frames = clean_alarms = 0
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for recording in RECORDINGS:
            mine = {kind: [0, 0] for kind in KINDS}
            counts = [0, 0]
            path = folder / "recording.csv"
            spoil(recording, path, random.Random(0), ())
            _, alarms = detect(recording, path, folder)
            clean_frames += len(alarms) - recording.begin
            clean_alarms += sum(alarms[recording.begin:])
            clean = sum(alarms[recording.begin:]) / (len(alarms) - recording.begin)
            for seed in range(ROUNDS):
                rng = random.Random(f"{recording.name} {seed}")
                kinds = list(KINDS)
                rng.shuffle(kinds)
                events = spoil(recording, path, rng, kinds)
                answer, alarms = detect(recording, path, folder)
                for kind, first, last in events:
                    hit = any(e["first_row"] <= last and e["last_row"] >= first for e in answer["events"])
                    mine[kind][0] += hit
                    mine[kind][1] += 1
                # The frames after an event are judged by a model that has seen it: as many again as it had are left out.
                near = {row for _, first, last in events for row in range(first, last + 1 + recording.length)}
                quiet = [alarm for row, alarm in enumerate(alarms) if row >= recording.begin and row not in near]
                counts[0] += sum(quiet)
                counts[1] += len(quiet)
            print(f"{recording.name}: " + ", ".join(f"{kind} {hits} of {all_}" for kind, (hits, all_) in mine.items())
                  + f"; alarms in normal frames {counts[0] / counts[1]:.4f}, in the clean recording {clean:.4f}, wanted {RATE}")
            for kind, least in LEAST[recording.name].items():
                hits, count = mine[kind]
                if count > 0 and hits < least * count:
                    problems.append(f"{recording.name}: {hits} of {count} events of kind {kind} found, expected a share of {least}")
            for kind in KINDS:
                found[kind][0] += mine[kind][0]
                found[kind][1] += mine[kind][1]
            alarmed += counts[0]
            normal += counts[1]
    for kind, (hits, count) in found.items():
        print(f"recall of {kind}: {hits} of {count}" if kind != "missing" else f"false events at missing values: {hits} of {count}")
    print(f"false alarms: {alarmed / normal:.4f} of normal frames between events, {clean_alarms / clean_frames:.4f} of clean recordings, wanted {RATE}")
    if clean_alarms > MOST_CLEAN * clean_frames or alarmed > MOST_BETWEEN * normal:
        problems.append("more false alarms than that")
    if sum(found[kind][0] for kind in ("spike", "shift", "drift")) < 0.4 * sum(found[kind][1] for kind in ("spike", "shift", "drift")):
        problems.append("fewer than two in five of the spikes, shifts and drifts found")
    if found["missing"][0] > 0.25 * found["missing"][1]:
        problems.append("missing values raise alarms")
    if problems:
        sys.exit("\n".join(problems))


main()
