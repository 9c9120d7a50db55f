#!/usr/bin/env python3
"""usage: fuzz.py SECONDS [TARGET...]

Runs every fuzz target (csv, npy, wav, constraint, safetensors, rwkv_cpp) for that long, from seeds made of the files that the tests read. A line a
target: runs, branches covered, inputs kept. Exit 1 where one crashes, hangs, or finds nothing beyond its seeds. The corpus stays in
build/fuzz/corpus, so that the next run goes on from there; what crashed lies in build/fuzz/crashes.
"""

import pathlib
import re
import struct
import subprocess
import sys
import wave

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/fuzz"
GOLDEN = ROOT / "tests/golden"
LONGEST = {"csv": 1024}  # bytes of an input, where 8192 would leave too few runs a second


def sounds():
    for width in (1, 2, 3, 4):
        for channels in (1, 3):
            path = BUILD / f"corpus/seed.{width}.{channels}.wav"
            with wave.open(str(path), "wb") as out:
                out.setparams((channels, width, 8000, 0, "NONE", ""))
                out.writeframes(bytes(range(1, 1 + 8 * width * channels)))
            yield path.name, path.read_bytes()
            path.unlink()
    for bits, code in ((32, "f"), (64, "d")):  # floating point
        data = struct.pack(f"<6{code}", 0, 0.5, -1, 1e9, float("nan"), float("inf"))
        form = struct.pack("<HHIIHH", 3, 1, 8000, 8000 * bits // 8, bits // 8, bits)
        body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
        yield f"float{bits}.wav", b"RIFF" + struct.pack("<I", len(body)) + body


def longest(name):
    return LONGEST.get(name, 8192)


def files(*patterns):
    for pattern in patterns:
        for path in sorted(GOLDEN.glob(pattern)):
            if 0 < path.stat().st_size <= longest(""):
                yield path.name, path.read_bytes()


def recordings():
    for path in sorted(GOLDEN.glob("csv/*.csv")):
        yield path.name, path.read_bytes()[: longest("csv")]


def constraints():
    for name in ("parse", "projection"):
        for number, line in enumerate((GOLDEN / f"logic/{name}.jsonl").read_text().splitlines()):
            for text in re.findall(r'"(?:text|that)": *"([^"]*)"', line):
                yield f"{name}{number}", text.encode()
    page = (ROOT / "docs/constraints.md").read_text()
    for number, text in enumerate(re.findall(r"`([^`\n]*(?:[<>=]| in )[^`\n]*)`", page)):
        yield f"page{number}", text.encode()


def quantised_models():
    for kind, values, size in ((0, 1, 4), (1, 1, 2), (2, 32, 18), (3, 32, 20), (7, 32, 22), (8, 32, 24), (9, 32, 34)):
        entry = struct.pack("<3i2i", 2, 10, kind, 32, 2) + b"emb.weight" + bytes(range(size)) * (64 // values)
        yield f"type{kind}", struct.pack("<6i", 0x67676D66, 101, 2, 32, 1, kind) + entry
    yield "old", struct.pack("<6i", 0x67676D66, 100, 2, 1, 1, 0) + struct.pack("<4i", 1, 1, 0, 1) + b"w" + struct.pack("<f", 0.5)


SEEDS = {
    "csv": recordings,
    "npy": lambda: files("formats/**/*.npy", "formats/**/*.npz"),
    "wav": sounds,
    "constraint": constraints,
    "safetensors": lambda: files("formats/**/*.safetensors", "backbones/*/*.safetensors", "training/*.safetensors"),
    "rwkv_cpp": quantised_models,
}


def build():
    for words in (["cmake", "--preset", "fuzz", "-DKIZZASI_TESTS=OFF", "-DKIZZASI_BENCH=OFF", "--log-level=WARNING"],
                  ["cmake", "--build", str(BUILD), "--target", *(f"{name}_fuzz" for name in SEEDS)]):
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout[-3000:]}")


def run(name, seconds):
    corpus, crashes = BUILD / "corpus" / name, BUILD / "crashes"
    for folder in (corpus, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    seeds = 0
    for seed, data in SEEDS[name]():
        (corpus / f"seed-{seed}").write_bytes(data)
        seeds += 1
    words = [str(BUILD / f"bin/{name}_fuzz"), str(corpus), f"-max_total_time={seconds}", f"-max_len={longest(name)}", "-timeout=20", "-rss_limit_mb=3000",
             "-print_final_stats=1", "-close_fd_mask=3", f"-artifact_prefix={crashes}/{name}-"]
    # What the libraries under test say to standard error would fill gigabytes; the fuzzer keeps a line of its own.
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    covered = [int(n) for n in re.findall(r"cov: (\d+)", done.stdout)]
    runs = int((re.findall(r"stat::number_of_executed_units: (\d+)", done.stdout) or [0])[-1])
    begun = re.search(r"INITED.*?cov: (\d+)", done.stdout)
    first, last = int(begun.group(1)) if begun else 0, max(covered, default=0)
    kept = len(list(corpus.iterdir()))
    good = done.returncode == 0 and seeds > 0 and last > 0 and kept > seeds
    print(f"{name}: {runs} runs in {seconds} s, {last} branches covered ({first} by what it began with), {kept} inputs kept of {seeds} seeds"
          + ("" if done.returncode == 0 else f", ended with {done.returncode}"), flush=True)
    if not good:
        print("\n".join(done.stdout.splitlines()[-25:]), flush=True)
    return good


def main():
    if len(sys.argv) < 2 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    names = [word.removesuffix("_fuzz") for word in sys.argv[2:]] or list(SEEDS)
    if unknown := [name for name in names if name not in SEEDS]:
        sys.exit(f"there is no fuzz target '{unknown[0]}' (expected one of {', '.join(SEEDS)})")
    build()
    (BUILD / "corpus").mkdir(parents=True, exist_ok=True)
    if not all([run(name, int(sys.argv[1])) for name in names]):
        sys.exit(1)


main()
