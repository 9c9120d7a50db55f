#!/usr/bin/env python3
"""usage: model_verbs.py KIZZASI SMALL_MODEL

What forecast, stream and inspect promise, with a small model that SMALL_MODEL writes: columns, limits on what is printed, plans, samples,
JSON lines, bad lines, closed pipes, one answer a frame as soon as it came.
"""

import csv
import io
import json
import math
import os
import pathlib
import select
import struct
import subprocess
import sys
import tempfile

KIZZASI, SMALL_MODEL = map(os.path.abspath, sys.argv[1:3])
STEP = 15


def stamp(row):
    minutes = row * STEP
    return f"2024-01-{1 + minutes // 1440:02d}T{minutes // 60 % 24:02d}:{minutes % 60:02d}:00Z"


def row_of(i):
    return [f"{3 + 3 * math.sin(i / 5):.4f}", f"{2 + math.cos(i / 7):.4f}", str(50 + i % 9), str(i * STEP // 60 % 24)]


def recording(rows):
    return "time,flow,level,valve,hour\n" + "".join(",".join([stamp(i)] + row_of(i)) + "\n" for i in range(rows))


def run(*words, code=0, text=None):
    done = subprocess.run([KIZZASI, *words], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, f"{words}: exit {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_forecast():
    out, err = run("forecast", "m.kz", "d.csv", "-h", "4")
    rows = table(out)
    assert list(rows[0]) == ["time", "flow", "flow_q0.1", "flow_q0.5", "flow_q0.9", "level", "level_q0.1", "level_q0.5", "level_q0.9"], rows[0]
    assert [r["time"] for r in rows] == [stamp(60 + i) for i in range(4)], rows
    assert "known-future" in err, "unknown known-future values are remarked: " + err
    for r in rows:
        assert float(r["flow"]) >= 0
        assert float(r["flow_q0.1"]) <= float(r["flow_q0.5"]) <= float(r["flow_q0.9"])
    assert run("forecast", "m.kz", "d.csv", "-h", "1h")[0] == out, "a time is a number of steps"
    assert run("forecast", "m.kz", "d.csv")[0] == out, "the model's own horizon"
    lines = [json.loads(line) for line in run("forecast", "m.kz", "d.csv", "--json")[0].splitlines()]
    for line, r in zip(lines, rows, strict=True):
        assert line["time"] == r["time"] and line["status"] == "ok"
        assert line["values"]["flow"] == float(r["flow"]) and line["quantiles"]["level"]["0.9"] == float(r["level_q0.9"])


def test_limits_hold_for_what_is_printed():
    limits = ["--limit", "0.123456 <= flow <= 0.98765", "--limit", "abs(rate(level)) <= 0.0001 [m/s]", "--decimals", "2"]
    out, _ = run("forecast", "m.kz", "d.csv", "-h", "9", "--hold", "--samples", "5", *limits)
    for r in table(out):
        for name, value in r.items():
            if name.startswith("flow"):
                assert 0.123456 <= float(value) <= 0.98765, (name, value)
                assert len(value.split(".")[1]) == 2, value
    broken = run("forecast", "m.kz", "d.csv", "--limit", "flwo >= 0", code=1)[1]
    assert "flow" in broken, broken
    pathlib.Path("l.toml").write_text('[[constraint]]\nthat = "level <= 0.5"\n')
    assert all(float(r["level"]) <= 0.5 for r in table(run("forecast", "m.kz", "d.csv", "--limits", "l.toml")[0]))


def test_beyond_the_block():
    error = run("forecast", "m.kz", "d.csv", "-h", "9", code=2)[1]
    assert "valve" in error and "plan" in error, error
    held = run("forecast", "m.kz", "d.csv", "-h", "9", "--hold")[0]
    assert len(table(held)) == 9
    pathlib.Path("plan.csv").write_text("time,valve,hour\n" + "".join(f"{stamp(i)},{90},{i * STEP // 60 % 24}\n" for i in range(60, 69)))
    planned, remarks = run("forecast", "m.kz", "d.csv", "-h", "9", "--plan", "plan.csv")
    assert len(table(planned)) == 9 and "known-future" not in remarks, remarks
    assert planned.splitlines()[5] != held.splitlines()[5], "the plan counts"
    # The same hours at the end of the recording itself.
    pathlib.Path("ahead.csv").write_text(recording(60) + "".join(f"{stamp(i)},,,,{i * STEP // 60 % 24}\n" for i in range(60, 64)))
    pathlib.Path("hours.csv").write_text("time,valve,hour\n" + "".join(f"{stamp(i)},90,{i * STEP // 60 % 24}\n" for i in range(60, 64)))
    assert run("forecast", "m.kz", "ahead.csv")[0] == run("forecast", "m.kz", "d.csv", "--plan", "hours.csv")[0]


def test_samples():
    first = run("forecast", "m.kz", "d.csv", "--samples", "3")[0]
    assert first == run("forecast", "m.kz", "d.csv", "--samples", "3")[0]
    assert first != run("forecast", "m.kz", "d.csv", "--samples", "3", "--seed", "2")[0]
    line = json.loads(run("forecast", "m.kz", "d.csv", "--samples", "3", "--json")[0].splitlines()[0])
    assert len(line["samples"]["flow"]) == 3 and all(v >= 0 for v in line["samples"]["flow"])
    cold = table(run("forecast", "m.kz", "d.csv", "--samples", "2", "--temperature", "0")[0])
    assert all(r["flow_s1"] == r["flow_s2"] for r in cold)
    run("forecast", "m.kz", "d.csv", "--report", "f.html")
    page = pathlib.Path("f.html").read_text()
    assert "<script" in page and "lowest allowed" in page and "made for tests" in page


def test_the_wrong_data():
    pathlib.Path("other.csv").write_text(recording(60).replace("level", "levle", 1))
    error = run("forecast", "m.kz", "other.csv", code=1)[1]
    assert "level" in error and "levle" in error, error
    pathlib.Path("hourly.csv").write_text("time,flow,level,valve,hour\n" + "".join(f"{stamp(4 * i)},1,2,3,4\n" for i in range(50)))
    error = run("forecast", "m.kz", "hourly.csv", code=1)[1]
    assert "1h" in error and "15min" in error, error
    assert len(table(run("forecast", "m.kz", "hourly.csv", "--resample")[0])) == 4
    run("forecast", "m.kz", "none.csv", code=1)
    run("forecast", "d.csv", "d.csv", code=1)
    run("forecast", "m.kz", "d.csv", "-h", "7min", code=2)
    run("forecast", "m.kz", "d.csv", "-h", "0", code=2)
    run("forecast", "m.kz", "d.csv", "--levels", "0.9,0.1", code=2)
    run("forecast", "m.kz", "d.csv", "--samples", "-1", code=2)


def test_stream():
    out, err = run("stream", "m.kz", text=recording(60))
    rows = table(out)
    assert len(rows) == 60 and rows[0]["time"] == stamp(1) and all(r["status"] == "ok" for r in rows)
    assert all(float(r["flow"]) >= 0 for r in rows)
    lines = "".join(json.dumps({"time": stamp(i), "flow": float(row_of(i)[0]), "level": float(row_of(i)[1]), "valve": 50 + i % 9,
                                "hour": i * STEP // 60 % 24}) + "\n" for i in range(60))
    answers = [json.loads(line) for line in run("stream", "m.kz", text=lines)[0].splitlines()]
    assert [a["values"]["flow"] for a in answers] == [float(r["flow"]) for r in rows], "CSV and JSON lines are the same frames"
    ahead = run("stream", "m.kz", "-h", "3", text=recording(5))[0]
    assert [r["step"] for r in table(ahead)] == ["1", "2", "3"] * 5


def test_bad_lines():
    lines = recording(6).splitlines()
    lines[3] = stamp(2) + ",abc,1,2,3"
    lines.insert(5, lines[4])  # twice the same frame
    out, err = run("stream", "m.kz", text="\n".join(lines) + "\n", code=1)
    assert len(table(out)) == 5, out
    assert "line 4" in err and "line 6" in err and "2 bad or late lines" in err, err
    out, err = run("stream", "m.kz", "--strict", text="\n".join(lines) + "\n", code=1)
    assert len(table(out)) == 2 and "line 4" in err, (out, err)


def test_each_frame_is_answered_at_once_and_a_closed_pipe_ends_it():
    child = subprocess.Popen([KIZZASI, "stream", "m.kz"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
    lines = recording(5).splitlines(keepends=True)
    for i, line in enumerate(lines):
        child.stdin.write(line)
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], 30)
        assert ready, f"no answer to line {i + 1}"
        child.stdout.readline()
    child.stdin.close()
    assert child.wait(30) == 0, child.stderr.read()
    piped = subprocess.run(f'"{KIZZASI}" stream m.kz --quiet < long.csv | head -n 2', shell=True, capture_output=True, text=True, timeout=60)
    assert piped.stderr == "" and len(piped.stdout.splitlines()) == 2, piped


def test_inspect():
    out, _ = run("inspect", "m.kz")
    for word in ["flow [m3/h]", "valve", "15min", "mamba2", "flow >= 0", "made for tests"]:
        assert word in out, (word, out)
    card = json.loads(run("inspect", "m.kz", "--json")[0])
    assert card["kind"] == "model" and card["schema"]["step_ns"] == 900 * 10**9 and card["parameters"] > 0 and card["state_bytes"] > 0
    assert sum(t["numbers"] for t in card["tensors"]) >= card["parameters"]
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"format": "pt"}}).encode()
    header += b" " * (-len(header) % 8)
    pathlib.Path("plain.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, 2))
    assert "no model of this program" in run("inspect", "plain.safetensors")[0]
    assert json.loads(run("inspect", "plain.safetensors", "--json")[0])["tensors"] == [{"name": "w", "shape": [2], "numbers": 2}]
    run("inspect", "d.csv", code=1)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([SMALL_MODEL, "m.kz"], check=True)
        pathlib.Path("d.csv").write_text(recording(60))
        pathlib.Path("long.csv").write_text(recording(2500))
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test()
                print("ok", name)


main()
