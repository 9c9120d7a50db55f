#!/usr/bin/env python3
"""usage: killed_training.py KIZZASI [KILLS]

Kills a training with SIGKILL at random moments, resumes it each time, and compares its model file, byte for byte, with that of a training
that was never interrupted. After every kill the checkpoint must be a whole one. Also: equal seeds and steps give equal files whatever the
number of threads, and another seed another file.
"""

import math
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

KIZZASI = str(pathlib.Path(sys.argv[1]).resolve())
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
STEPS = 60 + 40 * KILLS


def recording(path):
    rows = ["time_s,x,y"]
    for i in range(900):
        x = math.sin(2 * math.pi * i / 24) + 0.3 * math.sin(i * i * 0.01)
        rows.append(f"{i},{x:.6f},{math.cos(i * 0.37):.6f}")
    path.write_text("\n".join(rows) + "\n")


def command(out, *more):
    return [KIZZASI, "train", "data.csv", "-o", out, "--targets", "x", "--observed", "y", "--horizon", "4", "--context", "24", "--season", "24",
            "--steps", str(STEPS), "--checkpoint-every", "5", "--validate-every", "20", "--patience", "0", *more]


def train(folder, out, *more):
    done = subprocess.run(command(out, "--quiet", *more), cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.args}: exit {done.returncode}\n{done.stderr}"
    return (folder / out).read_bytes()


def main():
    random.seed(7)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        recording(folder / "data.csv")
        began = time.monotonic()
        whole = train(folder, "whole.kizzasi", "--threads", "2")
        took = time.monotonic() - began
        assert whole == train(folder, "one.kizzasi", "--threads", "1"), "one thread gives another file than two"
        assert whole != train(folder, "other.kizzasi", "--seed", "2"), "another seed gives the same file"

        checkpoint, model = folder / "killed.kizzasi.checkpoint", folder / "killed.kizzasi"
        kills = ends = missing = 0

        def at_the_end():
            assert model.read_bytes() == whole, "the killed and resumed training ends elsewhere"
            model.unlink()
            checkpoint.unlink(missing_ok=True)

        while kills < KILLS:
            resume = ["--resume"] if checkpoint.exists() else []
            with open(folder / "said.log", "w") as said:
                run = subprocess.Popen(command("killed.kizzasi", *resume), cwd=folder, stdout=subprocess.DEVNULL, stderr=said)
                time.sleep(random.uniform(0.05, 0.9) * took)
                if run.poll() is not None:  # it was done before the blow; the next one begins anew
                    assert run.returncode == 0, (folder / "said.log").read_text()
                    at_the_end()
                    ends += 1
                    continue
                run.send_signal(signal.SIGKILL)
                run.wait()
            kills += 1
            # One is written before the first step, so none may lack once a step was told of.
            stepped = resume or re.search(r"^step ", (folder / "said.log").read_text(), re.MULTILINE)
            assert checkpoint.exists() or not stepped, "no checkpoint lies there"
            if checkpoint.exists():
                looked = subprocess.run([KIZZASI, "inspect", checkpoint.name], cwd=folder, capture_output=True, text=True)
                assert looked.returncode == 0, looked.stderr
            else:
                missing += 1
            assert not model.exists(), "a model file lies there before the end"
        train(folder, "killed.kizzasi", *(["--resume"] if checkpoint.exists() else []))
        at_the_end()
        left = [p.name for p in folder.iterdir() if p.suffix not in (".csv", ".kizzasi", ".checkpoint", ".log")]
        print(f"{kills} kills, {missing} of them before the first checkpoint; {1 + ends} of {1 + ends} trainings ended with the bytes of the "
              f"uninterrupted one; files left beside: {left}")


main()
