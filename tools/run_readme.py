#!/usr/bin/env python3
"""usage: run_readme.py KIZZASI PAGE.md...

Runs every ```sh block of the pages as a reader would: the blocks of one page one after the other, in one scratch folder that shows the
recordings as data/bundle, with the program on the path. Fails on the first command that does not end with 0. Blocks marked ```console are
for the eye (they install, build or run for long).
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(program, page, folder):
    """The number of blocks that ran; ends the program at the first that fails."""
    (folder / "data").mkdir()
    (folder / "data/bundle").symlink_to(ROOT / "data/bundle")
    environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}")
    text = page.read_text()
    count = 0
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        began = time.monotonic()
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block[1]], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=600, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            sys.exit(f"{page}:{line}: ended with {done.returncode}\n{block[1]}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        print(f"{page.name}:{line}: {time.monotonic() - began:.1f} s")
        count += 1
    return count


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    total = 0
    for name in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as scratch:
            total += run_page(program, pathlib.Path(name).resolve(), pathlib.Path(scratch))
    if total == 0:
        sys.exit("none of the pages has a block to run")
    print(f"{total} blocks ran")


if __name__ == "__main__":
    main()
