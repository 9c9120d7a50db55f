#!/usr/bin/env python3
"""The long checks: what takes too long for every change. Writes docs/evidence.md with the date, the machine, each command and what it said.

usage: evidence.py [--list] [NAME...]

Without names, all of them, for hours. With names, only those; the others keep what docs/evidence.md says of them.
"""

import datetime
import json
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


class Check:
    def __init__(self, name, claim, command):
        self.name, self.claim, self.command = name, claim, command


def unit(room, cases, name_filter="*"):
    return f"KIZZASI_CASES={cases} build/bin/{room}_test --gtest_brief=1 --gtest_filter='{name_filter}'"


CHECKS = [
    Check("step-equals-run", "step equals run, lanes equal lanes alone, restored equals uninterrupted, forward equals run to 1e-5: 100,000 "
          "random configurations of every backbone", unit("model", 100_000)),
    Check("sessions", "the same laws of whole sessions and forecasts over 20,000 random models", unit("engine", 20_000)),
    Check("emitted", "10,000,000 emitted values under random limits, none outside", unit("logic", 10_000_000, "Emitted*")),
    Check("fuzz", f"every fuzz target {FUZZ_SECONDS} s without a crash",
          "cmake --preset fuzz --log-level=WARNING >/dev/null && cmake --build build/fuzz >/dev/null && "
          f"for target in build/fuzz/bin/*_fuzz; do echo \"$target\"; $target -max_total_time={FUZZ_SECONDS} -print_final_stats=1 2>&1 | "
          "grep -E 'stat::number_of_executed_units|ERROR|SUMMARY'; done"),
    Check("kernels", "kernels and scans beside the core's own limit", "build/bin/kizzasi_bench --benchmark_min_time=0.2"),
    Check("speed", "one frame through each preset beside its limit", "build/bin/kizzasi bench --seconds 20"),
    Check("fresh-demo", "make demo from a fresh clone, build included, without a compiler cache",
          "rm -rf build/fresh && git clone -q . build/fresh && cd build/fresh && time CCACHE_DISABLE=1 make demo"),
    Check("fresh-test", "make test from a fresh clone, without a compiler cache",
          "rm -rf build/fresh && git clone -q . build/fresh && cd build/fresh && time CCACHE_DISABLE=1 make test"),
]


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    names = re.findall(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def head():
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return commit or "unknown"


def run(check):
    print(f"{check.name}: {check.claim}", flush=True)
    began = time.monotonic()
    done = subprocess.run(["bash", "-c", check.command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    took = time.monotonic() - began
    said = [line.rstrip() for line in done.stdout.splitlines() if line.strip()][-40:]
    print("\n".join(said[-5:]), f"\n{check.name}: ended with {done.returncode} after {took:.0f} s", flush=True)
    return {"name": check.name, "claim": check.claim, "command": check.command, "code": done.returncode, "seconds": round(took),
            "date": datetime.date.today().isoformat(), "commit": head(), "machine": processor(), "said": said}


def write(results):
    lines = ["# Evidence", "", "The long checks, as `make evidence` last ran them. `tools/evidence.py NAME` runs one of them again.", "",
             "| check | claim | result | time | date | commit |", "|---|---|---|---|---|---|"]
    for result in results:
        good = "holds" if result["code"] == 0 else f"**fails** ({result['code']})"
        lines.append(f"| [{result['name']}](#{result['name']}) | {result['claim']} | {good} | {result['seconds']} s | {result['date']} "
                     f"| {result['commit']} |")
    for result in results:
        lines += ["", f"## {result['name']}", "", f"{result['machine']}", "", "```text", f"$ {result['command']}", *result["said"], "```"]
    PAGE.write_text("\n".join(lines) + "\n")


def main():
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    known = [check.name for check in CHECKS]
    if "--list" in sys.argv:
        print("\n".join(f"{check.name:<18} {check.claim}" for check in CHECKS))
        return
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"there is no check '{unknown[0]}' (expected one of {', '.join(known)})")
    kept_at = ROOT / "docs/evidence.json"
    kept = {each["name"]: each for each in json.loads(kept_at.read_text())} if kept_at.exists() else {}
    for check in CHECKS:
        if not names or check.name in names:
            kept[check.name] = run(check)
            kept_at.write_text(json.dumps(list(kept.values())))
            write([kept[name] for name in known if name in kept])
    if failed := [name for name in known if name in kept and kept[name]["code"] != 0]:
        sys.exit(f"does not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main()
