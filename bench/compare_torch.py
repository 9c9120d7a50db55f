#!/usr/bin/env python3
"""Times the scans and steps of Mamba and Mamba-2 in PyTorch on one thread, in the units of kizzasi_bench (nanoseconds a state element).

    python3 bench/compare_torch.py [--threads N]

PyTorch is no part of Kizzasi: where it is not installed this says so and ends well.
The forms are those a PyTorch user has on a CPU: the published reference loop for Mamba, and the chunked einsum form for Mamba-2.
"""
import argparse
import sys
import time

try:
    import torch
except ImportError:
    print("PyTorch is not installed: nothing to compare with")
    sys.exit(0)


def selective_scan(x, delta, a, b, c, d):
    """x, delta (L, E); a (E, N); b, c (L, N); d (E): the reference loop of state-spaces/mamba."""
    h = torch.zeros_like(a)
    y = []
    for t in range(x.shape[0]):
        h = torch.exp(delta[t, :, None] * a) * h + (delta[t] * x[t])[:, None] * b[t]
        y.append(h @ c[t] + d * x[t])
    return torch.stack(y)


def ssd(x, delta, a, b, c, chunk):
    """x (L, H, P); delta (L, H); a (H); b, c (L, N): the chunked form of Dao and Gu 2024, listing 1, one group."""
    length, heads, p = x.shape
    n = b.shape[1]
    state = torch.zeros(heads, p, n)
    y = []
    mask = torch.tril(torch.ones(chunk, chunk, dtype=torch.bool))
    for t in range(0, length, chunk):
        decay = (delta[t:t + chunk] * a).T.cumsum(-1)  # (H, chunk)
        between = torch.exp((decay[:, :, None] - decay[:, None, :]).masked_fill(~mask, float("-inf")))
        value = delta[t:t + chunk, :, None] * x[t:t + chunk]
        within = torch.einsum("hij,ij,jhp->ihp", between, c[t:t + chunk] @ b[t:t + chunk].T, value)
        before = torch.einsum("in,hpn,hi->ihp", c[t:t + chunk], state, torch.exp(decay))
        after = torch.einsum("jn,jhp,hj->hpn", b[t:t + chunk], value, torch.exp(decay[:, -1:] - decay))
        state = torch.exp(decay[:, -1])[:, None, None] * state + after
        y.append(within + before)
    return torch.cat(y)


def best(run, seconds=1.0):
    run()
    fastest, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def report(name, run, elements):
    print(f"{name:44s} {best(run) * 1e9 / elements:10.3f} ns a state element")


def mamba(rows, channels, states):
    x, delta = torch.randn(rows, channels), torch.rand(rows, channels) * 0.1
    a, b, c, d = -torch.rand(channels, states) * 16, torch.randn(rows, states), torch.randn(rows, states), torch.ones(channels)
    elements = rows * channels * states
    with torch.no_grad():
        report(f"selective_scan/{rows}/{channels}/{states}", lambda: selective_scan(x, delta, a, b, c, d), elements)
    if rows == 1:
        return
    leaves = [v.requires_grad_() for v in (x, delta, a, b, c, d)]

    def both():
        for leaf in leaves:
            leaf.grad = None
        selective_scan(*leaves).sum().backward()

    report(f"selective_scan/{rows}/{channels}/{states} and backward", both, elements)


def mamba2(rows, heads, states, p=64):
    x, delta = torch.randn(rows, heads, p), torch.rand(rows, heads) * 0.1
    a, b, c = -torch.rand(heads) * 16, torch.randn(rows, states), torch.randn(rows, states)
    elements = rows * heads * p * states
    with torch.no_grad():
        report(f"ssd/{rows}/{heads}/{states}", lambda: ssd(x, delta, a, b, c, min(64, rows)), elements)
    if rows == 1:
        return
    leaves = [v.requires_grad_() for v in (x, delta, a, b, c)]

    def both():
        for leaf in leaves:
            leaf.grad = None
        ssd(*leaves, 64).sum().backward()

    report(f"ssd/{rows}/{heads}/{states} and backward", both, elements)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    torch.manual_seed(1)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} thread(s)")
    for rows, channels, states in ((1, 1536, 16), (512, 64, 16), (512, 1536, 16)):
        mamba(rows, channels, states)
    for rows, heads, states in ((1, 48, 128), (256, 24, 128), (256, 4, 64), (256, 4, 16)):
        mamba2(rows, heads, states)


if __name__ == "__main__":
    main()
