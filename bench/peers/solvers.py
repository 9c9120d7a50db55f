#!/usr/bin/env python3
"""usage: solvers.py KIZZASI [--problems N] [--repeat N]

Quadratic programs beside the outside solvers that are installed (daqp, quadprog, piqp, osqp, proxsuite, clarabel; any that is missing is
named and left out). Two tables:

answers   N random problems of up to 16 variables: the distance of our nearest points to those of the reference (DAQP, checked by Clarabel
          where they differ), the conditions of optimality of ours, and how many statuses differ.
times     QPs of 12 variables and 24 two-sided rows: microseconds of one answer from nothing. Ours: least of many calls, set-up and solve,
          measured inside `kizzasi solve --time`. The others: the least wall time of their call from Python, set-up and solve, and what
          they report themselves as run time, where they do.

A virtual environment: python3 -m venv /tmp/peers && /tmp/peers/bin/pip install numpy scipy daqp quadprog piqp osqp proxsuite clarabel
"""

import argparse
import importlib
import json
import math
import subprocess
import sys
import time

import numpy as np

INF = float("inf")


def number(x):
    return x if math.isfinite(x) else ("inf" if x > 0 else "-inf")


def line(p):
    return json.dumps({k: ([[number(x) for x in row] for row in v.tolist()] if v.ndim == 2 else [number(x) for x in v.tolist()])
                       for k, v in p.items()})


def ours(program, problems, *options):
    run = subprocess.run([program, "solve", *options], input="".join(line(p) + "\n" for p in problems), capture_output=True, text=True, check=True)
    return [json.loads(text) for text in run.stdout.splitlines()]


def random_projection(rng):
    """A point, a box and rows around another point; some equalities, some repeated rows, about one in twenty without an answer."""
    n = int(rng.integers(1, 17))
    m = int(rng.integers(0, 2 * n + 1))
    inside, y = rng.normal(size=n), 4 * rng.normal(size=n)
    a = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-2, 3, size=(m, 1))
    at = a @ inside
    width = rng.uniform(0, 1, size=m) * np.linalg.norm(a, axis=1)
    kind = rng.integers(0, 6, size=m)
    lo = np.where(kind < 3, -INF, at - width)
    hi = np.where(kind == 5, INF, at + width)
    equal = (kind == 4) & (np.cumsum(kind == 4) <= n // 2)
    lo, hi = np.where(equal, at, lo), np.where(equal, at, hi)
    if m > 2 and rng.uniform() < 0.2:
        a[-1], lo[-1], hi[-1] = 2 * a[0], 2 * lo[0], 2 * hi[0]
    if m > 0 and rng.uniform() < 0.05:
        a[-1], lo[-1], hi[-1] = a[0], at[0] + 10 * width[0] + 1, INF
    lower = np.where(rng.uniform(size=n) < 0.5, -INF, inside - rng.uniform(size=n))
    upper = np.where(rng.uniform(size=n) < 0.5, INF, inside + rng.uniform(size=n))
    return {"y": y, "A": a.reshape(m, n), "lo": lo, "hi": hi, "lower": lower, "upper": upper}


def violations(p, x, got):
    """The conditions of optimality of our answer, computed here: feasibility, stationarity, signs."""
    rows, box = np.array(got["multipliers"]["rows"]), np.array(got["multipliers"]["box"])
    value = p["A"] @ x
    size = 1 + np.abs(p["A"]) @ np.abs(x)
    worst = max(np.max(np.maximum(p["lo"] - value, value - p["hi"]) / size, initial=0), np.max(np.maximum(p["lower"] - x, x - p["upper"]), initial=0))
    steepest = 1 + np.abs(x - p["y"]).max() + np.max(np.abs(rows)[:, None] * np.abs(p["A"]), initial=0)
    worst = max(worst, np.abs(x - p["y"] + p["A"].T @ rows + box).max() / steepest)
    off = np.where(rows > 0, np.abs(value - p["hi"]), np.where(rows < 0, np.abs(value - p["lo"]), 0)) / size
    return max(worst, np.max(off, initial=0))


def with_daqp(daqp, p):
    n = len(p["y"])
    blower, bupper = np.concatenate([p["lower"], p["lo"]]), np.concatenate([p["upper"], p["hi"]])
    clip = lambda b: np.clip(b, -1e30, 1e30)
    sense = np.where(np.concatenate([np.zeros(n, bool), p["lo"] == p["hi"]]), 5, 0).astype(np.int32)
    x, _, flag, _ = daqp.solve(np.eye(n), -p["y"], np.ascontiguousarray(p["A"]), clip(bupper), clip(blower), sense, primal_tol=1e-12)
    return np.array(x), flag


def stacked(p):
    """G x <= h without infinite rows, and A x = b."""
    rows, lo, hi = [p["A"]], [p["lo"]], [p["hi"]]
    if "lower" in p:
        n = p["A"].shape[1]
        rows.append(np.eye(n)), lo.append(p["lower"]), hi.append(p["upper"])
    a, lo, hi = np.vstack(rows), np.concatenate(lo), np.concatenate(hi)
    equal = lo == hi
    up, down = ~equal & np.isfinite(hi), ~equal & np.isfinite(lo)
    return np.vstack([a[up], -a[down]]), np.concatenate([hi[up], -lo[down]]), a[equal], lo[equal]


def with_clarabel(clarabel, h, g, p):
    from scipy import sparse
    gi, hi, ae, be = stacked(p)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    a = sparse.csc_matrix(np.vstack([ae, gi]))
    solver = clarabel.DefaultSolver(sparse.csc_matrix(np.triu(h)), g, a, np.concatenate([be, hi]),
                                    [clarabel.ZeroConeT(len(be)), clarabel.NonnegativeConeT(len(hi))], settings)
    solution = solver.solve()
    return np.array(solution.x), str(solution.status)


def answers(program, modules, count):
    rng = np.random.default_rng(7)
    problems = [random_projection(rng) for _ in range(count)]
    got = ours(program, problems)
    daqp, clarabel = modules.get("daqp"), modules.get("clarabel")
    worst_kkt, worst_distance, status_differs, infeasible, judged, refereed = 0.0, 0.0, 0, 0, 0, 0
    for p, answer in zip(problems, got):
        feasible = answer["status"] == "ok"
        infeasible += not feasible
        if feasible:
            x = np.array(answer["x"])
            worst_kkt = max(worst_kkt, violations(p, x, answer))
        if daqp is None and clarabel is None:
            continue
        distance, ok = None, None
        if daqp is not None:
            reference, flag = with_daqp(daqp, p)
            ok = flag > 0
            distance = np.linalg.norm(reference - p["y"])
        far = lambda d: feasible and abs(d - answer["distance"]) / max(1e-3, answer["distance"])
        if clarabel is not None and (daqp is None or ok != feasible or far(distance) > 1e-9):
            refereed += 1
            reference, status = with_clarabel(clarabel, np.eye(len(p["y"])), -p["y"], p)
            ok = "Infeasible" not in status
            if far(distance if distance is not None else INF) > far(np.linalg.norm(reference - p["y"])) or distance is None:
                distance = np.linalg.norm(reference - p["y"])
        judged += 1
        status_differs += ok != feasible
        if ok and feasible:
            worst_distance = max(worst_distance, far(distance))
    print(f"answers: {count} random nearest points up to 16 variables ({infeasible} infeasible)")
    print(f"  conditions of optimality, largest violation   {worst_kkt:.1e}   (asked: 1e-9)")
    if judged:
        print(f"  distance beside the reference, largest        {worst_distance:.1e}   (asked: 1e-9 relative; Clarabel was asked for {refereed})")
        print(f"  statuses that differ                          {status_differs}")
    return worst_kkt <= 1e-9 and worst_distance <= 1e-9 and status_differs == 0


def timed_problem(rng):
    n, m = 12, 24
    root = rng.normal(size=(n, n))
    return {"H": root @ root.T / n + 0.5 * np.eye(n), "g": 3 * rng.normal(size=n), "A": rng.normal(size=(m, n)),
            "lo": -rng.uniform(0.5, 3, size=m), "hi": rng.uniform(0.5, 3, size=m)}


def callers(modules, p):
    """name: (a call that sets up and solves, and returns x and the run time in seconds that the solver reports, or None)."""
    h, g, a, lo, hi = p["H"], p["g"], p["A"], p["lo"], p["hi"]
    n = len(g)
    calls = {}
    if "daqp" in modules:
        sense = np.zeros(len(lo), np.int32)

        def daqp():
            x, _, _, info = modules["daqp"].solve(h, g, a, hi, lo, sense)
            return x, info["solve_time"] + info.get("setup_time", 0)
        calls["daqp"] = daqp
    if "quadprog" in modules:
        c, b = np.hstack([-a.T, a.T]), np.concatenate([-hi, lo])
        calls["quadprog"] = lambda: (modules["quadprog"].solve_qp(h, -g, c, b)[0], None)
    if "piqp" in modules:
        def piqp():
            solver = modules["piqp"].DenseSolver()
            solver.settings.compute_timings = True
            solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
            try:
                solver.setup(h, g, None, None, a, lo, hi)
            except TypeError:
                solver.setup(h, g, None, None, np.vstack([a, -a]), np.concatenate([hi, -lo]))
            solver.solve()
            return np.array(solver.result.x), solver.result.info.run_time
        calls["piqp"] = piqp
    if "osqp" in modules:
        from scipy import sparse
        hs, as_ = sparse.csc_matrix(np.triu(h)), sparse.csc_matrix(a)

        def osqp():
            solver = modules["osqp"].OSQP()
            solver.setup(hs, g, as_, lo, hi, verbose=False, eps_abs=1e-6, eps_rel=1e-6)
            result = solver.solve()
            return result.x, result.info.run_time
        calls["osqp (1e-6)"] = osqp
    if "proxsuite" in modules:
        dense = modules["proxsuite"].proxqp.dense

        def proxqp():
            solver = dense.QP(n, 0, len(lo))
            solver.settings.eps_abs = 1e-9
            solver.settings.compute_timings = True
            solver.init(h, g, None, None, a, lo, hi)
            solver.solve()
            return np.array(solver.results.x), solver.results.info.run_time * 1e-6
        calls["proxqp"] = proxqp
    if "clarabel" in modules:
        from scipy import sparse
        settings = modules["clarabel"].DefaultSettings()
        settings.verbose = False
        hs, gs = sparse.csc_matrix(np.triu(h)), sparse.csc_matrix(np.vstack([a, -a]))
        bs = np.concatenate([hi, -lo])

        def clarabel():
            solution = modules["clarabel"].DefaultSolver(hs, g, gs, bs, [modules["clarabel"].NonnegativeConeT(len(bs))], settings).solve()
            return np.array(solution.x), solution.solve_time
        calls["clarabel"] = clarabel
    return calls


def times(program, modules, repeat):
    rng = np.random.default_rng(8)
    problems = [timed_problem(rng) for _ in range(20)]
    table, broken = {}, {}
    for p, answer in zip(problems, ours(program, problems, "--time")):
        table.setdefault("kizzasi", []).append((answer["cold_us"], None, answer["warm_us"]))
        for name, call in callers(modules, p).items():
            try:
                least, reported = INF, INF
                for _ in range(repeat):
                    begin = time.perf_counter()
                    x, own = call()
                    least = min(least, time.perf_counter() - begin)
                    reported = min(reported, own) if own else reported
                table.setdefault(name, []).append((1e6 * least, 1e6 * reported if math.isfinite(reported) else None, np.abs(x - answer["x"]).max()))
            except Exception as error:  # a peer's interface differs between versions: named, not hidden
                broken[name] = f"{type(error).__name__}: {error}"
    ours_cold = float(np.median([row[0] for row in table["kizzasi"]]))
    print("\ntimes: 12 variables, 24 two-sided rows, from nothing, microseconds (median of 20 problems)")
    print(f"  {'solver':<14}{'call':>9}{'reported':>10}{'ratio':>8}   x differs by")
    print(f"  {'kizzasi':<14}{ours_cold:>9.2f}{'-':>10}{1:>8.1f}   warm, same problem: {np.median([row[2] for row in table['kizzasi']]):.2f}")
    for name, rows in table.items():
        if name == "kizzasi":
            continue
        reported = [row[1] for row in rows if row[1]]
        own = float(np.median(reported)) if reported else None
        call = float(np.median([row[0] for row in rows]))
        print(f"  {name:<14}{call:>9.2f}{'-' if own is None else f'{own:.2f}':>10}{(own or call) / ours_cold:>8.1f}   {max(row[2] for row in rows):.0e}")
    for name, why in broken.items():
        print(f"  {name}: not measured ({why})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--problems", type=int, default=10000)
    parser.add_argument("--repeat", type=int, default=200)
    ask = parser.parse_args()
    modules = {}
    for name in ("daqp", "quadprog", "piqp", "osqp", "proxsuite", "clarabel"):
        try:
            modules[name] = importlib.import_module(name)
        except ImportError:
            print(f"{name} is not installed: left out")
    well = answers(ask.program, modules, ask.problems)
    times(ask.program, modules, ask.repeat)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
