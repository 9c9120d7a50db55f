#!/usr/bin/env python3
"""usage: kizzasi demo --json | quality.py

Whether the demo's models are as good as they have to be, from the numbers that the demo prints. One line a demand; exit 1 where one is
not met.
"""

import json
import sys

RIDGE_SHARE = 1.02  # of the arm's ridge that the model's error may be
COVERAGE_POINTS = 2.0


class Demands:
    def __init__(self):
        self.missed = 0

    def hold(self, good, text):
        self.missed += not good
        print(f"{'holds' if good else 'FAILS'}  {text}")


def judge(act, demands):
    name = act["act"]
    model, *_ = [m for m in act["methods"] if m["name"] == "Kizzasi"]
    simple = [m for m in act["methods"] if not m["own"] and m["problem"] is None]
    if name == "arm":
        ridge, *_ = [m for m in simple if m["name"].startswith("ridge")]
        for step in (1, 10, 50):
            ours, theirs = model[f"rmse_angles_{step}"], ridge[f"rmse_angles_{step}"]
            demands.hold(ours <= RIDGE_SHARE * theirs, f"{name} RMSE of the angles at step {step}: {ours:.4g} rad, {ours / theirs:.3f} times its ridge")
    else:
        for metric in ("mae", "crps"):
            best = min((m for m in simple if metric in m), key=lambda m: m[metric])
            ours, theirs = model[metric], best[metric]
            demands.hold(ours < theirs, f"{name} {metric.upper()}: {ours:.4g} against {theirs:.4g} of the best simple method ({best['name']})")
    for nominal in (80, 95):
        covered = 100 * model[f"coverage_{nominal}"]
        demands.hold(abs(covered - nominal) <= COVERAGE_POINTS, f"{name} intervals of {nominal} %: {covered:.1f} % inside")
    demands.hold(model["outside"] == 0, f"{name} limits: {model['outside']} of {model['values']} values outside")


def main():
    acts = json.load(sys.stdin)["acts"]
    demands = Demands()
    for act in acts:
        judge(act, demands)
    if [act["act"] for act in acts] != ["road", "plant", "arm"]:
        demands.hold(False, "all three acts were played")
    sys.exit(1 if demands.missed else 0)


main()
