#!/usr/bin/env python3
"""usage: wrong_use.py KIZZASI

Wrong uses of the command line, each in an empty folder that holds a few small recordings. Each must end with the stated code, say what is
wrong in one line on standard error, print nothing on standard output (with --json, too), and leave no file behind.
"""

import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

def hourly(*columns):
    """A recording of 600 hours; each column gives the text of its cell for an hour."""
    rows = (f"2024-01-{1 + h // 24:02d}T{h % 24:02d}:00:00Z," + ",".join(column(h) for column in columns) for h in range(600))
    return "time," + ",".join("xyz"[:len(columns)]) + "\n" + "\n".join(rows) + "\n"


GOOD = "time,temp,flow\n" + "".join(f"2024-01-01T{h:02d}:00:00Z,{20 + h % 5},{h}\n" for h in range(24))
FILES = {
    "good.csv": GOOD,
    "long.csv": hourly(lambda h: f"{math.sin(0.26 * h):.3f}", lambda h: str(h % 24)),
    "constant.csv": hourly(lambda h: "5"),
    "nothing.csv": hourly(lambda h: ""),
    "text.csv": hourly(lambda h: "mild"),
    "empty.csv": "",
    "head.csv": "time,temp\n",
    "broken.kz": "this is no model",
    "cut.bin": "fmgg",
    "typo.toml": "d_modle = 8\n",
    "bad.toml": "d_model = = 8\n",
    "two.toml": "steps = 1\nsteps = 2\n",
    "list.json": "[1, 2]\n",
    "config.ini": "steps = 1\n",
}

# (arguments, exit code, words that the message must hold)
CASES = [
    # The program itself.
    (["bnech"], 2, ["bnech", "Did you mean 'bench'"]),
    (["no-such-verb-at-all"], 2, ["no such verb", "--help"]),
    (["--jsn", "bench"], 2, ["--jsn", "verb comes first"]),
    (["--seed"], 2, ["--seed"]),
    (["help", "bnch"], 2, ["Did you mean 'bench'"]),
    ([""], 2, ["no such verb"]),
    (["solve", "missing.jsonl"], 1, ["missing.jsonl", "cannot be read"]),
    (["solve", "--tiem"], 2, ["--tiem", "Did you mean '--time'"]),
    (["solve", "--limit", "3"], 2, ["--limit"]),
    # Options that every verb shares, tried on one.
    (["bench", "--secnds", "1"], 2, ["--secnds", "Did you mean '--seconds'"]),
    (["bench", "--xyzzy"], 2, ["--xyzzy", "--help"]),
    (["bench", "-z"], 2, ["-z"]),
    (["bench", "--seconds"], 2, ["--seconds", "needs a value"]),
    (["bench", "--seconds", "--json"], 2, ["--seconds", "needs a value"]),
    (["bench", "--seconds", "soon"], 2, ["'soon'", "number"]),
    (["bench", "--seconds", "nan"], 2, ["'nan'"]),
    (["bench", "--seconds", "1,5"], 2, ["'1,5'", "decimal point"]),
    (["bench", "--seconds", "0"], 2, ["--seconds", "out of range"]),
    (["bench", "--seconds", "-1"], 2, ["--seconds", "out of range"]),
    (["bench", "--seconds", "1e9"], 2, ["--seconds", "out of range"]),
    (["bench", "--seconds=1", "--seconds=2"], 2, ["--seconds", "more than once"]),
    (["bench", "--seed", "-1"], 2, ["--seed", "0 or more"]),
    (["bench", "--seed", "1.5"], 2, ["--seed", "'1.5'"]),
    (["bench", "--seed", "99999999999999999999999"], 2, ["--seed"]),
    (["bench", "--seed"], 2, ["--seed", "needs a value"]),
    (["bench", "--threads", "many"], 2, ["--threads", "'many'"]),
    (["bench", "--threads", "100000"], 2, ["--threads", "1024"]),
    (["bench", "--threads", "-2"], 2, ["--threads"]),
    (["bench", "--json=maybe"], 2, ["--json"]),
    (["bench", "--preset", "robotic"], 2, ["'robotic'", "Did you mean 'robotics'?"]),
    (["bench", "--model", "none.kz"], 1, ["none.kz", "No such file"]),
    (["bench", "--model", "broken.kz"], 1, ["broken.kz"]),
    (["bench", "--model", "broken.kz", "--preset", "audio"], 2, ["--model"]),
    (["bench", "surplus"], 2, ["'surplus'", "too many"]),
    (["bench", "a", "b", "--json"], 2, ["'a'", "too many"]),
    (["bench", "--", "--json"], 2, ["too many"]),
    (["convert"], 2, ["MODEL is missing"]),
    (["convert", "broken.kz", "-o", "o.kz"], 2, ["--quantize", "int8"]),
    (["convert", "broken.kz", "-o", "o.kz", "--quantize", "int16", "--unmeasured"], 2, ["'int16'", "int8"]),
    (["convert", "broken.kz", "-o", "o.kz", "--quantize", "int8"], 2, ["--data", "--unmeasured"]),
    (["convert", "broken.kz", "-o", "o.kz", "--quantize", "int8", "--unmeasured", "--data", "good.csv"], 2, ["--unmeasured"]),
    (["convert", "broken.kz", "-o", "o.kz", "--quantize", "int8", "--data", "good.csv", "--most-loss", "-1"], 2, ["--most-loss"]),
    (["convert", "broken.kz", "--quantize", "int8", "--unmeasured"], 2, ["--out"]),
    (["convert", "broken.kz", "-o", "o.kz", "--quantize", "int8", "--unmeasured"], 1, ["broken.kz"]),
    (["convert", "none.kz", "-o", "o.kz", "--quantize", "int8", "--unmeasured"], 1, ["none.kz", "No such file"]),
    (["convert", "broken.kz", "-o", "nowhere/o.kz", "--quantize", "int8", "--unmeasured"], 1, ["nowhere/o.kz"]),
    # Recordings.
    (["none.csv"], 1, ["none.csv", "no such file"]),
    (["--json", "none.csv"], 1, ["none.csv", "no such file"]),
    (["check"], 2, ["FILE is missing"]),
    (["check", "god.csv"], 1, ["god.csv", "Did you mean 'good.csv'?"]),
    (["check", "."], 1, ["folder"]),
    (["check", "empty.csv"], 1, ["empty.csv", "empty"]),
    (["check", "head.csv"], 1, ["head.csv", "no row of data"]),
    (["check", "good.csv", "extra.csv"], 2, ["'extra.csv'", "too many"]),
    (["check", "good.csv", "--delimiter", "xx"], 2, ["--delimiter", "'xx'", "semicolon"]),
    (["check", "good.csv", "--decimal", "dot"], 2, ["--decimal", "point, comma"]),
    (["check", "good.csv", "--encoding", "utf8"], 2, ["--encoding", "Did you mean 'utf-8'?"]),
    (["check", "good.csv", "--header", "maybe"], 2, ["--header"]),
    (["check", "good.csv", "--time-column", "zeit"], 2, ["'zeit'", "time, temp, flow"]),
    (["check", "good.csv", "--zone", "Mars/Base"], 2, ["--zone", "'Mars/Base'"]),
    (["check", "good.csv", "--targets", "temperature"], 2, ["'temperature'", "temp, flow"]),
    (["check", "good.csv", "--sentinels", "x"], 2, ["--sentinels", "'x'"]),
    (["check", "good.csv", "--sentinels", "inf"], 2, ["--sentinels", "inf"]),
    (["check", "good.csv", "--sentinels", "1,,2"], 2, ["--sentinels", "'1,,2'"]),
    (["check", "good.csv", "--step", "often"], 2, ["--step", "'often'"]),
    (["check", "good.csv", "--step", "0s"], 2, ["--step", "no length"]),
    (["check", "good.csv", "--step", ""], 2, ["--step"]),
    (["check", "good.csv", "--step", "15min", "--time-column", "none"], 2, ["--step", "no times"]),
    (["check", "good.csv", "--max-gap", "-1"], 2, ["--max-gap"]),
    (["check", "good.csv", "--report", "nowhere/r.html"], 1, ["nowhere/r.html", "folder"]),
    (["check", "good.csv", "--report", "."], 1, ["folder"]),
    (["check", "good.csv", "--config", "none.toml"], 1, ["none.toml"]),
    (["check", "good.csv", "--config", "typo.toml"], 2, ["typo.toml:1", "'d_modle'"]),
    (["check", "good.csv", "--config", "bad.toml"], 1, ["bad.toml:1"]),
    (["check", "good.csv", "--config", "two.toml"], 1, ["two.toml:2"]),
    (["check", "good.csv", "--config", "list.json"], 1, ["list.json"]),
    (["check", "good.csv", "--config", "config.ini"], 2, ["config.ini"]),
    (["check", "good.csv", "--config"], 2, ["--config", "needs a value"]),
    # Limits.
    (["constraints"], 2, ["no constraint"]),
    (["constraints", "none.toml"], 1, ["none.toml", "no such file"]),
    (["constraints", "--limit", "temp >="], 1, ["--limit:8", "ends too early"]),
    (["constraints", "--limit", "temp >= 3 4"], 1, ["--limit"]),
    (["constraints", "--limit", ""], 1, ["--limit"]),
    (["constraints", "--limit", "tmep >= 0", "--data", "good.csv"], 1, ["'tmep'", "temp"]),
    (["constraints", "--limit", "temp >= 0", "--data", "none.csv"], 1, ["none.csv"]),
    (["constraints", "--limit", "temp >= 0", "--decimals", "-3"], 2, ["--decimals"]),
    (["constraints", "--learn", "none.csv"], 1, ["none.csv"]),
    (["constraints", "--learn", "good.csv", "--limit", "temp >= 0"], 2, ["--learn"]),
    (["constraints", "--learn", "good.csv", "--confidence", "1"], 2, ["--confidence", "below 1"]),
    (["constraints", "--learn", "good.csv", "--share", "1"], 2, ["--share"]),
    (["constraints", "--limit", "temp >= 0", "--confidence", "0.9"], 2, ["--confidence", "--learn"]),
    (["constraints", "--limit", "temp <= top", "--set", "top"], 2, ["--set", "'top'", "NAME=VALUE"]),
    (["constraints", "--limit", "temp <= top", "--set", "top=much"], 2, ["--set", "'much'"]),
    (["constraints", "--limit", "temp <= top", "--set", "tpo=3"], 2, ["--set", "'tpo'"]),
    (["guard", "--limit", "temp <= top", "--set", "top=3", "--set", "top=4"], 2, ["--set", "twice"]),
    # Monitors and the guard.
    (["monitor"], 2, ["FORMULA is missing"]),
    (["monitor", "temp > 3"], 2, ["FILE is missing"]),
    (["monitor", "temp >", "good.csv"], 1, ["FORMULA:7", "ends too early"]),
    (["monitor", "tmep > 3", "good.csv"], 1, ["'tmep'", "'temp'"]),
    (["monitor", "temp", "none.csv"], 1, ["none.csv"]),
    (["monitor", "temp + 1", "good.csv"], 1, ["FORMULA:6", "a number, not a condition"]),
    (["monitor", "always[3, 1] temp > 3", "good.csv"], 1, ["ends before it begins"]),
    (["monitor", "once temp > 3", "good.csv", "--prefix"], 1, ["past operators"]),
    (["monitor", "temp > 3", "-", "--prefix"], 2, ["--prefix"]),
    (["guard", "--limit", "temp > 3", "none.csv"], 1, ["none.csv"]),
    (["guard", "-"], 2, ["no constraint"]),
    (["guard", "--limit", "temp > 3", "good.csv", "--what-if", "tmep"], 2, ["--what-if", "'tmep'", "temp"]),
    (["guard", "--limit", "temp > 3", "good.csv", "--explain", "--whole"], 2, ["--explain", "--whole"]),
    (["guard", "--limit", "temp > 3", "empty.csv"], 1, ["empty.csv"]),
    (["guard"], 2, ["no constraint"]),
    (["guard", "--limit", "temp > 3", "--past", "2", "good.csv"], 2, ["--past", "--whole"]),
    (["guard", "--limit", "temp > 3", "--past", "999999", "--whole", "good.csv"], 2, ["--past", "have happened"]),
    (["guard", "none.toml"], 1, ["none.toml"]),
    (["guard", "--limit", "x >= 0", "--step", "0s"], 2, ["--step"]),
    # Training.
    (["train"], 2, ["FILE is missing"]),
    (["train", "long.csv"], 2, ["-o MODEL"]),
    (["train", "long.csv", "-o"], 2, ["--output", "needs a value"]),
    (["train", "none.csv", "-o", "m.kz"], 1, ["none.csv", "no such file"]),
    (["train", "long.csv", "-o", "m.kz", "--penalty", "hing"], 2, ["--penalty", "hinge"]),
    (["train", "long.csv", "-o", "m.kz", "--penalty", "hinge"], 2, ["no limits", "--limits FILE"]),
    (["train", "long.csv", "-o", "m.kz", "--penalty-weight", "-1"], 2, ["--penalty-weight"]),
    (["train", "constant.csv", "-o", "m.kz"], 1, ["constant.csv", "constant"]),
    (["train", "nothing.csv", "-o", "m.kz"], 1, ["nothing.csv", "no channel has a value"]),
    (["train", "text.csv", "-o", "m.kz"], 1, ["text.csv", "no column of numbers"]),
    (["train", "long.csv", "-o", "nowhere/m.kz", "--context", "48", "--steps", "1", "--quiet"], 1, ["nowhere/m.kz", "folder"]),
    (["train", "long.csv", "-o", ".", "--steps", "1"], 1, ["folder"]),
    (["train", "long.csv", "-o", "m.kz", "--context", "16777216"], 1, ["context of 16777216", "training part of 420"]),
    (["train", "long.csv", "-o", "m.kz", "--context", "24", "--horizon", "9999"], 1, ["horizon of 9999", "420 rows"]),
    (["train", "long.csv", "-o", "m.kz", "--milestones", "-5"], 2, ["--milestones", "-5"]),
    (["train", "long.csv", "-o", "m.kz", "--milestones", "inf"], 2, ["--milestones"]),
    (["train", "long.csv", "-o", "m.kz", "--budget", "0s"], 2, ["--budget", "no length"]),
    (["train", "long.csv", "-o", "m.kz", "--target", "x"], 2, ["Did you mean '--targets'?"]),
    (["train", "long.csv", "-o", "m.kz", "--loss-unit", "seasonal"], 2, ["loss_unit", "--season"]),
    (["train", "long.csv", "-o", "m.kz", "--loss-unit", "seasonal", "--season", "4", "--context", "16", "--head", "gaussian"], 2,
     ["loss_unit", "point or quantiles"]),
    (["train", "long.csv", "-o", "m.kz", "--steps", "-5"], 2, ["--steps", "-5"]),
    (["train", "long.csv", "-o", "m.kz", "--budget", "soon"], 2, ["--budget", "'soon'", "10s"]),
    (["train", "long.csv", "-o", "m.kz", "--preset", "sensr"], 2, ["Did you mean 'sensor'?"]),
    (["train", "long.csv", "-o", "m.kz", "--size", "huge"], 2, ["'huge'", "xlarge"]),
    (["train", "long.csv", "-o", "m.kz", "--architecture", "mamba3"], 2, ["Did you mean 'mamba"]),
    (["train", "long.csv", "-o", "m.kz", "--targets", "z"], 2, ["'z'", "x, y"]),
    (["train", "long.csv", "-o", "m.kz", "--targets", "x", "--drop", "x"], 2, ["'x'", "two roles"]),
    (["train", "long.csv", "-o", "m.kz", "--limit", "x >"], 1, ["--limit:4", "ends too early"]),
    (["train", "long.csv", "-o", "m.kz", "--limit", "z >= 0"], 1, ["--limit:1", "'z'"]),
    (["train", "long.csv", "-o", "m.kz", "--limits", "none.toml"], 1, ["none.toml", "no such file"]),
    (["train", "long.csv", "-o", "m.kz", "--horizon", "0"], 2, ["--horizon", "1 to 65536"]),
    (["train", "long.csv", "-o", "m.kz", "--d-model", "0"], 2, ["--d-model", "1 to 65536"]),
    (["train", "long.csv", "-o", "m.kz", "--d-model", "65536", "--n-layers", "1000"], 2, ["weights", "parameter_cap"]),
    (["train", "long.csv", "-o", "m.kz", "--season", "-1"], 2, ["--season"]),
    (["train", "long.csv", "-o", "m.kz", "--step", "often"], 2, ["--step", "'often'"]),
    (["train", "long.csv", "-o", "m.kz", "--learning-rate", "-1"], 2, ["--learning-rate"]),
    (["train", "long.csv", "-o", "m.kz", "--config", "typo.toml"], 2, ["typo.toml:1", "Did you mean 'd_model'?"]),
    (["train", "long.csv", "-o", "m.kz", "--config", "two.toml"], 1, ["two.toml:2"]),
    # Judging.
    (["backtest"], 2, ["recording"]),
    (["backtest", "none.csv"], 1, ["none.csv", "no such file"]),
    (["backtest", "long.csv", "--sampling", "nonsense"], 2, ["--sampling", "a model"]),
    (["backtest", "long.csv", "--sampling", "2x"], 2, ["--sampling", "a model"]),
    (["backtest", "long.csv", "--horizon", "0"], 2, ["--horizon", "1 to 1000000 steps"]),
    (["backtest", "long.csv", "--horizon", "soon"], 2, ["--horizon", "'soon'"]),
    (["backtest", "long.csv", "--targets", "z"], 2, ["'z'", "x, y"]),
    (["backtest", "long.csv", "--target", "x"], 2, ["--target", "Did you mean '--targets'?"]),
    (["backtest", "long.csv", "--lookback", "-1"], 2, ["--lookback", "0 to"]),
    (["backtest", "long.csv", "--lookback", "1000000"], 2, ["--lookback", "0 to"]),
    (["backtest", "long.csv", "--lambda", "-1"], 2, ["--lambda"]),
    (["backtest", "long.csv", "--lambda", "inf"], 2, ["--lambda", "'inf'"]),
    (["backtest", "long.csv", "--season", "90min"], 2, ["--season", "multiple of 1h"]),
    (["backtest", "long.csv", "--report", "nowhere/r.html"], 1, ["nowhere/r.html", "folder"]),
    (["backtest", "long.csv", "--methods", "oracle"], 2, ["--methods"]),
    (["backtest", "long.csv", "--split", "half"], 2, ["--split", "70,10"]),
    (["backtest", "constant.csv"], 1, ["constant.csv", "constant"]),
    (["backtest", "good.csv", "--horizon", "24"], 1, ["test rows", "24"]),
    (["backtest", "broken.kz", "long.csv"], 1, ["broken.kz"]),
    # Verbs that use a model.
    (["forecast"], 2, ["MODEL is missing"]),
    (["forecast", "none.kz"], 2, ["FILE is missing"]),
    (["forecast", "none.kz", "long.csv"], 1, ["none.kz", "cannot be opened"]),
    (["forecast", "broken.kz", "long.csv"], 1, ["broken.kz", "damaged"]),
    (["forecast", "long.csv", "long.csv"], 1, ["long.csv", "does not begin as a safetensors file", "a model file"]),
    (["detect"], 2, ["MODEL is missing"]),
    (["detect", "broken.kz"], 2, ["FILE is missing"]),
    (["detect", "broken.kz", "long.csv"], 1, ["broken.kz", "damaged"]),
    (["stream"], 2, ["MODEL is missing"]),
    (["stream", "none.kz"], 1, ["none.kz", "cannot be opened"]),
    (["stream", "broken.kz"], 1, ["broken.kz", "damaged"]),
    (["inspect"], 2, ["FILE is missing"]),
    (["inspect", "none.kz"], 1, ["none.kz", "cannot be opened"]),
    (["inspect", "broken.kz"], 1, ["broken.kz", "damaged"]),
    (["inspect", "."], 1, ["folder"]),
    (["demo", "--act", "nothing"], 2, ["'nothing'", "road, plant or arm"]),
    (["demo", "--effort", "x"], 2, ["--effort", "'x'"]),
    (["demo", "--effort", "nan"], 2, ["--effort", "'nan'"]),
    (["demo", "--data", "nowhere", "--out", "new/folder"], 1, ["nowhere/road_traffic_hourly.csv"]),
    (["demo", "--data", "nowhere"], 1, ["nowhere/road_traffic_hourly.csv"]),
    (["demo", "--out", "good.csv"], 1, ["good.csv", "no folder"]),
    (["demo", "--markdown", "nowhere/q.md"], 1, ["nowhere/q.md", "folder"]),
    # Published checkpoints.
    (["verify"], 2, ["CASE.safetensors is missing"]),
    (["verify", "none.safetensors"], 2, ["--against"]),
    (["verify", "none.safetensors", "--against", "none.io.safetensors"], 1, ["none.safetensors", "cannot be opened"]),
    (["verify", "broken.kz", "--against", "broken.kz"], 1, ["broken.kz", "damaged"]),
    (["verify", "empty.csv", "--against", "empty.csv"], 1, ["empty.csv"]),
    (["verify", ".", "--against", "broken.kz"], 1, ["folder"]),
    (["verify", "cut.bin", "--against", "broken.kz"], 1, ["cut.bin", "too few for the header"]),
    (["verify", "broken.kz", "--agianst", "broken.kz"], 2, ["Did you mean '--against'?"]),
]


def folder_state(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def run(program, arguments, folder, **more):
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **more)


def check_case(program, arguments, code, words, folder):
    before = folder_state(folder)
    done = run(program, arguments, folder)
    shown = "kizzasi " + " ".join(arguments)
    if done.returncode != code:
        yield f"{shown}: ended with {done.returncode}, not {code}: {done.stderr.strip()}"
    if done.stdout:
        yield f"{shown}: printed on standard output: {done.stdout[:80]!r}"
    if done.stderr.count("\n") != 1 or not done.stderr.startswith("kizzasi"):
        yield f"{shown}: the message is not one line of kizzasi: {done.stderr!r}"
    for word in words:
        if word not in done.stderr:
            yield f"{shown}: the message does not say {word!r}: {done.stderr.strip()}"
    if folder_state(folder) != before:
        yield f"{shown}: left or changed a file"


def check_verbs(program, folder):
    """Each verb of the table explains itself with two examples, and refuses an option that it does not have."""
    page = run(program, ["--help"], folder).stdout
    verbs = re.findall(r"^  (\w+) +\S", page.partition("Verbs:")[2], re.MULTILINE)
    if len(verbs) < 2:
        yield f"--help shows the verbs {verbs}"
    for verb in verbs:
        done = run(program, [verb, "--help"], folder)
        examples = [line for line in done.stdout.partition("Examples:")[2].splitlines() if f"kizzasi {verb}" in line]
        if done.returncode != 0 or done.stderr or len(examples) < 2:
            yield f"kizzasi {verb} --help: code {done.returncode}, {len(examples)} examples, {done.stderr!r}"
        for option in re.findall(r"\s(--?[a-z][a-z-]*)", " ".join(line.partition("kizzasi")[2] for line in examples)):
            if not re.search(rf"(^|[\s,]){re.escape(option)}\b", done.stdout.partition("Examples:")[0]):
                yield f"kizzasi {verb} --help: an example uses {option}, which it does not explain"
        known = re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", done.stdout.partition("Examples:")[0], re.MULTILINE)
        if len(known) < 6:
            yield f"kizzasi {verb} --help explains only {known}"
        for option in known:
            if len(option) < 8:
                continue
            typo = option[:4] + option[5] + option[4] + option[6:]
            if typo in known or typo == option:
                continue
            told = run(program, [verb, typo, "1"], folder).stderr
            if "Did you mean '--" not in told or told.count("\n") != 1:
                yield f"kizzasi {verb} {typo}: no suggestion in {told!r}"
        if run(program, ["help", verb], folder).stdout != done.stdout:
            yield f"kizzasi help {verb} is not what {verb} --help says"
        yield from check_case(program, [verb, "--no-such-option"], 2, ["--no-such-option"], folder)
        yield from check_case(program, [verb, "--json", "--threads", "many"], 2, ["--threads"], folder)


def nonsense(kind, help_text):
    """Values that an option cannot have, told by its value's name and what its help allows."""
    bad = [""]
    if kind in ("N", "X"):
        bad += ["xyzzy", "nan", "inf", "1,,2"]
    if kind == "N":
        bad += ["1.5"]
    if "(one of " in help_text:
        bad += ["xyzzy"]
    span = re.search(r"\((-?[\d.e+-]+) to (-?[\d.e+-]+)\)", help_text)
    if span and kind in ("N", "X", "A,B,..."):
        low, high = map(float, span.groups())
        bad += [f"{low - 1:.0f}"] + ([f"{2 * high:.0f}"] if high < 1e300 else [])
    return bad


# Values of options whose help names no kind of value.
MORE = {
    "--horizon": ["0", "-1", "soon", "nan", "1e99h", "1.5"],
    "--stride": ["0", "-1", "often"],
    "--split": ["half", "0,10", "70", "70,40", "nan,10", "70,10,5"],
    "--budget": ["0s", "soon", "5", "-1s", "nan"],
    "--false-alarms": ["0", "1", "-0.1", "nan", "often", "1/0", "1/soon"],
    "--calibrate": ["80,70", "0", "a,b", "70,101", "-5,50"],
    "--keep-out": ["-1", "long", "1e99"],
    "--merge": ["-1", "long"],
    "--least": ["0", "-1"],
    "--levels": ["x", "0.1,,0.5", "nan", "0.5,x"],
    "--decimals": ["-2", "23"],
    "--max-gap": ["-1"],
    "--lookback": ["-1"],
    "--samples": ["-1"],
    "--temperature": ["-1"],
    "--lambda": ["-1"],
    "--seconds": ["0", "-1"],
    "--effort": ["0", "-1", "1000"],
    "--act": ["xyzzy"],
    "--preset": ["xyzzy"],
    "--size": ["xyzzy"],
    "--format": ["xyzzy"],
    "--zone": ["Mars/Base"],
    "--step": ["often", "0s", "-1s", "nan"],
    "--delimiter": ["xx"],
    "--time-column": ["zeit", "99"],
    "--id-column": ["zeit", "99"],
    "--sentinels": ["x", "inf", "nan", "1,,2"],
    "--targets": ["zeit"],
    "--observed": ["zeit"],
    "--drop": ["zeit"],
    "--known-future": ["zeit"],
    "--methods": ["xyzzy"],
}
USUAL = {
    "check": ["long.csv"],
    "train": ["long.csv", "-o", "m.kz", "--steps", "1"],
    "backtest": ["long.csv"],
    "forecast": ["none.kz", "long.csv"],
    "stream": ["none.kz"],
    "detect": ["none.kz", "long.csv"],
    "constraints": ["--limit", "x >= 0"],
    "monitor": ["temp > 3", "long.csv"],
    "guard": ["--limit", "temp >= 0"],
    "inspect": ["none.kz"],
    "verify": ["none.safetensors"],
    "bench": ["--seconds", "0.01"],
    "demo": ["--data", "nowhere"],
}


def check_values(program, folder):
    """Each option of each verb with values that it cannot have: code 2, one line that names the option, nothing printed or left."""
    tried = 0
    for verb, usual in USUAL.items():
        page = run(program, [verb, "--help"], folder).stdout.partition("Examples:")[0]
        for entry in re.split(r"\n  (?=-)", page)[1:]:
            text = " ".join(entry.split())
            found = re.match(r"(?:-\w, )?(?:(--[\w-]+), )?(--[\w-]+) (N|X|H|[A-Z][A-Z,.]+|\"[A-Z]+\") ", text)
            if found is None:
                continue  # a flag: its help follows its name
            other, option, kind = found.groups()
            words = [word for i, word in enumerate(usual) if option not in (word, usual[i - 1])]
            # What depends on a model or a recording is refused only once that is read.
            late = verb in ("forecast", "stream", "detect") and option in (
                "--horizon", "--keep-out", "--merge", "--false-alarms", "--step", "--delimiter", "--time-column", "--id-column", "--zone",
                "--targets", "--observed", "--drop", "--known-future")
            for value in nonsense(kind, text) + ([] if late else MORE.get(option, [])):
                tried += 1
                done = run(program, [verb, *words, f"{option}={value}"], folder)
                if done.returncode != 2 or done.stdout or done.stderr.count("\n") != 1 or not any(w in done.stderr for w in (option, other or option, repr(value))):
                    yield f"kizzasi {verb} {option}={value}: code {done.returncode}, {done.stdout[:60]!r}, {done.stderr[:200]!r}"
    if tried < 700:
        yield f"only {tried} values were tried"
    print(f"{tried} values that options cannot have")


def check_outlets(program, folder):
    """A full disk is told, a reader that goes away is not."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([program, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    if done.returncode != 1 or "standard output" not in done.stderr:
        yield f"a full standard output ended with {done.returncode}: {done.stderr!r}"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([program, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    if done.stderr or done.returncode not in (0, 1, -signal.SIGPIPE):
        yield f"a closed pipe ended with {done.returncode}: {done.stderr!r}"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    problems = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name, text in FILES.items():
            (folder / name).write_text(text)
        for arguments, code, words in CASES:
            problems += check_case(program, arguments, code, words, folder)
        problems += check_verbs(program, folder)
        before = folder_state(folder)
        problems += check_values(program, folder)
        if folder_state(folder) != before:
            problems.append("values that options cannot have left a file")
        problems += check_outlets(program, folder)
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(CASES)} wrong uses, each refused in one line")


if __name__ == "__main__":
    main()
