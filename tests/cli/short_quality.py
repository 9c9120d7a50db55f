#!/usr/bin/env python3
"""usage: short_quality.py KIZZASI

The demo's promises in small, without a look at the clock. A short training on the traffic of data/bundle must beat every simple method in MAE and
CRPS; and each model of data/models, judged again over every origin of the demo, must be what docs/quality.md says of it. Intervals cover what
they should to a stated number of points; not one value may lie outside its limits.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KIZZASI = str(pathlib.Path(sys.argv[1]).resolve())
EFFORT = "0.4"  # of the demo's steps
COVERAGE_POINTS = {"short": 4.0, "shipped": 2.5}
RECORDED_SHARE = 0.02  # by which an error may differ from the page: other machines round otherwise

MODELS = [  # model, recording, heading on the page, horizon, stride
    ("road", "road_traffic_hourly.csv", "Road traffic", 24, 12),
    ("plant", "solar_plant_15min.csv", "Solar plant", 96, 8),
    ("arm", "robot_arm_200hz.csv", "Robot arm", 50, 1),
]


def run(words, folder):
    done = subprocess.run([KIZZASI, *words], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{done.args}: exit {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout)


def expect_covered(what, coverage, points):
    for nominal, share in coverage.items():
        assert abs(100 * share - nominal) <= points, f"{what}: {100 * share:.1f} % lie in intervals of {nominal} %, more than {points} points off"


def test_short_training(folder):
    act, = run(["demo", "--act", "road", "--effort", EFFORT, "--data", str(ROOT / "data/bundle"), "--out", ".", "--json", "--quiet"], folder)["acts"]
    model, = [m for m in act["methods"] if m["name"] == "Kizzasi"]
    simple = [m for m in act["methods"] if not m["own"]]
    assert len(simple) >= 8 and all(m["problem"] is None for m in simple), simple
    for metric in ("mae", "crps"):
        best = min(simple, key=lambda m: m[metric])
        print(f"short training on road: {metric} {model[metric]:.4g}, best simple method {best[metric]:.4g} ({best['name']})")
        assert model[metric] < best[metric], f"{metric} {model[metric]} is no better than {best['name']}"
    expect_covered("short training on road", {80: model["coverage_80"], 95: model["coverage_95"]}, COVERAGE_POINTS["short"])
    assert model["values"] > 3000 and model["outside"] == 0, model


def recorded(heading):
    """MAE, RMSE, CRPS of our model in the table under that heading of the page."""
    page = (ROOT / "docs/quality.md").read_text()
    row = re.search(rf"^## {heading}.*?^Kizzasi +(.*?)$", page, re.MULTILINE | re.DOTALL)
    assert row, f"docs/quality.md says nothing of '{heading}'"
    return dict(zip(("mae", "rmse", "crps"), map(float, row.group(1).split())))


def test_shipped(folder, name, recording, heading, horizon, stride):
    answer = run(["backtest", str(ROOT / f"data/models/{name}.kizzasi"), str(ROOT / "data/bundle" / recording), "--horizon", str(horizon),
                  "--stride", str(stride), "--split", "70,10", "--missing", "interpolate", "--methods", "naive", "--json", "--quiet"], folder)
    model, expected = answer["methods"][0], recorded(heading)
    coverage = {round(100 * i["nominal"]): i["coverage"] for i in model["intervals"] if round(100 * i["nominal"]) in (80, 95)}
    print(f"{name}: " + ", ".join(f"{metric} {model[metric]:.4g} (page {expected[metric]:.4g})" for metric in expected)
          + f", {100 * coverage[80]:.1f} % in 80 %, {100 * coverage[95]:.1f} % in 95 %, {model['outside_limits']} of {model['limits_checked']} outside")
    for metric, value in expected.items():
        assert abs(model[metric] - value) <= RECORDED_SHARE * value, f"{name}: {metric} is {model[metric]}, docs/quality.md says {value}"
    expect_covered(name, coverage, COVERAGE_POINTS["shipped"])
    assert model["limits_checked"] >= 1000 and model["outside_limits"] == 0, model


with tempfile.TemporaryDirectory() as scratch:
    test_short_training(scratch)
    for each in MODELS:
        test_shipped(scratch, *each)
