"""A step of the package kizzasi 0.2.3 (an older program of the same name) with 256 / 16 / 4. Runs in an environment that has that package.

    python older_package.py MODEL SECONDS
"""
import json
import sys
import time

import kizzasi
import numpy

MODELS = {"mamba": "MAMBA", "mamba2": "MAMBA2", "rwkv7": "RWKV", "s4d": "S4"}


def main():
    model, seconds = sys.argv[1], float(sys.argv[2])
    if model not in MODELS:
        print(json.dumps({"missing": "no such model there"}))
        return
    config = kizzasi.Config(input_dim=1, output_dim=1, hidden_dim=256, state_dim=16, num_layers=4,
                            model_type=getattr(kizzasi.ModelType, MODELS[model]))
    predictor = kizzasi.Predictor(config)
    x = numpy.zeros(1, dtype=numpy.float32)
    predictor.step(x)
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        for _ in range(10):
            predictor.step(x)
        best = min(best, (time.perf_counter() - start) / 10)
    print(json.dumps({"step_us": best * 1e6}))


main()
