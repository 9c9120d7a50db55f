#!/usr/bin/env python3
"""Measures ours and its peers in turn, in one run on one thread, and writes the tables of docs/performance.md.

    bench/peers/compare.py [--torch PYTHON] [--older PYTHON] [--libtorch PROGRAM] [--ggml PROGRAM] [--seconds S] [--rounds N]
                           [--out docs/performance.md]

PYTHON: an interpreter that has the peer: torch with transformers and mambapy, or the older package kizzasi 0.2.3. PROGRAM: one of the peers in C++
beside this file, built as its first lines say. A peer without one is left out, and the page says so. Of the rounds the fastest counts, for ours
and for theirs.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OURS = ROOT / "build/bin/kizzasi_peers"
MODELS = ["mamba", "mamba2", "rwkv7", "s4d", "llama", "lstm"]
PRECISIONS = ["f32", "bf16", "f16", "int8", "int4"]
BLOCKS = ["1", "7", "64", "512"]
# Twenty of its predictors of that kind raise the memory of the process by 352 KiB each.
OLDER = """The older package's Mamba-2 of 256/16/4 takes 352 KiB of memory, weights and state together: it is a twentieth of the published architecture,
and its time is no time of the same work."""
FORMATS = {"f32": "f32", "bf16": "bf16", "f16": "f16", "int8": "q8_0", "int4": "q4_0"}  # ggml's: int8 in blocks of 32
NAMES = {"mamba": "Mamba 256/16/4", "mamba2": "Mamba-2 256/16/4", "rwkv7": "RWKV-7 256/4", "s4d": "S4D 256/16/4",
         "llama": "Transformer 256, window 512", "lstm": "LSTM 256/4"}


def ask(*words):
    """One line of JSON, or why there is none."""
    one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=os.environ | one_thread, cwd="/")
    if done.returncode != 0:
        return {"missing": (done.stderr.strip().splitlines() or ["no answer"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def faster(kept, new, keys):
    """What is kept of two answers: the smaller number under each key."""
    if kept is None or "missing" in kept:
        return new
    return kept | {key: min(kept[key], new[key]) for key in keys if key in new}


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(theirs, ours, key):
    return f"{number(theirs[key])} ({theirs[key] / ours[key]:.1f} x)" if theirs and key in theirs else "-"


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def measure(options):
    answers = {}

    def one(name, keys, *words):
        answers[name] = faster(answers.get(name), ask(*words), keys)

    seconds = options.seconds
    for _ in range(options.rounds):
        for model in MODELS:
            for precision in PRECISIONS:
                one(("step", model, precision), ["step_us", "limit_us", "lanes_step_us"], OURS, "step", model, precision, seconds)
            if options.torch:
                one(("torch", model), ["step_us"], options.torch, HERE / "torch_models.py", "step", model, seconds)
            if options.libtorch and model == "lstm":
                one(("libtorch", model), ["step_us"], options.libtorch, "step", model, seconds)
            if options.older:
                one(("older", model), ["step_us"], options.older, HERE / "older_package.py", model, seconds)
        for model in MODELS:
            one(("train", model), ["train_ms"], OURS, "train", model, 2 * seconds)
            if options.torch:
                one(("torch train", model), ["train_ms"], options.torch, HERE / "torch_models.py", "train", model, 2 * seconds)
                if model == "mamba":
                    one(("mambapy train", model), ["train_ms"], options.torch, HERE / "torch_models.py", "train_mambapy", model, 2 * seconds)
        for rows in ("1", "8", "64", "512"):
            for precision, theirs in FORMATS.items():
                one(("product", rows, precision), ["linear_us", "gemm_us"], OURS, "product", rows, precision, seconds / 2)
                if options.ggml:
                    one(("ggml product", rows, precision), ["linear_us"], options.ggml, "product", theirs, rows, seconds / 2)
            if options.torch:
                one(("torch product", rows), ["linear_us"], options.torch, HERE / "torch_models.py", "product", rows, seconds / 2)
            if options.libtorch:
                one(("libtorch product", rows), ["linear_us"], options.libtorch, "product", rows, seconds / 2)
        for model in ("lstm16", "s4d50k"):
            for block in BLOCKS:
                one(("audio", model, block), ["row_us"], OURS, "audio", model, block, seconds / 2)
    return answers


def page(options, answers):
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    torch = next((a["torch"] for name, a in answers.items() if name[0] == "torch" and "torch" in a), None)
    text = f"""# Performance

Written by `bench/peers/compare.py` on {datetime.date.today()}: {cpu}, one thread, the fastest of {options.rounds} rounds, ours and the peers
measured in turn in one run. Numbers in brackets are the peer's time divided by ours.

Peers: {"PyTorch " + torch + " with transformers" if torch else "PyTorch was not at hand"}{"; kizzasi 0.2.3, an older program of the same name" if options.older else ""}.
Through Python they carry the cost of its calls, as they do for their users; libtorch and ggml are called from C++. RWKV-7 and S4D are their published recurrences in PyTorch.
{OLDER if options.older else ""}

## One frame

The limit is what the weights and the state take to pass through this core's memory, at the bandwidth measured in the same run, and the cost of
ten calls a layer.

"""
    rows = []
    for model in MODELS:
        for precision in PRECISIONS:
            ours = answers[("step", model, precision)]
            first = precision == "f32"
            rows.append([NAMES[model] if first else "", precision, f"{ours['weight_bytes'] / 1024:,.0f}", number(ours["step_us"]),
                         number(ours["limit_us"]), f"{ours['step_us'] / ours['limit_us']:.2f}",
                         f"{answers[('step', model, 'f32')]['step_us'] / ours['step_us']:.2f}",
                         ratio(answers.get(("torch", model)), ours, "step_us") if first else "",
                         ratio(answers.get(("libtorch", model)), ours, "step_us") if first else "",
                         ratio(answers.get(("older", model)), ours, "step_us") if first else ""])
    text += table(["model", "weights", "KiB", "step us", "limit us", "times its limit", "times as fast as f32", "PyTorch us", "libtorch us",
                   "older package us"], rows)
    text += "\n## 64 streams together\n\n"
    rows = []
    for model in MODELS:
        for precision in ("f32", "int8"):
            ours = answers[("step", model, precision)]
            rows.append([NAMES[model], precision, number(ours["step_us"]), number(ours["lanes_step_us"] / ours["lanes"]),
                         f"{ours['step_us'] * ours['lanes'] / ours['lanes_step_us']:.1f}"])
    text += table(["model", "weights", "alone us", "a stream of 64, us", "throughput, times one by one"], rows)
    text += "\n## Training\n\nForward and backward of 32 windows of 64 frames, gradients of every weight.\n\n"
    rows = []
    for model in MODELS:
        ours, theirs = answers[("train", model)], answers.get(("torch train", model), {})
        rows.append([NAMES[model], number(ours["train_ms"]), f"{1e3 / ours['train_ms']:.2f}", ratio(theirs, ours, "train_ms"),
                     ratio(answers.get(("mambapy train", model)), ours, "train_ms")])
    text += table(["model", "ms", "batches a second", "PyTorch ms", "mambapy ms"], rows)
    text += "\n## Products\n\nRows times a matrix of 768 outputs and 256 inputs; weights packed once, but for the column that says otherwise.\n\n"
    rows = []
    for count in ("1", "8", "64", "512"):
        for precision in FORMATS:
            ours, plain = answers[("product", count, precision)], precision == "f32"
            rows.append([count if plain else "", precision, number(ours["linear_us"]), number(ours["gemm_us"]) if plain else "",
                         *(ratio(answers.get((peer, count)), ours, "linear_us") if plain else "" for peer in ("torch product", "libtorch product")),
                         ratio(answers.get(("ggml product", count, precision)), ours, "linear_us")])
    text += table(["rows", "weights", "us", "both operands anew us", "PyTorch us", "libtorch us", "ggml us"], rows)
    text += "\n## Audio at 48 kHz\n\nTimes real time, by the frames that a call takes.\n\n"
    rows = []
    for model, name in (("lstm16", "LSTM-16"), ("s4d50k", "S4D of 50,000 parameters")):
        rows.append([name, *(f"{1e6 / 48000 / answers[('audio', model, block)]['row_us']:.0f}" for block in BLOCKS)])
    text += table(["model", *(f"{block} frames" for block in BLOCKS)], rows)
    missing = sorted({f"{' '.join(name)}: {a['missing']}" for name, a in answers.items() if "missing" in a})
    if missing:
        text += "\n## Not measured\n\n" + "".join(f"- {line}\n" for line in missing)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch")
    parser.add_argument("--older")
    parser.add_argument("--libtorch")
    parser.add_argument("--ggml")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/performance.md")
    options = parser.parse_args()
    text = page(options, measure(options))
    options.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
