#!/usr/bin/env python3
"""usage: help_examples.py KIZZASI SMALL_MODEL

Every example of every `--help` runs and ends with code 0, on small recordings of the names that it gives. Only what would take minutes is cut
short: --steps of train, --effort of demo, --seconds of bench.
"""

import datetime
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHORT = {"train": "--steps 2 --quiet", "demo": "--effort 0.001 --quiet", "bench": "--seconds 0.2"}


def waves(path, names, rows, step_s, seed=0):
    start = datetime.datetime(2024, 1, 1)
    lines = ["time," + ",".join(names)]
    for i in range(rows):
        at = (start + datetime.timedelta(seconds=i * step_s)).isoformat()
        lines.append(at + "Z," + ",".join(f"{2.5 + math.sin(i / 4 + k + seed) + 0.2 * math.sin(i * i * 0.01 + k):.4f}" for k in range(len(names))))
    path.write_text("\n".join(lines) + "\n")


def shorter(source, target, rows):
    with open(source) as file:
        target.write_text("".join(line for line, _ in zip(file, range(rows + 1))))


def prepare(folder, program, small_model):
    (folder / "bin").mkdir()
    (folder / "bin/kizzasi").symlink_to(program)
    small = ["flow", "level", "valve", "hour"]
    waves(folder / "recording.csv", ["a", "b"], 200, 60)
    (folder / "logger.csv").write_text("time,temp\n" + "".join(f"2024-02-01 {i // 60:02d}:{i % 60:02d}:00,{-999 if i % 50 == 3 else i % 7}\n" for i in range(200)))
    for name in ("road.csv", "traffic.csv"):
        waves(folder / name, ["vehicles"], 1200, 3600)
    waves(folder / "oven.csv", ["temp"], 300, 60)
    waves(folder / "arm.csv", [f"q{i}" for i in range(1, 4)], 1500, 0.005)
    for name in ("plant.csv", "pump.csv", "today.csv", "last_month.csv", "sensor.csv"):
        waves(folder / name, small, 1500, 900)
    # The plan: from the end of plant.csv on.
    start = datetime.datetime(2024, 1, 1)
    (folder / "weather.csv").write_text("time,valve,hour\n" + "".join(
        f"{(start + datetime.timedelta(seconds=900 * i)).isoformat()}Z,{50 + i % 5},{i // 4 % 24}\n" for i in range(1700)))
    (folder / "frames.jsonl").write_text("".join(
        f'{{"time": "{(start + datetime.timedelta(seconds=900 * i)).isoformat()}Z", "flow": 3, "level": 2.5, "valve": 50, "hour": {i // 4 % 24}}}\n' for i in range(50)))
    (folder / "problems.jsonl").write_text('{"id": 1, "y": [3, 2], "A": [[1, 2]], "lo": ["-inf"], "hi": [3]}\n')
    (folder / "limits.toml").write_text('[[constraint]]\nthat = "0 <= level <= 5"\n')
    for name in ("plant", "pump", "sensor"):
        subprocess.run([small_model, folder / f"{name}.kizzasi"], check=True)
    case = sorted((SOURCE / "tests/golden/backbones/mamba2").glob("*.io.safetensors"))[0]
    stem = str(case).removesuffix(".io.safetensors")
    for ending, name in ((".safetensors", "model.safetensors"), (".io.safetensors", "model.io.safetensors"), (".json", "model.json"), (".json", "config.json")):
        shutil.copy(stem + ending, folder / name)
    shutil.copy(folder / "model.safetensors", folder / "checkpoint.safetensors")
    (folder / "data/bundle").mkdir(parents=True)
    for name, rows in (("road_traffic_hourly", 3000), ("solar_plant_15min", 3000), ("robot_arm_200hz", 2500)):
        shorter(SOURCE / f"data/bundle/{name}.csv", folder / f"data/bundle/{name}.csv", rows)


def main():
    program, small_model = map(os.path.abspath, sys.argv[1:3])
    problems, ran = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        prepare(folder, program, small_model)
        environment = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}")
        page = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        for verb in re.findall(r"^  (\w+) +\S", page.partition("Verbs:")[2], re.MULTILINE):
            told = subprocess.run([program, verb, "--help"], capture_output=True, text=True, check=True).stdout
            for example in told.partition("Examples:\n")[2].splitlines():
                command = example.strip().replace("tail -f", "cat")  # it would wait for ever
                words = f"{command} {SHORT.get(verb, '')}"
                if verb == "stream":
                    words = command
                done = subprocess.run(["sh", "-c", words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
                ran += 1
                if done.returncode != 0 or not done.stdout:
                    problems.append(f"{command}\n  code {done.returncode}: {done.stderr[-400:]}")
                if verb == "train" and "road.kizzasi" in command:
                    shutil.copy(folder / "road.kizzasi", folder / "traffic.kizzasi")
    if problems or ran < 20:
        sys.exit("\n".join(problems) or f"only {ran} examples")
    print(f"{ran} examples ran.")


main()
