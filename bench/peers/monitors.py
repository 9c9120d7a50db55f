#!/usr/bin/env python3
"""usage: monitors.py KIZZASI_BENCH [--samples N] [--rounds N]

Monitors of temporal logic beside RTAMT and Reelay, in turn in one run: nanoseconds a sample for the response property
always[0,w] (a -> eventually[0,w/2] b), w = 100, 1000, 10000. Ours: kizzasi_bench, with the verdict alone, and with the robustness. RTAMT: its discrete
online monitor of the same formula (pastified). Reelay has past operators alone: historically[0:w] (c since[w/2:] ...) in the past form, verdict and
robustness. What is not installed is named and left out.

A virtual environment: python3 -m venv /tmp/peers && /tmp/peers/bin/pip install rtamt reelay
"""

import argparse
import importlib
import json
import math
import subprocess
import sys
import time

WIDTHS = (100, 1000, 10000)


def signal(count):
    return [(math.sin(0.37 * i), math.cos(0.11 * i)) for i in range(count)]


def ours(program, rounds):
    run = subprocess.run([program, "--benchmark_filter=^monitor_", "--benchmark_format=json", "--benchmark_min_time=0.2", f"--benchmark_repetitions={rounds}"],
                         capture_output=True, text=True, check=True)
    best = {}
    for one in json.loads(run.stdout)["benchmarks"]:
        if one.get("run_type") == "iteration":
            name = one["run_name"]
            best[name] = min(best.get(name, math.inf), one["s/sample"] * 1e9)
    return best


def rtamt(width, frames):
    module = importlib.import_module("rtamt")
    spec = module.StlDiscreteTimeSpecification()
    spec.declare_var("a", "float")
    spec.declare_var("b", "float")
    spec.spec = f"always[0,{width}]((a >= 0.5) -> (eventually[0,{width // 2}](b >= 0.5)))"
    spec.parse()
    spec.pastify()
    begin = time.perf_counter()
    for i, (a, b) in enumerate(frames):
        spec.update(i, [("a", a), ("b", b)])
    return (time.perf_counter() - begin) / len(frames) * 1e9


def reelay(width, frames, semantics):
    module = importlib.import_module("reelay")
    half = width // 2
    # The property looked at from the end of its windows: half a window ago, a was false or b has held since.
    pattern = f"historically[0:{width}]((not (once[{half}:{half}]{{a >= 0.5}})) or (once[0:{half}]{{b >= 0.5}}))"
    monitor = module.discrete_timed_monitor(pattern=pattern, semantics=semantics, condense=False)
    inputs = [{"a": a, "b": b} for a, b in frames]
    begin = time.perf_counter()
    for one in inputs:
        monitor.update(one)
    return (time.perf_counter() - begin) / len(frames) * 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("bench")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    frames = signal(options.samples)
    mine = ours(options.bench, options.rounds)
    print("| monitor | " + " | ".join(f"w = {w}, ns" for w in WIDTHS) + " |\n|---|" + "---|" * len(WIDTHS))
    for name, kind in (("Kizzasi, verdict", "monitor_verdict"), ("Kizzasi, robustness", "monitor_robustness")):
        print(f"| {name} | " + " | ".join(f"{mine[f'{kind}/{w}']:.1f}" for w in WIDTHS) + " |", flush=True)
    for name, measure in (("RTAMT, robustness", rtamt), ("Reelay, verdict", lambda w, f: reelay(w, f, "boolean")),
                          ("Reelay, robustness", lambda w, f: reelay(w, f, "robustness"))):
        try:
            times = [min(measure(w, frames) for _ in range(options.rounds)) for w in WIDTHS]
        except ModuleNotFoundError as missing:
            print(f"left out: {name} ({missing})", file=sys.stderr)
            continue
        kind = "monitor_verdict" if "verdict" in name else "monitor_robustness"
        print(f"| {name} | " + " | ".join(f"{t:.0f} ({t / mine[f'{kind}/{w}']:.0f} x)" for t, w in zip(times, WIDTHS)) + " |", flush=True)


if __name__ == "__main__":
    main()
