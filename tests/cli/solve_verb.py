#!/usr/bin/env python3
"""usage: solve_verb.py KIZZASI

`kizzasi solve` gives the published answers of every kind of problem (tests/golden/logic, or the whole sets where KIZZASI_ORACLES names
them), line by line through a pipe, and says what is wrong with bad lines without stopping.
"""

import json
import math
import os
import pathlib
import select
import subprocess
import sys

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/logic"
ORACLES = os.environ.get("KIZZASI_ORACLES")
wrong = []


def problems(golden, whole):
    path = pathlib.Path(ORACLES) / "logic" / whole if ORACLES else GOLDEN / golden
    return [json.loads(line) for line in path.read_text().splitlines()]


def expect(what, holds):
    if not holds:
        wrong.append(what)


def flat(value):
    if isinstance(value, list):
        return [x for item in value for x in flat(item)]
    return [float(value)]


def close(got, expected, tolerance):
    got, expected = flat(got), flat(expected)
    return len(got) == len(expected) and all(abs(a - b) <= tolerance for a, b in zip(got, expected))


def size(values):
    return max([abs(v) for v in flat(values)] or [0])


def as_set(names):
    return sorted(json.dumps(n) for n in names)


def check_program(id, case, got):
    expect(f"{id}: status {got.get('status')}", got.get("status") == case["status"])
    if case["status"] == "infeasible":
        expect(f"{id}: says why", "certificate" in got or "why" in got)
        return
    expect(f"{id}: x", close(got["x"], case["x"], 1e-10 * (1 + size(case["x"]))))
    expect(f"{id}: active {got['active']}", as_set(got["active"]) == as_set(case["active"]))
    expect(f"{id}: objective", math.isclose(got["objective"], case["objective"], rel_tol=1e-12, abs_tol=1e-12))
    if case.get("unique_multipliers"):
        expect(f"{id}: unique", got["unique_multipliers"] is True)
        reference = case["multipliers"]["rows"] if isinstance(case["multipliers"], dict) else case["multipliers"]
        expect(f"{id}: multipliers", close(got["multipliers"]["rows"], reference, 1e-8 * (1 + size(reference))))


def check_certificate(id, case, got):
    rows, box = got["certificate"]["rows"], got["certificate"]["box"]
    n = case["n"]
    left = [sum(r * a[j] for r, a in zip(rows, case["A"])) + (box[j] if box else 0) for j in range(n)]
    bound = lambda m, lo, hi: m * float(hi) if m > 0 else (m * float(lo) if m < 0 else 0)
    gap = sum(bound(r, lo, hi) for r, lo, hi in zip(rows, case["lo"], case["hi"]))
    gap += sum(bound(m, lo, hi) for m, lo, hi in zip(box, case.get("lower", []), case.get("upper", [])))
    expect(f"{id}: certificate proves {gap}", gap < 0 and size(left) <= 1e-12 * (1 + size(case["A"])))


def check_nearest(case, got):
    id = case["id"]
    expect(f"{id}: status {got.get('status')}", got.get("status") == case["status"])
    loose = case.get("kind") == "nearly parallel rows" or "scale" in case
    scale = max(1, size(case["y"]))
    if case["status"] == "infeasible":
        for field in ("certificate", "why"):
            expect(f"{id}: {field}", (field in got) == (field in case))
        if "certificate" in got:
            check_certificate(id, case, got)
        if "least_slack" in case:
            expect(f"{id}: least slack", close(got["least_slack"]["x"], case["least_slack"]["x"], 1e-9 * scale))
            expect(f"{id}: its norm", math.isclose(got["least_slack"]["norm"], case["least_slack"]["norm"], rel_tol=1e-9, abs_tol=1e-12 * scale))
        if "box_wins" in case:
            expect(f"{id}: box wins", got["box_wins"] == case["box_wins"])
        return
    expect(f"{id}: x", close(got["x"], case["x"], (1e-9 if loose else 1e-12) * scale))
    expect(f"{id}: distance", abs(got["distance"] - case["distance"]) <= 1e-12 * scale)
    if case.get("unchanged"):
        expect(f"{id}: unchanged", got["x"] == case["y"] and got["unchanged"] is True)
    for field in ("active_rows", "active_box", "active"):
        if field in case:
            expect(f"{id}: {field} {got.get(field)}", as_set(got[field]) == as_set(case[field]))
    for field in ("multiplier", "ball_multiplier"):
        if isinstance(case.get(field), float) and case.get("norm", "l2") == "l2":
            expect(f"{id}: {field}", math.isclose(got[field], case[field], rel_tol=1e-9, abs_tol=1e-9))
    if case.get("unique_multipliers") and not loose:
        for part in ("rows", "box"):
            reference = case["multipliers"][part]
            expect(f"{id}: multipliers", close(got["multipliers"][part], reference, 1e-8 * (1 + size(reference))))


def check_plan(case, got):
    id = case["id"]
    expect(f"{id}: status {got.get('status')}", got.get("status") == case["status"])
    if case["status"] != "ok":
        return
    expect(f"{id}: u", close(got["u"], case["u"], 1e-8))
    expect(f"{id}: x", close(got["x"], case["x"], 1e-8))
    expect(f"{id}: cost", math.isclose(got["cost"], case["cost"], rel_tol=1e-9))
    expect(f"{id}: slack", got["slack"] is None if case["slack"] is None else close(got["slack"], case["slack"], 1e-8))
    expect(f"{id}: active", as_set(got["active"]) == as_set(case["active"]))


def check_barrier(case, got):
    id = case["id"]
    expect(f"{id}: status {got.get('status')}", got.get("status") == case["status"])
    if case["status"] != "ok":
        expect(f"{id}: no input", got["u"] is None)
        return
    expect(f"{id}: u", close(got["u"], case["u"], 1e-12 * (1 + size(case["u"]))))
    expect(f"{id}: multiplier", close(got["multiplier"], case["multiplier"], 1e-12 * (1 + size(case["multiplier"]))))
    for field in ("h_next", "psi1"):
        if field in case:
            expect(f"{id}: {field}", abs(got[field] - case[field]) <= 1e-12)


def answers(lines):
    run = subprocess.run([PROGRAM, "solve"], input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True, text=True)
    expect(f"code {run.returncode}, {run.stderr[:300]}", run.returncode == 0 and run.stderr == "")
    out = [json.loads(line) for line in run.stdout.splitlines()]
    expect(f"{len(lines)} lines in, {len(out)} out", len(out) == len(lines))
    return zip(lines, out)


counts = {}
for case, got in answers(problems("nearest.jsonl", "projection/projection.jsonl")):
    counts["nearest"] = counts.get("nearest", 0) + 1
    check_nearest(case, got)
for case, got in answers(problems("qp.jsonl", "qp/qp.jsonl")):
    counts["qp"] = counts.get("qp", 0) + 1
    check_program(case["id"], case, got)
    if case["status"] == "infeasible" and "certificate" in got:
        check_certificate(case["id"], case, got)
for case, got in answers(problems("qp_warm.jsonl", "qp/warm.jsonl")):
    expect(f"{case['id']}: steps", len(got["steps"]) == len(case["steps"]))
    for k, (step, answer) in enumerate(zip(case["steps"], got["steps"])):
        counts["steps"] = counts.get("steps", 0) + 1
        check_program(f"{case['id']} step {k}", step, answer)
for case, got in answers(problems("mpc.jsonl", "mpc/mpc.jsonl")):
    counts["mpc"] = counts.get("mpc", 0) + 1
    check_plan(case, got)
for case, got in answers(problems("cbf.jsonl", "cbf/cbf.jsonl")):
    counts["cbf"] = counts.get("cbf", 0) + 1
    check_barrier(case, got)

# Bad lines: an error in place, its number on standard error, the others answered, code 1.
BAD = [
    ("{", ["line 1", "expected"]),
    ("[1]", ["line 2", "object"]),
    ('{"id": "q", "H": [[1, 2], [3]], "g": [0, 0]}', ["line 3", "H", "rows of 2"]),
    ('{"H": [[-1]], "g": [0]}', ["line 4", "negative curvature"]),
    ('{"y": [1, "nan"]}', ["line 5", "y", "is no number"]),
    ('{"y": []}', ["line 6", "y", "empty"]),
    ('{"y": [1], "A": [[1]], "lo": [0]}', ["line 7", "hi", "missing"]),
    ('{"y": [1], "A": [[1]], "lo": [0], "hi": [1, 2]}', ["line 8", "hi", "2 numbers"]),
    ('{"y": [1e400]}', ["line 9"]),
    ('{"horizon": 0, "x0": [1], "A": [[1]], "B": [[1]], "Q": [[1]], "R": [[1]]}', ["line 10", "horizon"]),
    ('{"horizon": 1000000000, "x0": [1], "A": [[1]], "B": [[1]], "Q": [[1]], "R": [[1]]}', ["line 11", "horizon", "too many"]),
    ('{"horizon": 2, "x0": [1], "A": [[1]], "B": [[1]], "Q": [[1]], "R": [[-9]]}', ["line 12", "R positive definite"]),
    ('{"u_nominal": [1], "h": 1}', ["line 13", "Lgh"]),
    ('{"u_nominal": [1], "x": [1], "A": [[1]], "B": [[1]], "a": [1], "b": 1, "gamma": 2}', ["line 14", "gamma", "out of range"]),
    ('{"y": [1], "radius": 1, "norm": "l3"}', ["line 15", "l3"]),
    ('{"y": [1, 2], "radius": 1, "index": [0, 2]}', ["line 16", "index"]),
    ('{"y": [1, 2], "Q": [[1, 0], [0, -1]], "b": 1}', ["line 17", "Q", "negative axis"]),
    ('{"x": 1}', ["line 18", "no field"]),
    ('{"y": [1], "weight": [0]}', ["line 19", "weight"]),
    ('{"H": [[1]], "steps": [{"g": [1]}, {"g": [1, 2]}]}', ["line 20", "steps[1].g"]),
]
GOOD = '{"id": 7, "y": [3, 2], "A": [[1, 2]], "lo": ["-inf"], "hi": [3]}'
run = subprocess.run([PROGRAM, "solve"], input="\n".join(line for line, _ in BAD) + "\n\n" + GOOD, capture_output=True, text=True)
expect(f"bad lines end with {run.returncode}", run.returncode == 1)
out, complaints = [json.loads(line) for line in run.stdout.splitlines()], run.stderr.splitlines()
expect(f"one answer a line: {len(out)}", len(out) == len(BAD) + 1)
expect(f"one complaint a bad line: {len(complaints)}", len(complaints) == len(BAD))
for (line, words), answer, complaint in zip(BAD, out, complaints):
    expect(f"{line}: answered {answer}", "error" in answer)
    for word in words:
        expect(f"{line}: '{word}' is missing in '{complaint}'", word in complaint)
expect("the id of a bad line", out[2].get("id") == "q")
expect(f"the good line {out[-1]}", out[-1]["id"] == 7 and close(out[-1]["x"], [2.2, 0.4], 1e-15))

# A pipe: each answer comes before the next question.
pipe = subprocess.Popen([PROGRAM, "solve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for k in range(3):
    pipe.stdin.write(json.dumps({"id": k, "y": [5 + k], "lower": [0], "upper": [1]}) + "\n")
    pipe.stdin.flush()
    ready, _, _ = select.select([pipe.stdout], [], [], 60)
    expect("an answer comes at once", bool(ready))
    if not ready:
        break
    answer = json.loads(pipe.stdout.readline())
    expect(f"pipe {answer}", answer["id"] == k and answer["x"] == [1.0])
pipe.stdin.close()
expect("the pipe ends well", pipe.wait(timeout=60) == 0)

for what in wrong[:40]:
    print("wrong:", what)
print(", ".join(f"{count} {kind}" for kind, count in counts.items()), f"problems; {len(wrong)} differ" if wrong else "problems: all as published")
sys.exit(1 if wrong else 0)
