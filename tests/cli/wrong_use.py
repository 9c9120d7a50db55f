#!/usr/bin/env python3
"""usage: wrong_use.py KIZZASI

Wrong uses of the command line, each in an empty folder that holds a few small recordings. Each must end with the stated code, say what is
wrong in one line on standard error, print nothing on standard output (with --json, too), and leave no file behind.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

GOOD = "time,temp,flow\n" + "".join(f"2024-01-01T{h:02d}:00:00Z,{20 + h % 5},{h}\n" for h in range(24))
FILES = {
    "good.csv": GOOD,
    "empty.csv": "",
    "head.csv": "time,temp\n",
    "broken.kz": "this is no model",
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
    (["bench", "surplus"], 2, ["'surplus'", "too many"]),
    (["bench", "a", "b", "--json"], 2, ["'a'", "too many"]),
    (["bench", "--", "--json"], 2, ["too many"]),
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
    # Published checkpoints.
    (["verify"], 2, ["CASE.safetensors is missing"]),
    (["verify", "none.safetensors"], 2, ["--against"]),
    (["verify", "none.safetensors", "--against", "none.io.safetensors"], 1, ["none.safetensors", "cannot be opened"]),
    (["verify", "broken.kz", "--against", "broken.kz"], 1, ["broken.kz", "damaged"]),
    (["verify", "empty.csv", "--against", "empty.csv"], 1, ["empty.csv"]),
    (["verify", ".", "--against", "broken.kz"], 1, ["folder"]),
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
        if run(program, ["help", verb], folder).stdout != done.stdout:
            yield f"kizzasi help {verb} is not what {verb} --help says"
        yield from check_case(program, [verb, "--no-such-option"], 2, ["--no-such-option"], folder)
        yield from check_case(program, [verb, "--json", "--threads", "many"], 2, ["--threads"], folder)


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
        problems += check_outlets(program, folder)
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(CASES)} wrong uses, each refused in one line")


if __name__ == "__main__":
    main()
