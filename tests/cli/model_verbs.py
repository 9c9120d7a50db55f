#!/usr/bin/env python3
"""usage: model_verbs.py KIZZASI SMALL_MODEL

What forecast, stream and inspect promise, with a small model that SMALL_MODEL writes: columns, limits on what is printed, plans, samples,
JSON lines, bad lines, closed pipes, one answer a frame as soon as it came.
"""

import csv
import io
import json
import math
import os
import pathlib
import re
import select
import struct
import subprocess
import sys
import tempfile

KIZZASI, SMALL_MODEL = map(os.path.abspath, sys.argv[1:3])
STEP = 15


def stamp(row):
    minutes = row * STEP
    return f"2024-01-{1 + minutes // 1440:02d}T{minutes // 60 % 24:02d}:{minutes % 60:02d}:00Z"


def row_of(i):
    return [f"{3 + 3 * math.sin(i / 5):.4f}", f"{2 + math.cos(i / 7):.4f}", str(50 + i % 9), str(i * STEP // 60 % 24)]


def recording(rows):
    return "time,flow,level,valve,hour\n" + "".join(",".join([stamp(i)] + row_of(i)) + "\n" for i in range(rows))


def run(*words, code=0, text=None):
    done = subprocess.run([KIZZASI, *words], input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, f"{words}: exit {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_forecast():
    out, err = run("forecast", "m.kz", "d.csv", "-h", "4")
    rows = table(out)
    assert list(rows[0]) == ["time", "flow", "flow_q0.1", "flow_q0.5", "flow_q0.9", "level", "level_q0.1", "level_q0.5", "level_q0.9"], rows[0]
    assert [r["time"] for r in rows] == [stamp(60 + i) for i in range(4)], rows
    assert "known-future" in err, "unknown known-future values are remarked: " + err
    for r in rows:
        assert float(r["flow"]) >= 0
        assert float(r["flow_q0.1"]) <= float(r["flow_q0.5"]) <= float(r["flow_q0.9"])
    assert run("forecast", "m.kz", "d.csv", "-h", "1h")[0] == out, "a time is a number of steps"
    assert run("forecast", "m.kz", "d.csv")[0] == out, "the model's own horizon"
    answer = json.loads(run("forecast", "m.kz", "d.csv", "--json")[0])
    assert answer["model"] == "m.kz" and answer["horizon"] == 4 and answer["levels"] == [0.1, 0.5, 0.9] and answer["unknown_future_values"] == 4
    for line, r in zip(answer["steps"], rows, strict=True):
        assert line["time"] == r["time"] and line["status"] == "ok"
        assert line["values"]["flow"] == float(r["flow"]) and line["quantiles"]["level"]["0.9"] == float(r["level_q0.9"])


def without_times():
    """The small model as one that counts rows, and its recording without times."""
    model = pathlib.Path("m.kz").read_bytes()
    size = struct.unpack("<Q", model[:8])[0]
    head = json.loads(model[8:8 + size])
    schema = json.loads(head["__metadata__"]["schema"])
    schema["step_ns"] = 0
    head["__metadata__"]["schema"] = json.dumps(schema)
    changed = json.dumps(head).encode()
    pathlib.Path("rows.kz").write_bytes(struct.pack("<Q", len(changed)) + changed + model[8 + size:])
    assert "their sum is" in run("forecast", "rows.kz", "d.csv", code=1)[1], "a change is seen"
    del head["__metadata__"]["checksum"]
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path("rows.kz").write_bytes(struct.pack("<Q", len(text)) + text + model[8 + size:])
    pathlib.Path("rows.csv").write_text("".join(line.split(",", 1)[1] for line in recording(60).splitlines(keepends=True)))


def test_rows_have_their_numbers_in_the_recording():
    without_times()
    for lookback in ([], ["--lookback", "1"], ["--lookback", "17"], ["--lookback", "60"], ["--lookback", "500"]):
        rows = table(run("forecast", "rows.kz", "rows.csv", "-h", "4", *lookback)[0])
        assert [row["row"] for row in rows] == ["60", "61", "62", "63"], (lookback, rows)
        steps = json.loads(run("forecast", "rows.kz", "rows.csv", "-h", "4", "--json", *lookback)[0])["steps"]
        assert [step["row"] for step in steps] == [60, 61, 62, 63], (lookback, steps)


def test_limits_hold_for_what_is_printed():
    limits = ["--limit", "0.123456 <= flow <= 0.98765", "--limit", "abs(rate(level)) <= 0.0001 [m/s]", "--decimals", "2"]
    out, _ = run("forecast", "m.kz", "d.csv", "-h", "9", "--hold", "--samples", "5", *limits)
    for r in table(out):
        for name, value in r.items():
            if name.startswith("flow"):
                assert 0.123456 <= float(value) <= 0.98765, (name, value)
                assert len(value.split(".")[1]) == 2, value
    broken = run("forecast", "m.kz", "d.csv", "--limit", "flwo >= 0", code=1)[1]
    assert "flow" in broken, broken
    pathlib.Path("l.toml").write_text('[[constraint]]\nthat = "level <= 0.5"\n')
    assert all(float(r["level"]) <= 0.5 for r in table(run("forecast", "m.kz", "d.csv", "--limits", "l.toml")[0]))


def test_beyond_the_block():
    error = run("forecast", "m.kz", "d.csv", "-h", "9", code=2)[1]
    assert "valve" in error and "plan" in error, error
    assert "--future" in run("forecast", "m.kz", "d.csv", "--futur", "plan.csv", code=2)[1]
    held = run("forecast", "m.kz", "d.csv", "-h", "9", "--hold")[0]
    assert len(table(held)) == 9
    pathlib.Path("plan.csv").write_text("time,valve,hour\n" + "".join(f"{stamp(i)},{90},{i * STEP // 60 % 24}\n" for i in range(60, 69)))
    planned, remarks = run("forecast", "m.kz", "d.csv", "-h", "9", "--plan", "plan.csv")
    assert run("forecast", "m.kz", "d.csv", "-h", "9", "--future", "plan.csv")[0] == planned, "two names of one option"
    run("forecast", "m.kz", "d.csv", "--future", "plan.csv", "--plan", "plan.csv", code=2)
    assert len(table(planned)) == 9 and "known-future" not in remarks, remarks
    assert planned.splitlines()[5] != held.splitlines()[5], "the plan counts"
    # The same hours at the end of the recording itself.
    pathlib.Path("ahead.csv").write_text(recording(60) + "".join(f"{stamp(i)},,,,{i * STEP // 60 % 24}\n" for i in range(60, 64)))
    pathlib.Path("hours.csv").write_text("time,valve,hour\n" + "".join(f"{stamp(i)},90,{i * STEP // 60 % 24}\n" for i in range(60, 64)))
    assert run("forecast", "m.kz", "ahead.csv")[0] == run("forecast", "m.kz", "d.csv", "--plan", "hours.csv")[0]


def test_samples():
    first = run("forecast", "m.kz", "d.csv", "--samples", "3")[0]
    assert first == run("forecast", "m.kz", "d.csv", "--samples", "3")[0]
    assert first != run("forecast", "m.kz", "d.csv", "--samples", "3", "--seed", "2")[0]
    line = json.loads(run("forecast", "m.kz", "d.csv", "--samples", "3", "--json")[0])["steps"][0]
    assert len(line["samples"]["flow"]) == 3 and all(v >= 0 for v in line["samples"]["flow"])
    cold = table(run("forecast", "m.kz", "d.csv", "--samples", "2", "--temperature", "0")[0])
    assert all(r["flow_s1"] == r["flow_s2"] for r in cold)
    run("forecast", "m.kz", "d.csv", "--report", "f.html")
    page = pathlib.Path("f.html").read_text()
    assert "<script" in page and "lowest allowed" in page and "made for tests" in page


def test_the_wrong_data():
    pathlib.Path("other.csv").write_text(recording(60).replace("level", "levle", 1))
    error = run("forecast", "m.kz", "other.csv", code=1)[1]
    assert "level" in error and "levle" in error, error
    pathlib.Path("hourly.csv").write_text("time,flow,level,valve,hour\n" + "".join(f"{stamp(4 * i)},1,2,3,4\n" for i in range(50)))
    error = run("forecast", "m.kz", "hourly.csv", code=1)[1]
    assert "1h" in error and "15min" in error, error
    assert len(table(run("forecast", "m.kz", "hourly.csv", "--resample")[0])) == 4
    run("forecast", "m.kz", "none.csv", code=1)
    run("forecast", "d.csv", "d.csv", code=1)
    run("forecast", "m.kz", "d.csv", "-h", "7min", code=2)
    run("forecast", "m.kz", "d.csv", "-h", "0", code=2)
    run("forecast", "m.kz", "d.csv", "--levels", "0.9,0.1", code=2)
    run("forecast", "m.kz", "d.csv", "--samples", "-1", code=2)
    run("forecast", "m.kz", "d.csv", "--samples", "1000000", "-h", "1000000", "--hold", code=2)
    run("forecast", "m.kz", "d.csv", "--temperature", "-1", code=2)


def test_another_sampling_rate():
    def sine(name, step_ms, seconds):
        rows = [f"2024-01-01T00:00:{i * step_ms / 1000:06.3f}Z,{math.sin(i * step_ms / 200):.5f}\n" for i in range(seconds * 1000 // step_ms)]
        pathlib.Path(name).write_text("time,x\n" + "".join(rows))

    for name, step_ms in (("100hz.csv", 10), ("200hz.csv", 5), ("50hz.csv", 20)):
        sine(name, step_ms, 20)
    small = ["--targets", "x", "--d-model", "8", "--n-layers", "1", "--horizon", "6", "--recent", "4", "--steps", "2", "--quiet"]
    run("train", "100hz.csv", "--architecture", "s4d", *small, "-o", "s4d.kz")
    run("train", "100hz.csv", "--architecture", "gru", *small, "-o", "gru.kz")
    plain = table(run("forecast", "s4d.kz", "100hz.csv")[0])
    for name, forms in (("200hz.csv", ("200Hz", "5ms", "2x", "0.2kHz")), ("50hz.csv", ("50Hz", "20ms", "0.5x"))):
        error = run("forecast", "s4d.kz", name, code=1)[1]
        assert "--sampling" in error, error
        answers = {run("forecast", "s4d.kz", name, "--sampling", form)[0] for form in forms}
        assert len(answers) == 1, answers
        rows = table(answers.pop())
        # The model's own steps after the last row of the recording.
        last = 19.995 if name == "200hz.csv" else 19.98
        assert [r["time"] for r in rows] == [f"2024-01-01T00:00:{last + 0.01 * (i + 1):.3f}".rstrip("0").rstrip(".") + "Z" for i in range(6)], rows
        assert "s4d" in run("backtest", "s4d.kz", name, "--sampling", forms[0], "--horizon", "10", "--methods", "naive")[0]
        lines = pathlib.Path(name).read_text().splitlines()[:200]
        streamed = table(run("stream", "s4d.kz", "--sampling", forms[0], text="\n".join(lines) + "\n")[0])
        assert len(streamed) == 199 and "0 gap frames" in run("stream", "s4d.kz", "--sampling", forms[0], text="\n".join(lines) + "\n")[1]
    assert len(plain) == 6
    for form, words in (("1.5x", "whole multiple"), ("300", "no rate"), ("0Hz", "no rate"), ("-2x", "no rate"), ("nanx", "no rate"), ("2Hz", None)):
        error = run("forecast", "s4d.kz", "100hz.csv", "--sampling", form, code=2 if words else 1)[1]
        assert words is None or words in error, error
    error = run("forecast", "gru.kz", "200hz.csv", "--sampling", "2x", code=2)[1]
    assert "gru counts frames" in error and "s4d" in error, error


def test_many_series_are_one_object():
    rows = "".join(",".join([stamp(i), who] + row_of(i + shift)) + "\n" for who, shift in (("a", 0), ("b", 9)) for i in range(60))
    pathlib.Path("two.csv").write_text("time,unique_id,flow,level,valve,hour\n" + rows)
    answer = json.loads(run("forecast", "m.kz", "two.csv", "--json")[0])
    assert [(s["unique_id"], s["step"]) for s in answer["steps"]] == [(who, step) for who in "ab" for step in (1, 2, 3, 4)], answer
    assert [s["values"]["flow"] for s in answer["steps"]] == [float(r["flow"]) for r in table(run("forecast", "m.kz", "two.csv")[0])]


def test_zero_has_no_sign():
    pathlib.Path("zero.toml").write_text('[[constraint]]\nthat = "-0.0 <= flow <= 0"\n[[constraint]]\nthat = "-0.001 <= level <= -0.0"\n')
    for decimals in ("-1", "0", "2"):
        words = ["--limits", "zero.toml", "--decimals", decimals, "--samples", "4"]
        texts = [run("forecast", "m.kz", "d.csv", *words)[0], run("forecast", "m.kz", "d.csv", *words, "--json")[0],
                 run("stream", "m.kz", *words[:4], text=recording(20))[0]]
        for text in texts:
            assert not re.search(r"(?<![\w.])-0(\.0*)?(?![\d.])", text), (decimals, text[:400])


def test_stream():
    out, err = run("stream", "m.kz", text=recording(60))
    rows = table(out)
    assert len(rows) == 60 and rows[0]["time"] == stamp(1) and all(r["status"] == "ok" for r in rows)
    assert all(float(r["flow"]) >= 0 for r in rows)
    lines = "".join(json.dumps({"time": stamp(i), "flow": float(row_of(i)[0]), "level": float(row_of(i)[1]), "valve": 50 + i % 9,
                                "hour": i * STEP // 60 % 24}) + "\n" for i in range(60))
    answers = [json.loads(line) for line in run("stream", "m.kz", text=lines)[0].splitlines()]
    assert [a["values"]["flow"] for a in answers] == [float(r["flow"]) for r in rows], "CSV and JSON lines are the same frames"
    ahead = run("stream", "m.kz", "-h", "3", text=recording(5))[0]
    assert [r["step"] for r in table(ahead)] == ["1", "2", "3"] * 5


def test_monitors_beside_a_stream():
    """What watches a stream says what `monitor` says of the same frames, and moves nothing."""
    formulas = ["always (flow > 5 -> eventually[0, 1h] flow < 3)", "mean(level, 1h) <= 2.5", "flow - prev(flow, 1) <= 0.5"]
    words = [word for formula in formulas for word in ("--monitor", formula)]
    text = recording(40).replace("2.5000", "")
    plain, watched = table(run("stream", "m.kz", text=text)[0]), table(run("stream", "m.kz", *words, text=text)[0])
    assert [{key: row[key] for key in plain[0]} for row in watched] == plain
    for number, formula in enumerate(formulas, 1):
        alone = table(run("monitor", formula, "-", "--step", "15min", text=text)[0])
        ours = [[row[f"monitor_{number}" + end] for end in ("_sample", "", "_low", "_high")] for row in watched if row[f"monitor_{number}"]]
        assert ours == [[row["t"], row["verdict"], row["low"], row["high"]] for row in alone], formula
    answers = [json.loads(line) for line in run("stream", "m.kz", *words, "-h", "2", "--json", text=text)[0].splitlines()]
    assert "monitors" in answers[0] and "monitors" not in answers[1]
    assert answers[-2]["monitors"][0]["formula"] == formulas[0] and answers[-2]["monitors"][2]["verdict"] in "TF?"
    assert "flwo" in run("stream", "m.kz", "--monitor", "flwo > 3", code=1, text=text)[1]
    run("stream", "m.kz", "--monitor", "flow >", code=1, text=text)


def test_what_is_known_ahead_reaches_a_stream():
    """A stream with a plan says what forecasts with that plan say, frame by frame."""
    def hour(i):
        return (i * 7) % 24
    def frames(rows):
        return "time,flow,level,valve,hour\n" + "".join(",".join([stamp(i)] + row_of(i)[:3] + [str(hour(i))]) + "\n" for i in range(rows))
    pathlib.Path("hours.csv").write_text("time,valve,hour\n" + "".join(f"{stamp(i)},{60 + i % 5},{hour(i)}\n" for i in range(80)))
    pathlib.Path("counted.csv").write_text("valve,hour\n" + "".join(f"{60 + i % 5},{hour(i)}\n" for i in range(1, 80)))
    words = ["--uncalibrated", "--quiet"]
    for horizon in ("1", "3", "6"):
        streamed, remarks = run("stream", "m.kz", "-h", horizon, "--future", "hours.csv", *words, text=frames(30))
        answers = table(streamed)
        assert remarks == "", remarks
        for seen in (12, 30):
            pathlib.Path("seen.csv").write_text(frames(seen))
            expected = table(run("forecast", "m.kz", "seen.csv", "-h", horizon, "--future", "hours.csv", "--lookback", str(seen), *words)[0])
            got = answers[(seen - 1) * int(horizon):seen * int(horizon)]
            for name in ("time", "flow", "level"):
                assert [r[name] for r in got] == [r[name] for r in expected], (horizon, seen, name)
        assert run("stream", "m.kz", "-h", horizon, "--future", "counted.csv", *words, text=frames(30))[0] == streamed, "a counted plan"
        if horizon != "6":
            assert run("stream", "m.kz", "-h", horizon, *words, text=frames(30))[0] != streamed, "the plan counts"
    # What the plan does not say is told; a plan that cannot be is refused before a frame is read.
    pathlib.Path("short.csv").write_text("time,hour\n" + "".join(f"{stamp(i)},{hour(i)}\n" for i in range(20)))
    assert "11 values of known-future" in run("stream", "m.kz", "--future", "short.csv", text=frames(30))[1]
    run("stream", "m.kz", "--future", "none.csv", code=1, text="")
    pathlib.Path("strange.csv").write_text("time,other\n" + "".join(f"{stamp(i)},{i}\n" for i in range(20)))
    assert "hour" in run("stream", "m.kz", "--future", "strange.csv", code=1, text="")[1]


def test_longest_gap():
    """Frames missing in time are stepped as missing up to --max-gap; beyond it the stream begins anew."""
    lines = recording(30).splitlines(keepends=True)
    gap = "".join(lines[:10] + lines[15:])
    assert "5 gap frames, 0 restarts" in run("stream", "m.kz", text=gap)[1]
    assert "5 gap frames, 0 restarts" in run("stream", "m.kz", "--max-gap", "5", text=gap)[1]
    assert "0 gap frames, 1 restarts" in run("stream", "m.kz", "--max-gap", "4", text=gap)[1]
    for bad in ("-1", "often", "1e9", "99999999999", "nan"):
        assert "--max-gap" in run("stream", "m.kz", f"--max-gap={bad}", code=2, text="")[1]


def test_bad_lines():
    lines = recording(6).splitlines()
    lines[3] = stamp(2) + ",abc,1,2,3"
    lines.insert(5, lines[4])  # twice the same frame
    out, err = run("stream", "m.kz", text="\n".join(lines) + "\n")
    assert len(table(out)) == 5, out
    assert "line 4" in err and "line 6" in err and "2 bad or late lines" in err, err
    out, err = run("stream", "m.kz", "--strict", text="\n".join(lines) + "\n", code=1)
    assert len(table(out)) == 2 and "line 4" in err, (out, err)


def test_frames_that_come_too_soon_are_told():
    def lines(minutes):
        rows = [row_of(i) for i in range(6)]
        return "time,flow,level,valve,hour\n" + "".join(
            ",".join([f"2024-01-01T{i * minutes // 60:02d}:{i * minutes % 60:02d}:00Z"] + row) + "\n" for i, row in enumerate(rows))
    out, err = run("stream", "m.kz", text=lines(5))
    assert len(table(out)) == 6 and "line 3" in err and "5min after the last one" in err and "5 frames came sooner" in err, err
    assert "one every 15min" in run("stream", "m.kz", "--strict", text=lines(5), code=1)[1]
    assert "sooner" not in run("stream", "m.kz", "--strict", text=lines(15))[1]


def test_each_frame_is_answered_at_once_and_a_closed_pipe_ends_it():
    child = subprocess.Popen([KIZZASI, "stream", "m.kz"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
    lines = recording(5).splitlines(keepends=True)
    for i, line in enumerate(lines):
        child.stdin.write(line)
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], 30)
        assert ready, f"no answer to line {i + 1}"
        child.stdout.readline()
    child.stdin.close()
    assert child.wait(30) == 0, child.stderr.read()
    piped = subprocess.run(f'"{KIZZASI}" stream m.kz --quiet < long.csv | head -n 2', shell=True, capture_output=True, text=True, timeout=60)
    assert piped.stderr == "" and len(piped.stdout.splitlines()) == 2, piped


def test_inspect():
    out, _ = run("inspect", "m.kz")
    for word in ["flow [m3/h]", "valve", "15min", "mamba2", "flow >= 0", "made for tests"]:
        assert word in out, (word, out)
    card = json.loads(run("inspect", "m.kz", "--json")[0])
    assert card["kind"] == "model" and card["schema"]["step_ns"] == 900 * 10**9 and card["parameters"] > 0 and card["state_bytes"] > 0
    assert sum(t["numbers"] for t in card["tensors"]) >= card["parameters"]
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"format": "pt"}}).encode()
    header += b" " * (-len(header) % 8)
    pathlib.Path("plain.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, 2))
    assert "no model of this program" in run("inspect", "plain.safetensors")[0]
    assert json.loads(run("inspect", "plain.safetensors", "--json")[0])["tensors"] == [{"name": "w", "shape": [2], "numbers": 2, "precision": "f32"}]
    run("inspect", "d.csv", code=1)


def test_convert_measures_before_it_writes():
    sizes = {"f32": pathlib.Path("m.kz").stat().st_size}
    exact = table(run("forecast", "m.kz", "long.csv", "--decimals", "9")[0])
    for precision in ["bf16", "f16", "int8", "int4"]:
        out = json.loads(run("convert", "m.kz", "-o", f"{precision}.kz", "--quantize", precision, "--data", "long.csv", "--most-loss", "100",
                             "--json")[0])
        assert out["written"] == f"{precision}.kz" and out["precision"] == precision
        assert out["measured"]["forecasts"] == 200 and [t["name"] for t in out["measured"]["targets"]] == ["flow", "level"]
        for target in out["measured"]["targets"]:
            assert target["mae_f32"] > 0 and target["moved"] > 0, target
        sizes[precision] = out["weight_bytes"]
        # The file is the model: the verbs take it as any other, and it says what it is.
        rounded = table(run("forecast", f"{precision}.kz", "long.csv", "--decimals", "9")[0])
        moved = max(abs(float(a["flow"]) - float(b["flow"])) for a, b in zip(exact, rounded))
        assert 0 < moved < 1, (precision, moved)
        assert run("stream", f"{precision}.kz", text=recording(20))[0].count("\n") >= 20
        card = json.loads(run("inspect", f"{precision}.kz", "--json")[0])
        assert card["training"]["quantized"]["precision"] == precision and card["weight_bytes"] < sizes["f32"]
        assert {t["precision"] for t in card["tensors"]} == {"f32", precision} and precision in run("inspect", f"{precision}.kz", "--tensors")[0]
        run("convert", f"{precision}.kz", "-o", "twice.kz", "--quantize", "int4", "--unmeasured", code=1)
    assert sizes["f32"] > sizes["bf16"] == sizes["f16"] > sizes["int8"] > sizes["int4"], sizes
    # Beyond the bound nothing is written, and the reason is told.
    _, told = run("convert", "m.kz", "-o", "worse.kz", "--quantize", "int4", "--data", "long.csv", "--most-loss", "-0.0", code=1)
    assert "--most-loss" in told and not pathlib.Path("worse.kz").exists(), told
    run("convert", "m.kz", "-o", "blind.kz", "--quantize", "int8", "--unmeasured")
    assert pathlib.Path("blind.kz").stat().st_size < pathlib.Path("m.kz").stat().st_size
    run("convert", "m.kz", "-o", "short.kz", "--quantize", "int8", "--data", "d.csv", "--most-loss", "1e9")
    pathlib.Path("tiny.csv").write_text(recording(3))
    run("convert", "m.kz", "-o", "worse.kz", "--quantize", "int8", "--data", "tiny.csv", code=1)
    assert not pathlib.Path("worse.kz").exists()
    # A short-cut alone has nothing to round: that is told, and no copy of it is written as if.
    run("train", "long.csv", "-o", "line.kz", "--parts", "shortcut", "--horizon", "4", "--quiet")
    _, told = run("convert", "line.kz", "-o", "line8.kz", "--quantize", "int8", "--unmeasured", code=1)
    assert "short-cut alone" in told and not pathlib.Path("line8.kz").exists(), told


def test_bench_takes_a_step_apart():
    answer = json.loads(run("bench", "--model", "m.kz", "--seconds", "0.2", "--json")[0])
    names = [layer["layer"] for layer in answer["layers"]]
    assert names[0] == "layers.0.mixer" and names[-2:] == ["norm_f", "around it"], names
    card = json.loads(run("inspect", "m.kz", "--json")[0])
    assert sum(layer["weight_bytes"] for layer in answer["layers"]) <= card["weight_bytes"]
    assert abs(sum(layer["us"] for layer in answer["layers"]) - answer["step_us"]) < 1e-6
    for layer in answer["layers"]:
        assert 0 <= layer["score"] <= 100 and layer["us"] >= 0, layer
    assert "bottleneck is " in run("bench", "--model", "m.kz", "--seconds", "0.2")[0]
    for preset in json.loads(run("bench", "--preset", "audio", "--seconds", "0.001", "--json")[0])["presets"]:
        assert 0 < preset["step_us"] < 1e9 and 0 < preset["limit_us"] < 1e9, preset  # however short: a measurement


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([SMALL_MODEL, "m.kz"], check=True)
        pathlib.Path("d.csv").write_text(recording(60))
        pathlib.Path("long.csv").write_text(recording(2500))
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test()
                print("ok", name)


main()
