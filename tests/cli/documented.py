#!/usr/bin/env python3
"""usage: documented.py KIZZASI PAGE.md [--write]

Runs every command of a page and compares what it prints, standard error included, with what stands in the page.
```toml NAME and ```csv NAME blocks become files; ```console blocks hold one command after "$ " and its output; exit=N states the code.
--write puts the output into the page instead. The files of the folder beside the page that bears its name are there for the commands.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

program, page = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
write = "--write" in sys.argv
text = page.read_text()
failures, commands = [], 0

with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder) / "bin").mkdir()
    (pathlib.Path(folder) / "bin" / "kizzasi").symlink_to(program)
    if page.with_suffix("").is_dir():
        shutil.copytree(page.with_suffix(""), folder, dirs_exist_ok=True)
    environment = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}")

    def run(match):
        global commands
        kind, rest, body = match.group(1), match.group(2).strip(), match.group(3)
        if kind in ("toml", "csv", "yaml", "json") and rest:
            (pathlib.Path(folder) / rest).write_text(body)
        if kind != "console":
            return match.group(0)
        command, _, expected = body.partition("\n")
        commands += 1
        done = subprocess.run(["sh", "-c", command.removeprefix("$ ")], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
        code = int(re.search(r"exit=(\d+)", rest).group(1)) if "exit=" in rest else 0
        output = done.stdout + done.stderr
        if done.returncode != code:
            failures.append(f"{command}\n  ended with {done.returncode}, not {code}\n{output}")
        elif not write and output != expected:
            failures.append(f"{command}\n--- page\n{expected}--- program\n{output}")
        return f"```console{match.group(2)}\n{command}\n{output}```"

    text = re.sub(r"```(\w+)([^\n]*)\n(.*?)```", run, text, flags=re.S)

if write:
    page.write_text(text)
print("\n\n".join(failures) if failures else f"{commands} commands print what {page.name} says.")
sys.exit(bool(failures) or commands == 0)
