#!/usr/bin/env python3
"""usage: train_verb.py KIZZASI

What `train` promises beside its model: Ctrl-C saves and says so, and --resume then reaches the file of a run that was never interrupted, bit
for bit; a checkpoint of another run is refused; --budget ends the training; sizes that the rows cannot hold are refused at once.
"""

import json
import math
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile

KIZZASI = os.path.abspath(sys.argv[1])
USUAL = ["--targets", "x", "--observed", "y", "--horizon", "4", "--context", "24", "--season", "24", "--steps", "170", "--validate-every", "20",
         "--checkpoint-every", "7", "--patience", "0"]


def recording(rows):
    lines = ["time_s,x,y"]
    for i in range(rows):
        x = math.sin(2 * math.pi * i / 24) + 0.3 * math.sin(i * i * 0.01)
        lines.append(f"{i},{x:.6f},{math.cos(i * 0.37):.6f}")
    return "\n".join(lines) + "\n"


def train(*words, code=0, memory=None):
    limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))) if memory else None
    done = subprocess.run([KIZZASI, "train", *words], capture_output=True, text=True, timeout=300, preexec_fn=limit)
    assert done.returncode == code, f"{words}: exit {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


def interrupted_at_step(step, *words, by=signal.SIGINT):
    """Sends the signal once the log names that step; the outputs after it."""
    child = subprocess.Popen([KIZZASI, "train", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if line.startswith("step") and int(line.split()[1]) >= step:
            child.send_signal(by)
            break
    out, err = child.communicate(timeout=300)
    return child.returncode, out, err


def test_an_interrupted_training_is_saved_and_resumes_to_the_same_file():
    train("d.csv", "-o", "whole.kz", *USUAL, "--quiet")
    whole = pathlib.Path("whole.kz").read_bytes()
    for asked, by in ((20, signal.SIGINT), (60, signal.SIGTERM)):
        name = f"stopped{asked}.kz"
        code, out, err = interrupted_at_step(asked, "d.csv", "-o", name, *USUAL, by=by)
        assert code == 130, (code, out, err)
        assert "Interrupted" in out and "--resume" in out and f"{name}.checkpoint" in out, out
        card = json.loads(subprocess.run([KIZZASI, "inspect", name, "--json"], capture_output=True, text=True, check=True).stdout)
        assert 20 <= card["training"]["steps"] < 170, card["training"]
        train("d.csv", "-o", name, *USUAL, "--quiet", "--resume")
        assert pathlib.Path(name).read_bytes() == whole, f"stopped at {asked} and resumed, the file is another"
        # Resuming what is finished changes nothing.
        train("d.csv", "-o", name, *USUAL, "--quiet", "--resume")
        assert pathlib.Path(name).read_bytes() == whole
    code, out, _ = interrupted_at_step(20, "d.csv", "-o", "json.kz", *USUAL, "--json")
    assert code == 130 and json.loads(out)["end"] == "stopped by the user", out


def test_an_end_that_was_moved_is_no_part_of_the_course():
    """Steps that end between two validations, resumed to the usual number: the usual file."""
    shorter = [word if word != "170" else "50" for word in USUAL]
    train("d.csv", "-o", "moved.kz", *shorter, "--quiet")
    train("d.csv", "-o", "moved.kz", *USUAL, "--quiet", "--resume")
    assert pathlib.Path("moved.kz").read_bytes() == pathlib.Path("whole.kz").read_bytes()


def test_a_price_on_broken_limits_resumes_to_the_same_file():
    pathlib.Path("limits.toml").write_text('[[constraint]]\nname = "cap"\nthat = "x <= 1"\n[[constraint]]\nthat = "abs(rate(x)) <= 0.4"\n')
    words = [*USUAL, "--limits", "limits.toml", "--penalty", "augmented", "--penalty-weight", "10"]
    whole = json.loads(train("d.csv", "-o", "paid.kz", *words, "--json", "--quiet")[0])
    code, out, err = interrupted_at_step(60, "d.csv", "-o", "stopped.kz", *words)
    assert code == 130, (code, out, err)
    resumed = json.loads(train("d.csv", "-o", "stopped.kz", *words, "--json", "--quiet", "--resume")[0])
    assert pathlib.Path("stopped.kz").read_bytes() == pathlib.Path("paid.kz").read_bytes()
    assert resumed["history"] == whole["history"] and resumed["broken_before_projection"] == whole["broken_before_projection"]
    last = whole["history"][-1]["limits"]
    assert [one["condition"] for one in last] == ["cap", "abs(rate(x)) <= 0.4"], last
    assert any(one["multiplier"] > 0 for one in last), last
    # The same limits without a price: they stand in the file, and what is broken is told, too.
    free = json.loads(train("d.csv", "-o", "free.kz", *USUAL, "--limits", "limits.toml", "--json", "--quiet")[0])
    assert "limits" not in free["history"][-1] and "price" not in free["history"][-1], free["history"][-1]
    broken, paid = (answer["broken_before_projection"]["model"]["mean_size"] for answer in (free, whole))
    assert 0 < paid < broken, (paid, broken)
    card = json.loads(subprocess.run([KIZZASI, "inspect", "paid.kz", "--json"], capture_output=True, text=True, check=True).stdout)
    assert len(card["constraints"]) == 2, card["constraints"]
    _, err = train("d.csv", "-o", "stopped.kz", *words, "--limit", "x >= -9", "--quiet", "--resume", code=1)
    assert "another run" in err, err


def test_resuming_another_run_is_refused():
    before = pathlib.Path("whole.kz").read_bytes(), pathlib.Path("whole.kz.checkpoint").read_bytes()
    for other in (["--seed", "2"], ["--horizon", "5"], ["--learning-rate", "0.1"], ["--d-model", "48"], ["--train-share", "0.6"]):
        words = [word for word in USUAL]
        if other[0] in words:
            at = words.index(other[0])
            del words[at:at + 2]
        _, err = train("d.csv", "-o", "whole.kz", *words, *other, "--resume", "--quiet", code=1)
        assert "another run" in err and "whole.kz.checkpoint" in err and err.count("\n") == 1, err
    pathlib.Path("e.csv").write_text(recording(901))
    _, err = train("e.csv", "-o", "whole.kz", *USUAL, "--resume", "--quiet", code=1)
    assert "another run" in err, err
    _, err = train("d.csv", "-o", "none.kz", *USUAL, "--resume", "--quiet", code=1)
    assert "none.kz.checkpoint" in err, err
    pathlib.Path("broken.checkpoint").write_text("nothing")
    _, err = train("d.csv", "-o", "none.kz", *USUAL, "--resume", "--checkpoint", "broken.checkpoint", "--quiet", code=1)
    assert "broken.checkpoint" in err, err
    assert not pathlib.Path("none.kz").exists()
    assert before == (pathlib.Path("whole.kz").read_bytes(), pathlib.Path("whole.kz.checkpoint").read_bytes())


def test_months_are_those_of_the_calendar():
    def month(i):
        return f"{2000 + i // 12}-{1 + i % 12:02d}-01"

    rows = [f"{month(i)},{100 + 10 * math.sin(i * math.pi / 6) + i % 5},{i % 12}" for i in range(264)]
    pathlib.Path("months.csv").write_text("time,x,plan\n" + "\n".join(rows[:240]) + "\n")
    pathlib.Path("plan.csv").write_text("time,plan\n" + "\n".join(f"{month(i)},{i % 12}" for i in range(240, 264)) + "\n")
    train("months.csv", "-o", "months.kz", "--horizon", "12", "--context", "24", "--known-future", "plan", "--steps", "1", "--quiet")
    run = lambda *words, text=None: subprocess.run([KIZZASI, *words], capture_output=True, text=True, input=text, check=True, timeout=60)
    done = run("forecast", "months.kz", "months.csv", "-h", "24", "--json", "--future", "plan.csv")
    answer = json.loads(done.stdout)
    assert answer["unknown_future_values"] == 0, "a plan of months meets the months ahead"
    assert [step["time"][:10] for step in answer["steps"]] == [month(i) for i in range(240, 264)], answer["steps"]
    for ahead in (1, 3):
        lines = run("stream", "months.kz", "--plan", "plan.csv", "-h", str(ahead), "--quiet", text="\n".join(["time,x,plan", *rows[:30]]) + "\n").stdout.splitlines()[1:]
        times = [line.split(",")[0][:10] for line in lines]
        assert times == [month(i + 1 + h) for i in range(30) for h in range(ahead)], times


def test_noise_alarms_as_often_as_asked_for():
    noise = random.Random(3)
    pathlib.Path("noise.csv").write_text("time,x\n" + "".join(f"{60 * i},{noise.gauss(50, 3):.4f}\n" for i in range(4000)))
    train("noise.csv", "-o", "noise.kz", "--horizon", "4", "--context", "32", "--steps", "1", "--quiet")
    words = [KIZZASI, "detect", "noise.kz", "noise.csv", "--false-alarms", "0.005", "--json", "--quiet", "-o", "scores.csv"]
    answer = json.loads(subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout)
    scores = [line.split(",")[1] for line in pathlib.Path("scores.csv").read_text().splitlines()[1:]]
    alarms = sum(1 for score in scores if score and float(score) >= answer["threshold"])
    assert alarms <= 0.015 * 4000, f"{alarms} of 4000 frames of noise alarm"
    # A score is a probability's logarithm: of noise, one frame in 200 reaches 2.3.
    assert 1.5 <= answer["threshold"] <= 3.5, answer["threshold"]


def test_a_budget_ends_the_training():
    words = USUAL[:USUAL.index("--steps")] + ["--validate-every", "20", "--patience", "0"]
    answer = json.loads(train("d.csv", "-o", "budget.kz", *words, "--budget", "300ms", "--json", "--quiet")[0])
    assert answer["end"] == "time budget used" and answer["steps"] >= 1, answer
    # The number of steps repeats it.
    train("d.csv", "-o", "again.kz", *words, "--steps", str(answer["steps"]), "--quiet")
    assert pathlib.Path("again.kz").read_bytes() == pathlib.Path("budget.kz").read_bytes()
    for bad in ("0s", "-1s", "soon", "5", "nan", ""):
        _, err = train("d.csv", "-o", "none.kz", *USUAL, f"--budget={bad}", code=2)
        assert "--budget" in err and err.count("\n") == 1, (bad, err)


def test_sizes_that_the_rows_cannot_hold_are_refused_at_once():
    """With little memory: nothing of such a size may be allocated first."""
    tight = 1 << 30
    short = USUAL[:USUAL.index("--horizon")] + ["--steps", "1", "--quiet"]
    for words, told in [
        (["--context", "16777216"], ["context of 16777216", "training part of 630", "--context"]),
        (["--context", "628", "--horizon", "4"], ["context of 628", "626"]),
        (["--context", "24", "--horizon", "65536"], ["630 rows", "horizon of 65536", "--horizon"]),
        (["--context", "24", "--horizon", "630"], ["horizon of 630"]),
        (["--context", "24", "--horizon", "100"], ["validation part has 90", "100", "--validation-share"]),
        (["--context", "24", "--recent", "65536"], ["recent past of 65536", "--recent"]),
        (["--context", "24", "--season", "16777216"], ["seasons of 16777216", "--season"]),
        (["--context", "24", "--season", "24", "--seasons", "1000"], ["1000 seasons of 24", "--seasons"]),
        (["--context", "24", "--validation-share", "0"], ["validation part has 0", "--validation-share"]),
        (["--preset", "forecast", "--context", "16777216", "--horizon", "16"], ["context of 16777216"]),
        (["--preset", "forecast", "--context", "24", "--patch", "48"], ["context 24", "patch 48"]),
    ]:
        for threads in ([], ["--threads", "1"]):
            _, err = train("d.csv", "-o", "none.kz", *short, *words, *threads, code=2 if "--patch" in words else 1, memory=tight)
            assert all(word in err for word in told) and err.count("\n") == 1, (words, err)
    # What no machine can hold.
    _, err = train("d.csv", "-o", "none.kz", *short, "--context", "400", "--batch", "65536", "--d-model", "1024", "--n-layers", "8", code=1, memory=tight)
    assert "GB" in err and "--batch" in err and err.count("\n") == 1, err
    pathlib.Path("short.csv").write_text(recording(60))
    _, err = train("short.csv", "-o", "short.kz", "--targets", "x", "--preset", "forecast", "--horizon", "2", "--steps", "2")
    assert "context 10" in err, "a look-back that nobody asked for is made to fit, and said: " + err
    assert not pathlib.Path("none.kz").exists() and not pathlib.Path("none.kz.checkpoint").exists()


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("d.csv").write_text(recording(900))
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test()
                print("ok", name)


main()
