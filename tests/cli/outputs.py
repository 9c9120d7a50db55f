#!/usr/bin/env python3
"""usage: outputs.py KIZZASI SMALL_MODEL

Every verb, where what it writes cannot be written. Files: a full disk, a limit on the size of files, a device that takes nothing, a folder
without permission, no folder at all: code 1 or 2, one line that names the file, nothing half-written, and an older file of that name as it
was. Standard output: a reader that goes away is no error, a full disk is.
The full disk is a small tmpfs and the refused folder is entered as another user where this runs as root; what a machine does not allow is
said and left out.
"""

import json
import math
import os
import pathlib
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CASE = SOURCE / "tests/golden/backbones/mamba2"
ROOT = os.geteuid() == 0
OLD = b"what stood here before\n"
problems = []


def waves(rows, names, step="h"):
    lines = ["time," + ",".join(names)]
    for i in range(rows):
        cells = [f"{2 + math.sin(2 * math.pi * i / 24 + k) + 0.1 * math.sin(i * i * 0.01):.4f}" for k in range(len(names))]
        lines.append(f"{i * 900}," + ",".join(cells))
    return "\n".join(lines) + "\n"


TRAIN = ["train", "wave.csv", "--targets", "x", "--horizon", "4", "--context", "16", "--steps", "2", "--d-model", "16", "--quiet"]
# What is written where; OUT stands for the path. The words hold for files that are small and for none.
WRITERS = {
    "check --report": ["check", "wave.csv", "--report", "OUT"],
    "train --output": [*TRAIN, "--checkpoint", "elsewhere.checkpoint", "-o", "OUT"],
    "train --checkpoint": [*TRAIN, "--checkpoint", "OUT", "-o", "elsewhere.kz"],
    "backtest --report": ["backtest", "wave.csv", "--targets", "x", "--horizon", "4", "--methods", "naive", "--report", "OUT"],
    "forecast --report": ["forecast", "m.kz", "d.csv", "--report", "OUT", "--quiet"],
    "detect --output": ["detect", "m.kz", "d.csv", "--calibrate", "20,90", "-o", "OUT", "--quiet"],
    "detect --report": ["detect", "m.kz", "d.csv", "--calibrate", "20,90", "--report", "OUT", "-o", "elsewhere.csv", "--quiet"],
    "monitor --report": ["monitor", "once[0, 3] x > 2", "wave.csv", "--report", "OUT", "--quiet"],
    "demo --markdown": ["demo", "--data", "bundle", "--act", "road", "--effort", "0.001", "--out", "elsewhere", "--markdown", "OUT", "--json", "--quiet"],
}
DEMO = ["demo", "--data", "bundle", "--act", "road", "--effort", "0.001", "--json", "--quiet", "--out", "OUT"]
# Every verb with words on which it answers at once.
READERS = {
    "check": ["check", "wave.csv"],
    "train": [*TRAIN, "-o", "piped.kz"],
    "backtest": ["backtest", "wave.csv", "--targets", "x", "--horizon", "4", "--methods", "naive"],
    "forecast": ["forecast", "m.kz", "d.csv"],
    "stream": ["stream", "m.kz"],
    "detect": ["detect", "m.kz", "d.csv", "--calibrate", "20,90"],
    "constraints": ["constraints", "--limit", "x >= 0", "--data", "wave.csv"],
    "monitor": ["monitor", "once[0, 3] x > 2", "wave.csv"],
    "guard": ["guard", "--limit", "x <= 2", "wave.csv"],
    "inspect": ["inspect", "m.kz"],
    "verify": ["verify", "CASE.safetensors", "--against", "CASE.io.safetensors"],
    "bench": ["bench", "--seconds", "0.01", "--preset", "sensor"],
    "demo": ["demo", "--data", "bundle", "--act", "road", "--effort", "0.001", "--out", "piped"],
}


def state(folder):
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def run(words, folder, user=None, **more):
    command = [str(folder / "kizzasi"), *words]
    if user is not None:
        command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
    return subprocess.run(command, cwd=folder, capture_output="stdout" not in more, text=True, timeout=300, stdin=subprocess.DEVNULL, **more)


def refused(what, words, out, folder, user=None, **more):
    """Runs the words with OUT in place; nothing in its folder may change."""
    before = state(out.parent) if out.parent.exists() else {}
    done = run([word if word != "OUT" else str(out) for word in words], folder, user, **more)
    shown = f"{what}: {' '.join(words)}"
    if done.returncode not in (1, 2):
        problems.append(f"{shown}: code {done.returncode}: {done.stderr!r}")
    if done.stdout:
        problems.append(f"{shown}: printed {done.stdout[:80]!r}")
    if done.stderr.count("\n") != 1 or not done.stderr.startswith(f"kizzasi {words[0]}: ") or not any(name in done.stderr for name in (out.name, "elsewhere")):
        problems.append(f"{shown}: the message is {done.stderr!r}")
    if (state(out.parent) if out.parent.exists() else {}) != before:
        problems.append(f"{shown}: left or changed something beside {out}")


def small_files():
    # What a signal would do is to be an error of the write.
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))


def test_a_training_whose_model_finds_no_room_can_go_on(folder):
    """The checkpoint was written, the model cannot be: the message says where what was learned lies, and --resume makes the model of it."""
    done = run([*TRAIN, "-o", "early.kz"], folder)
    assert done.returncode == 0, done.stderr
    place = folder / "late"
    place.mkdir()
    if not ROOT or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)], capture_output=True).returncode != 0:
        return
    try:
        done = run([*TRAIN, "-o", "late/m.kz", "--checkpoint", "late.checkpoint"], folder)
        if done.returncode != 1 or "late/m.kz" not in done.stderr or "--resume" not in done.stderr or "late.checkpoint" not in done.stderr:
            problems.append(f"a model without room: code {done.returncode}, {done.stderr!r}")
        if list(place.iterdir()):
            problems.append(f"a model without room: left {list(place.iterdir())}")
    finally:
        subprocess.run(["umount", str(place)], check=True)
    done = run([*TRAIN, "-o", "late.kz", "--checkpoint", "late.checkpoint", "--resume"], folder)
    if done.returncode != 0 or (folder / "late.kz").read_bytes() != (folder / "early.kz").read_bytes():
        problems.append(f"resumed after a full disk: code {done.returncode}, {done.stderr!r}, or another file")


def test_limit_on_the_size_of_files(folder):
    place = folder / "limited"
    place.mkdir()
    for name, words in WRITERS.items():
        for old in (False, True):
            out = place / "out.file"
            if old:
                out.write_bytes(OLD)
            refused(f"limit {name}", words, out, folder, preexec_fn=small_files)
            out.unlink(missing_ok=True)
    refused("limit demo --out", DEMO, place / "demo", folder, preexec_fn=small_files)


def test_full_disk(folder):
    place = folder / "full"
    place.mkdir()
    if not ROOT or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)], capture_output=True).returncode != 0:
        print("left out: no tmpfs can be mounted here")
        return
    try:
        for name, words in WRITERS.items():
            for old in (False, True):
                out = place / "out.file"
                if old:
                    out.write_bytes(OLD)
                (place / "ballast").write_bytes(b"")
                with open(place / "ballast", "wb", buffering=0) as ballast:  # all the room that is left
                    try:
                        while ballast.write(b"x" * 4096):
                            pass
                    except OSError:
                        pass
                refused(f"full disk {name}", words, out, folder)
                out.unlink(missing_ok=True)
                (place / "ballast").unlink()
        refused("full disk demo --out", DEMO, place / "demo", folder)
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_device_that_takes_nothing(folder):
    place = folder / "devices"
    place.mkdir()
    out = place / "full"
    try:
        os.mknod(out, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        with open(out, "wb", buffering=0) as device:
            device.write(b"x")
    except PermissionError:
        print("left out: no device can be made here")
        return
    except OSError:
        pass  # full, as it should be
    for name, words in WRITERS.items():
        refused(f"device {name}", words, out, folder)
        if not stat.S_ISCHR(out.stat().st_mode):
            problems.append(f"{name}: put a file in place of a device")
            out.unlink()
            os.mknod(out, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    null = place / "null"
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    done = run(["check", "wave.csv", "--report", str(null)], folder)
    if done.returncode != 0 or not stat.S_ISCHR(null.stat().st_mode):
        problems.append(f"a device that takes everything: code {done.returncode}, {done.stderr!r}")


def test_no_permission_and_no_folder(folder):
    place = folder / "shut"
    place.mkdir()
    user = 65534 if ROOT else None
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(0o755)
    if ROOT and run(["--version"], folder, user).returncode != 0:
        print("left out: another user cannot start the program here")
        user = None
    for name, words in WRITERS.items():
        words = [word.replace("elsewhere", "open/elsewhere") if word != "OUT" else word for word in words]
        (folder / "open").mkdir(exist_ok=True)
        (folder / "open").chmod(0o777)
        for old in (False, True):
            out = place / "out.file"
            if old:
                out.write_bytes(OLD)
            place.chmod(0o555)
            if user is not None or not ROOT:
                refused(f"no permission {name}", words, out, folder, user)
            place.chmod(0o755)
            out.unlink(missing_ok=True)
        refused(f"no folder {name}", words, folder / "nowhere" / "out.file", folder)
        refused(f"a folder of that name {name}", words, place, folder)
        if list((folder / "open").iterdir()) and name != "train --output":
            problems.append(f"{name}: left {list((folder / 'open').iterdir())}")
    place.chmod(0o555)
    if user is not None or not ROOT:
        refused("no permission demo --out", DEMO, place / "demo", folder, user)
    place.chmod(0o755)


def test_links_are_followed(folder):
    (folder / "real.html").write_bytes(OLD)
    (folder / "link.html").symlink_to("real.html")
    done = run(["check", "wave.csv", "--report", "link.html"], folder)
    if done.returncode != 0 or not (folder / "link.html").is_symlink() or (folder / "real.html").read_bytes() == OLD:
        problems.append(f"a symbolic link was replaced: {done.stderr!r}")


def test_nothing_that_is_read_is_written_over(folder):
    """A file that an argument or another option names is never the place of an output, however it is spelled."""
    (folder / "limits.toml").write_text('[[constraint]]\nthat = "x >= 0"\n')
    (folder / "fields.toml").write_text("decimal = 'auto'\n")
    for name, words in WRITERS.items():
        verb = words[0]
        if verb != "demo":
            words = [*words, "--config", "fields.toml"]
        if verb in ("train", "backtest", "forecast"):
            words = [*words, "--limits", "limits.toml"]
        if name == "forecast --report":
            words = [*words, "--future", "long.csv"]
        if verb == "detect":
            words = [*words, "--normal", "long.csv"]
        files = [word for word in words if word.endswith((".csv", ".kz", ".toml", ".checkpoint"))]
        for file in files:
            (folder / "alias").unlink(missing_ok=True)
            (folder / "alias").symlink_to(file)
            for spelled in (file, f"./{file}", f"{folder}/bundle/../{file}", "alias"):
                before = state(folder)
                done = run([word if word != "OUT" else spelled for word in words], folder)
                if done.returncode != 2 or "written over" not in done.stderr or done.stderr.count("\n") != 1 or done.stdout:
                    problems.append(f"{name} over {file} as {spelled}: code {done.returncode}, {done.stderr!r}")
                if state(folder) != before:
                    problems.append(f"{name} over {file} as {spelled}: changed files")
    (folder / "alias").unlink(missing_ok=True)
    (folder / "x.checkpoint").write_text(waves(300, ["x"]))
    done = run(["train", "x.checkpoint", "-o", "x", "--steps", "1", "--horizon", "4", "--context", "16"], folder)
    if done.returncode != 2 or "written over" not in done.stderr:
        problems.append(f"a checkpoint over the recording: code {done.returncode}, {done.stderr!r}")


def test_standard_output(folder):
    for verb, words in READERS.items():
        for more in ([], ["--json"]):
            feed = {"input": (folder / "d.csv").read_text()} if verb == "stream" else {"stdin": subprocess.DEVNULL}
            def start(stdout):
                return subprocess.run([folder / "kizzasi", *words, *more, "--quiet"], cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True,
                                      timeout=300, **feed)
            reader, writer = os.pipe()
            os.close(reader)
            done = start(writer)
            os.close(writer)
            if done.returncode != 0 or done.stderr:
                problems.append(f"{verb} {more} into a closed pipe: code {done.returncode}, {done.stderr!r}")
            with open("/dev/full", "w") as full:
                done = start(full)
            if done.returncode != 1 or "standard output" not in done.stderr or done.stderr.count("\n") != 1:
                problems.append(f"{verb} {more} on a full disk: code {done.returncode}, {done.stderr!r}")
            done = start(subprocess.PIPE)
            if more:
                lines = done.stdout.splitlines() if verb in ("stream", "guard", "monitor") else [done.stdout]
                try:
                    answers = [json.loads(line) for line in lines]
                    if not all(isinstance(answer, dict) for answer in answers) or done.stderr:
                        problems.append(f"{verb} --json: no object, or remarks beside --quiet: {done.stderr!r}")
                except json.JSONDecodeError as fault:
                    problems.append(f"{verb} --json: {fault}: {done.stdout[:200]!r}")
                if re.search(r"[ \[]-0(\.0*)?[,}\]\n]", done.stdout):
                    problems.append(f"{verb} --json: a zero has a sign: {done.stdout[:200]!r}")
                loud = subprocess.run([folder / "kizzasi", *words, "--json"], cwd=folder, capture_output=True, text=True, timeout=300, **feed)
                if verb not in ("bench", "demo") and loud.stdout != done.stdout:
                    problems.append(f"{verb} --json says something else without --quiet")


def main():
    program, small_model = map(os.path.abspath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        folder.chmod(0o755)
        shutil.copy(program, folder / "kizzasi")
        subprocess.run([small_model, folder / "m.kz"], check=True)
        case = sorted(CASE.glob("*.io.safetensors"))[0]
        stem = case.name.removesuffix(".io.safetensors")
        for path in CASE.glob(f"{stem}.*"):
            shutil.copy(path, folder / path.name.replace(stem, "CASE", 1))
        (folder / "wave.csv").write_text(waves(300, ["x", "y"]))
        names = ["flow", "level", "valve", "hour"]
        (folder / "d.csv").write_text(waves(300, names))
        (folder / "long.csv").write_text(waves(900, names))
        (folder / "bundle").mkdir()
        (folder / "bundle/road_traffic_hourly.csv").write_text(waves(2000, ["vehicles"]).replace("\n", "\n", 1))
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(folder)
                print("tried", name)
    if problems:
        sys.exit("\n".join(problems))


main()
