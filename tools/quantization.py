#!/usr/bin/env python3
"""usage: quantization.py KIZZASI [--architectures A,B,...] [--out docs/quantization.md]

What fewer bits cost and gain, for every backbone: each is trained on the road traffic, rounded to bf16, f16, int8 and int4 by `convert`, and measured:
bytes of weights, time of a step, and the forecasts' error against f32. One table. Results are kept in build/evidence/quantization.json as they
come; begun again, it goes on. Fails where int8 changes the error by more than 1 %.
"""

import argparse
import json
import pathlib
import sys
import tempfile

from backbone_tables import Kept, architectures, run

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "build/evidence/quantization.json"
DATA = ROOT / "data/bundle/road_traffic_hourly.csv"
TRAIN = ["--targets", "vehicles", "--horizon", "24", "--season", "168", "--seasons", "4", "--d-model", "64", "--n-layers", "2", "--steps", "300", "--quiet"]
PRECISIONS = ["bf16", "f16", "int8", "int4"]


def step_us(kizzasi, model, folder):
    return json.loads(run([kizzasi, "bench", "--model", model, "--seconds", "0.5", "--json"], folder))["step_us"]


def measure(kizzasi, architecture):
    entry = {}
    with tempfile.TemporaryDirectory() as folder:
        run([kizzasi, "train", DATA, "-o", "m.kz", "--architecture", architecture, *TRAIN], folder)
        entry["f32"] = {"step_us": step_us(kizzasi, "m.kz", folder)}
        for precision in PRECISIONS:
            answer = json.loads(run([kizzasi, "convert", "m.kz", "-o", f"{precision}.kz", "--quantize", precision, "--data", DATA, "--most-loss", "1000",
                                     "--json"], folder))
            entry["f32"]["bytes"] = answer["weight_bytes_f32"]
            entry[precision] = {"bytes": answer["weight_bytes"], "loss": answer["measured"]["loss"], "step_us": step_us(kizzasi, f"{precision}.kz", folder)}
    return entry


def page(kept):
    text = """# Fewer bits

Written by `tools/quantization.py`: every backbone (d_model 64, 2 layers), trained on the road traffic and rounded by `kizzasi convert`. Loss: by how much
the error of 200 forecasts of 24 hours (CRPS) changes against f32; the linear short-cut, which stays f32, does a large part of the forecast. Models of this size lie in the nearest cache, so time is a matter of instructions
here; where the memory is the limit, [performance.md](performance.md) has the gain.

"""
    head = ["backbone", "f32 KiB", "f32 step us"] + [f"{p} {what}" for p in PRECISIONS for what in ("KiB", "loss %", "us")]
    rows = []
    for name, entry in kept.items():
        row = [f"`{name}`", f"{entry['f32']['bytes'] / 1024:.0f}", f"{entry['f32']['step_us']:.1f}"]
        for precision in PRECISIONS:
            e = entry[precision]
            row += [f"{e['bytes'] / 1024:.0f}", f"{100 * e['loss']:+.2f}", f"{e['step_us']:.1f}"]
        rows.append(row)
    return text + "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[2])
    parser.add_argument("kizzasi", type=pathlib.Path)
    parser.add_argument("--architectures")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/quantization.md")
    options = parser.parse_args()
    kizzasi = options.kizzasi.resolve()
    store = Kept(KEPT, kizzasi)
    kept, every = store.results, architectures(kizzasi)
    for architecture in options.architectures.split(",") if options.architectures else every:
        if architecture not in kept:
            kept[architecture] = measure(kizzasi, architecture)
            store.save()
    options.out.write_text(page(kept))
    worst = max(kept, key=lambda name: abs(kept[name]["int8"]["loss"]))
    loss = 100 * kept[worst]["int8"]["loss"]
    print(f"{len(kept)} backbones; int8 changes the error most in {worst}: {loss:+.2f} %")
    sys.exit(abs(loss) > 1)


if __name__ == "__main__":
    main()
