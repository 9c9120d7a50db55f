"""What the tables over every backbone share: running the program, the names of the backbones, and results kept as they come."""

import hashlib
import json
import pathlib
import re
import subprocess
import sys


def run(words, folder="."):
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def architectures(kizzasi):
    told = re.search(r"--architecture TEXT.*?\(one of ([^)]*)\)", run([kizzasi, "train", "--help"]), re.DOTALL).group(1)
    return [name.strip() for name in re.sub(r"\s+", " ", told).split(",")]


class Kept:
    """Results in a file, those of this very program only: another build begins anew."""

    def __init__(self, path, kizzasi):
        self.path = pathlib.Path(path)
        self.program = hashlib.sha256(pathlib.Path(kizzasi).read_bytes()).hexdigest()
        found = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.results = found["results"] if found.get("program") == self.program else {}

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"program": self.program, "results": self.results}, indent=1))
