#!/usr/bin/env python3
"""usage: large_recording.py KIZZASI

`check` looks at a CSV file in pieces: a file of 160 MB takes less memory than its own size, and what is told of all rows is right.
(A table of all its values and the series made of it would take several times as much.)
"""

import json
import math
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

ROWS, COLUMNS, BLOCK = 1_500_000, 12, 1000


def write(path):
    blocks = ["".join(f",{math.sin(2 * math.pi * i / 50 + c):.5f}" for c in range(COLUMNS)) for i in range(BLOCK)]
    with open(path, "w") as file:
        file.write("time_s," + ",".join(f"c{c}" for c in range(COLUMNS)) + "\n")
        for begin in range(0, ROWS, BLOCK):
            file.write("".join(f"{begin + i}{blocks[i]}\n" for i in range(BLOCK)))
        file.write(f"{ROWS}," + "," * (COLUMNS - 1) + "7.5\n")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "large.csv"
        write(path)
        done = subprocess.run([sys.argv[1], "check", path, "--json", "--report", f"{folder}/r.html"], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        size = os.path.getsize(path)
        answer = json.loads(done.stdout)
        assert answer["rows"] == ROWS + 1 and answer["time"]["step_s"] == 1, answer["time"]
        assert [r["missing"] for r in answer["ranges"]] == [1] * (COLUMNS - 1) + [0], answer["ranges"]
        assert answer["ranges"][-1]["most"] == 7.5 and abs(answer["ranges"][0]["most"] - 1) < 0.01, answer["ranges"]
        assert abs(answer["ranges"][0]["mean"]) < 1e-6, answer["ranges"]
        assert [s["period"] for s in answer["seasons"]] == [50], answer["seasons"]
        assert any(f"latest {2_000_000 // COLUMNS} rows" in note for note in answer["notes"]), answer["notes"]
        assert peak < size, f"{peak / 1e6:.0f} MB of memory for a file of {size / 1e6:.0f} MB"
        print(f"{peak / 1e6:.0f} MB of memory for a file of {size / 1e6:.0f} MB")


main()
