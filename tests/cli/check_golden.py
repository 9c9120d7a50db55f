#!/usr/bin/env python3
"""usage: check_golden.py KIZZASI FOLDER

`kizzasi check --json NAME.csv` prints every field of NAME.expected.json with its value, for each file of FOLDER (or of $KIZZASI_ORACLES/csv).
Numbers are equal to 1e-12, everything else exactly. `file`, `bytes` and `note` speak of the file itself, `values` of single cells (a test of
the reader); `lenient` and `with_zone` hold under those options. A file that is refused ends with code 1, says why in one line, and prints the
reason as JSON all the same.
"""

import json
import math
import os
import pathlib
import subprocess
import sys

KIZZASI = os.path.abspath(sys.argv[1])
FOLDER = pathlib.Path(os.environ["KIZZASI_ORACLES"]) / "csv" if "KIZZASI_ORACLES" in os.environ else pathlib.Path(sys.argv[2])
NOT_PRINTED = {"file", "bytes", "note", "values", "lenient", "with_zone"}
problems = []


def check(path, *options):
    done = subprocess.run([KIZZASI, "check", path.name, "--json", *options], cwd=path.parent, capture_output=True, text=True, timeout=60)
    try:
        return json.loads(done.stdout), done
    except json.JSONDecodeError as fault:
        problems.append(f"{path.name} {options}: standard output is not one JSON value ({fault}): {done.stdout[:80]!r} {done.stderr!r}")
        return {}, done


def same(expected, actual, where):
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name, value in expected.items():
            if name == "step_tolerance_s":
                continue
            if name not in actual:
                problems.append(f"{where}/{name} is not printed; expected {value!r}")
            elif name == "step_s" and "step_tolerance_s" in expected:
                if abs(actual[name] - value) > expected["step_tolerance_s"]:
                    problems.append(f"{where}/{name}: {actual[name]!r}, expected {value!r}")
            else:
                same(value, actual[name], f"{where}/{name}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for i, (a, b) in enumerate(zip(expected, actual)):
            same(a, b, f"{where}/{i}")
    elif isinstance(expected, bool) or isinstance(actual, bool) or not (isinstance(expected, (int, float)) and isinstance(actual, (int, float))):
        if expected != actual or type(expected) is not type(actual):
            problems.append(f"{where}: {actual!r}, expected {expected!r}")
    elif not math.isclose(expected, actual, rel_tol=1e-12, abs_tol=1e-12):
        problems.append(f"{where}: {actual!r}, expected {expected!r}")


def main():
    cases = sorted(FOLDER.glob("*.csv"))
    for path in cases:
        expected = json.loads(path.with_suffix("").with_suffix(".expected.json").read_text())
        answer, done = check(path)
        same({name: value for name, value in expected.items() if name not in NOT_PRINTED}, answer, path.name)
        refused = "error" in expected
        if done.returncode != int(refused) or refused != bool(done.stderr) or done.stderr.count("\n") > 1:
            problems.append(f"{path.name}: code {done.returncode}, standard error {done.stderr!r}")
        if refused != ("error" in answer):
            problems.append(f"{path.name}: {'no ' if refused else ''}reason of a refusal is printed")
        if "lenient" in expected:
            same(expected["lenient"], check(path, "--lenient")[0].get("lenient"), f"{path.name} --lenient")
        if "with_zone" in expected:
            zoned = check(path, "--zone", expected["with_zone"]["zone"])[0]
            same(expected["with_zone"], zoned.get("with_zone"), f"{path.name} --zone")
    if problems or len(cases) < 63:
        sys.exit("\n".join(problems) or f"{len(cases)} files in {FOLDER}")
    print(f"{len(cases)} files give the answer beside them.")


main()
