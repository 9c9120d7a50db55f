#!/usr/bin/env python3
"""The long checks: what takes too long for every change. Writes docs/evidence.md: what each said, its key numbers, time, commit, machine.

usage: evidence.py [--list] [--all] [NAME...]

Without names, every check whose result on the page is not of the present sources or does not hold: so a run that was interrupted goes on
where it was. --all: all of them anew. With names, only those; the others keep what the page says of them.
"""

import datetime
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/evidence.md"
FUZZ_SECONDS = 300
SKIPPED = 77  # exit code of a check that lacks what it needs
KEPT_LINES = 60


class Check:
    """`keys`: patterns of the numbers for the table, searched in what the command says; each match stands there."""

    def __init__(self, name, claim, command, *keys):
        self.name, self.claim, self.command, self.keys = name, claim, command, keys


def unit(room, cases, name_filter="*", variable="KIZZASI_CASES"):
    return f"{variable}={cases} build/bin/{room}_test --gtest_brief=1 --gtest_filter='{name_filter}'"


def fresh(target, most_minutes):
    return ("rm -rf build/fresh && git clone -q . build/fresh && cd build/fresh && SECONDS=0 && "
            f"CCACHE_DISABLE=1 make {target} && echo \"make {target}: $SECONDS s\" && [ $SECONDS -le {60 * most_minutes} ]; code=$?; "
            "cd ../..; rm -rf build/fresh; exit $code")


def with_peers(command):
    """KIZZASI_PEERS: a Python that has the outside solvers and monitors (bench/peers/*.py say which)."""
    return ('if [ -z "${KIZZASI_PEERS:-}" ]; then echo "skipped: KIZZASI_PEERS names no Python with the peers of bench/peers"; '
            f'exit {SKIPPED}; fi; "$KIZZASI_PEERS" {command}')


CHECKS = [
    Check("step-equals-run", "step equals run, lanes equal lanes alone, restored equals uninterrupted, bit for bit, over 100,000 random configurations "
          "of every backbone; forward equals run to 1e-5 on a fifth of them", unit("model", 100_000, "Backbone.Steps*:Backbone.Forward*"),
          r"[\d,]+ configurations: .*"),
    Check("sessions", "the same laws of whole sessions and forecasts, every head and channel mode, over 20,000 random models",
          unit("engine", 20_000, "Session.*:Forecast.*:RealTime.StepsOfRandom*"), r"\d+ models: .*", r"\[  PASSED  \] .*"),
    Check("verify", "every published case of every backbone within its own tolerance: outputs, states, splits, gradients",
          "build/bin/model_test --gtest_brief=1 --gtest_filter='Verification.*'", r"\[  PASSED  \] .*"),
    Check("allocations", "no allocation in 10,000 steps of one stream: every backbone in its sizes tiny and small, every preset; in 500 of base; "
          "of the default backbone in its sizes large and xlarge",
          unit("engine", 10_000, "RealTime.StepsOfTheLargest*:*SizeSteps*:*PresetSteps*", "KIZZASI_STEPS") + " && "
          "build/bin/model_test --gtest_brief=1 --gtest_filter='*Allocations*'", r"\[  PASSED  \] .*"),
    Check("history", "the time of a step does not grow with history: a million steps of every backbone", "build/bin/kizzasi_history 1000000",
          r"^\w+ +\d+ steps: .*"),
    Check("silence", "the time of a step does not grow in silence: a million frames of zeros after a signal, every backbone; no denormal number in "
          "any state on the way", "build/bin/kizzasi_history 1000000 silent && " + unit("engine", 1_000_000, "Silence*", "KIZZASI_STEPS"),
          r"^\w+ +\d+ steps: .*", r"\[  PASSED  \] .*"),
    Check("emitted", "ten million values out of the guard under random limits, none outside, as double and as text",
          unit("logic", 10_000_000, "Emitted*"), r"\d+ values emitted .*"),
    Check("adversary", "a million hostile frames each, under 200 random sets of constraints of all classes (coupled, choices, windows, norms, the past of "
          "conditions; conditions about the future), judged by a checker that tries the definitions: none broken in silence, and none called "
          "infeasible that is not", "KIZZASI_FRAMES=1000000 " + unit("logic", 100_000_000, "Adversary*"), r"\d+ frames emitted .*"),
    Check("endurance", "a thousand million hostile frames under random boxes, rates and polytopes, held against the numbers of the limits: none outside, "
          "none called infeasible", "build/bin/kizzasi_endurance 1000000000", r"\d+ frames under .*"),
    Check("solvers", "10,000 random nearest points up to 16 variables: the distance is that of an outside solver to 1e-9, the conditions of optimality "
          "hold to 1e-9; and times beside six of them", with_peers("bench/peers/solvers.py build/bin/kizzasi --problems 10000"), r"^ +(?:conditions|distance|"
          r"statuses).*", r"^ +(?:kizzasi|daqp|quadprog|piqp|osqp|proxqp|clarabel) .*", r"skipped: .*"),
    Check("monitors", "nanoseconds a sample of a response property, flat in its width, beside RTAMT and Reelay",
          with_peers("bench/peers/monitors.py build/bin/kizzasi_bench"), r"^\| (?:Kizzasi|RTAMT|Reelay).*", r"skipped: .*"),
    Check("decoding", "speculative decoding has the target's law over 1,000,000 tokens; no beam leaves one of 100,000 random automata",
          unit("decode", 1_000_000, "Speculative.What*") + " && " + unit("decode", 100_000, "BeamSearch.NoBeam*"), r"\[  PASSED  \] .*"),
    Check("emitted-by-sessions", "ten million values out of whole sessions and forecasts of random models under random limits, none outside, as double "
          "and as text; missing, infinite and huge inputs among them", unit("engine", 10_000_000, "Limits*"), r"\d+ values emitted .*"),
    Check("kills", "a training killed 20 times at random moments always has a valid checkpoint, and resumed ends with the bytes of an uninterrupted one",
          "tests/cli/killed_training.py build/bin/kizzasi 20", r"\d+ kills.*"),
    Check("fuzz", f"every fuzz target {FUZZ_SECONDS} s without a crash", f"tools/fuzz.py {FUZZ_SECONDS}", r"\w+: \d+ runs in .*"),
    Check("events", "labelled events of five kinds, put into real recordings, are found; in clean recordings at most twice the wanted rate of false alarms",
          "tests/cli/labelled_events.py build/bin/kizzasi 20", r"^(?:recall|false alarms).*"),
    Check("quality", "the demo's models beat every simple method, cover what they promise, and leave no limit",
          "build/bin/kizzasi demo --json --quiet --out build/evidence/demo | tools/quality.py", r"^(?:holds|FAILS) .*"),
    Check("etth1", "mean squared error on ETTh1 under the standard protocol, at most 0.405 on average",
          'if [ -z "${KIZZASI_FIELD:-}" ]; then echo "skipped: KIZZASI_FIELD does not name the folder that holds ett/ETTh1.csv"; exit '
          f'{SKIPPED}; fi; tools/etth1.py build/bin/kizzasi "$KIZZASI_FIELD/ett/ETTh1.csv"', r"skipped: .*", r"^ +(?:\d+|mean) .*"),
    Check("learning", "every backbone learns: better than its short-cut and than a copy trained out of order, on five series; the best runs on with "
          "Lorenz' system for at least 4 Lyapunov times", "tools/learning.py build/bin/kizzasi", r"\d+ backbones .*", r"Lorenz: .*"),
    Check("constrained-training", "a price on broken limits in training lowers what forecasts break before projection at least 10 times, at no more than 2 % "
          "more error (a solar plant, four limits, five seeds)", "tools/constrained_training.py build/bin/kizzasi", r"broken checks: .*"),
    Check("quantization", "int8 changes the forecasts' error of every backbone by at most 1 %", "tools/quantization.py build/bin/kizzasi",
          r"\d+ backbones; .*"),
    Check("m4", "one global model for the hourly series of M4, mean MASE at most 0.80",
          'if [ -z "${KIZZASI_FIELD:-}" ]; then echo "skipped: KIZZASI_FIELD does not name the folder that holds m4"; exit '
          f'{SKIPPED}; fi; tools/m4_hourly.py build/bin/kizzasi "$KIZZASI_FIELD/m4"', r"skipped: .*", r"^ +\w.*: MASE .*"),
    Check("neon", "every kernel test on the vector unit of 64-bit Arm, cross-compiled, under emulation", "tools/test_neon", r"skipped: .*",
          r"\[  PASSED  \] .*"),
    Check("kernels", "kernels, scans and steps (up to size base) beside the core's own limit", "build/bin/kizzasi_bench --benchmark_min_time=0.2 '--benchmark_filter=-step/.*/(large|xlarge)$' 2>&1",
          r"^selective_scan(?:_backward)?/512/1536/16.*"),
    Check("speed", "one frame through each preset beside its limit", "build/bin/kizzasi bench --seconds 20", r"^(?:audio|robotics|sensor|lightweight|video|control|custom|forecast|preset) .*"),
    Check("fresh-demo", "make demo from a fresh clone, build included, without a compiler cache, within 12 minutes", fresh("demo", 12), r"^make demo: .*"),
    Check("fresh-test", "make test from a fresh clone, without a compiler cache, within 40 minutes", fresh("test", 40), r"^make test: \d.*"),
]


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


def sources():
    """A number for the present state of everything that decides about a result, committed or not."""
    what = [".", ":!docs", ":!*.md"]
    new = git("ls-files", "--others", "--exclude-standard", "--", *what).split()
    text = git("ls-files", "-s", "--", *what) + git("diff", "HEAD", "--", *what)
    text += "".join(f"{name}\n{hashlib.sha1((ROOT / name).read_bytes()).hexdigest()}\n" for name in new)
    return hashlib.sha1(text.encode()).hexdigest()[:10]


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    names = re.findall(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def run(check):
    print(f"{check.name}: {check.claim}", flush=True)
    (ROOT / "build/evidence").mkdir(parents=True, exist_ok=True)
    commit = git("describe", "--always").strip()  # of the beginning: what is committed meanwhile was not run
    began = time.monotonic()
    said = []
    with subprocess.Popen(["bash", "-c", f"set -o pipefail; {check.command}"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace") as process:
        for line in process.stdout:
            line = line.replace(f"{ROOT}/", "")
            if line.strip():
                said.append(line.rstrip() if not line.startswith("## ") else " " + line.rstrip())  # no heading of the page
                print("  " + said[-1], flush=True)
    code, took = process.returncode, time.monotonic() - began
    keys = [match.group(0).strip() for key in check.keys for line in said if (match := re.search(key, line))]
    result = "holds" if code == 0 else "skipped" if code == SKIPPED else f"**fails** ({code})"
    print(f"{check.name}: {result} after {took:.0f} s", flush=True)
    row = [result, "; ".join(re.sub(r"\s+", " ", key) for key in keys).replace("|", "/") or "-", f"{took:.0f} s", datetime.date.today().isoformat(),
           commit]
    if len(said) > KEPT_LINES:
        said = said[: KEPT_LINES // 3] + [f"... {len(said) - KEPT_LINES} lines ..."] + said[-(KEPT_LINES - KEPT_LINES // 3):]
    section = ["", f"## {check.name}", "", f"{processor()}; sources {sources()}", "", "```text", f"$ {check.command}", *said, "```"]
    return row, section


def recorded():
    """What the page holds: for each check its row and its section."""
    if not PAGE.exists():
        return {}
    lines = PAGE.read_text().splitlines()
    rows = {match.group(1): [cell.strip() for cell in line.split("|")[3:-1]] for line in lines if (match := re.match(r"\| ([\w-]+) \|", line))}
    sections, name = {}, None
    for line in lines:
        if line.startswith("## "):
            name = line[3:]
            sections[name] = [""]
        if name:
            sections[name].append(line)
    for section in sections.values():
        while section[-1] == "":
            section.pop()
    return {name: (row, sections[name]) for name, row in rows.items() if name in sections}


def write(results):
    lines = ["# Evidence", "", "The long checks, as `make evidence` last ran them. `tools/evidence.py NAME` runs one of them again.", "",
             "| check | claim | result | numbers | time | date | commit |", "|---|---|---|---|---|---|---|"]
    shown = [(check, *results[check.name]) for check in CHECKS if check.name in results]
    lines += [f"| {check.name} | {check.claim} | {' | '.join(row)} |" for check, row, _ in shown]
    for _, _, section in shown:
        lines += section
    PAGE.write_text("\n".join(lines) + "\n")


def main():
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    known = [check.name for check in CHECKS]
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"there is no check '{unknown[0]}' (expected one of {', '.join(known)})")
    results = recorded()

    def fulfilled(name):
        return name in results and results[name][0][0] == "holds" and f"sources {sources()}" in results[name][1][3]

    if "--list" in sys.argv:
        print("\n".join(f"{'done' if fulfilled(check.name) else 'open'}  {check.name:<20} {check.claim}" for check in CHECKS))
        return
    for check in CHECKS:
        if check.name in names or not names and ("--all" in sys.argv or not fulfilled(check.name)):
            done = run(check)
            results = recorded() | {check.name: done}  # read again: another run may have written meanwhile
            write(results)
    if failed := [name for name in known if name in results and results[name][0][0].startswith("**fails")]:
        sys.exit(f"does not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main()
