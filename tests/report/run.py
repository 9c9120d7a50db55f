#!/usr/bin/env python3
"""usage: run.py REPORT_SAMPLE [SCREENSHOT.png]

Opens the sample report in a headless Chromium without a network. Fails on a script error, when a plot does not answer to the pointer, when a
text becomes markup, when the page asks for anything outside itself, or when the screenshot is blank.
"""

import html.parser
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

# Runs in the page, after it is built: what a reader does, and what must follow.
ACT = r"""
const facts = {};
const at = (plot, type, x) => {
  const box = plot.over.getBoundingClientRect();
  plot.over.dispatchEvent(new PointerEvent(type, {clientX: box.left + x, clientY: box.top + 80, pointerId: 1, bubbles: true}));
};
const pixels = (canvas) => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let painted = 0;
  for (let i = 3; i < data.length; i += 4) if (data[i]) painted++;
  return painted;
};
addEventListener("load", () => {
  const first = Plot.all[0], full = [...first.full];
  first.over.setPointerCapture = () => {};
  facts.painted = pixels(first.canvas) > 2000;
  at(first, "pointermove", 400);
  facts.hover = !first.tip.hidden && first.tip.textContent.includes("history");
  at(first, "pointerdown", 300); at(first, "pointermove", 500); at(first, "pointerup", 500);
  facts.zoom = first.view[0] > full[0] && first.view[1] < full[1] && !first.reset.hidden;
  first.reset.click();
  facts.reset = first.view[0] === full[0] && first.view[1] === full[1] && first.reset.hidden;
  const before = pixels(first.canvas);
  document.querySelector(".legend button:nth-child(3)").click();
  facts.legend = pixels(first.canvas) !== before;
  first.over.dispatchEvent(new KeyboardEvent("keydown", {key: "+"}));
  facts.keyboard = first.view[1] - first.view[0] < full[1] - full[0];
  first.over.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
  const head = document.querySelector("th:nth-child(2)");
  head.click(); head.click();
  facts.sort = document.querySelector("tbody tr:nth-child(1) td").textContent === "ridge NLinear"
      || document.querySelector("tbody tr:nth-child(2) td").textContent === "ridge NLinear";
  facts.best = document.querySelectorAll("td.best").length === 3;
  document.querySelectorAll("nav button")[1].click();
  const [joint, residual] = Plot.all.filter((plot) => plot.spec.sync === "arm");
  joint.over.setPointerCapture = () => {};
  at(joint, "pointerdown", 200); at(joint, "pointermove", 260); at(joint, "pointerup", 260);
  facts.sync = residual.view[0] === joint.view[0] && residual.view[1] === joint.view[1] && joint.view[0] > joint.full[0];
  facts.peaks = pixels(residual.canvas) > 1000;
  document.getElementById("theme").click();
  facts.theme = document.documentElement.dataset.theme === "dark";
  facts.markup = document.querySelectorAll("main script, main b:not(.tip b)").length === 0;
  facts.title = document.title.startsWith("<" + "/script>");
  document.documentElement.dataset.facts = JSON.stringify(facts);
});
"""
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--virtual-time-budget=4000", "--window-size=1280,1700",
         "--host-resolver-rules=MAP * ~NOTFOUND"]


def chromium(scratch, page, *arguments):
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.exit("there is no chromium: run ./setup")
    command = [program, *FLAGS, f"--user-data-dir={scratch}/profile", *arguments, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


class Root(html.parser.HTMLParser):
    """The attributes of the html element."""

    def __init__(self, text):
        super().__init__()
        self.attributes = {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "html":
            self.attributes = dict(attributes)


def colours(png):
    """How many different colours the first 700 lines of a screenshot hold (8-bit RGB or RGBA)."""
    data, place, packed, width, depth = png.read_bytes(), 8, b"", 0, 0
    while place < len(data):
        size, kind = struct.unpack(">I4s", data[place:place + 8])
        body = data[place + 8:place + 8 + size]
        if kind == b"IHDR":
            width, _, _, colour_type = struct.unpack(">IIBB", body[:10])
            depth = {2: 3, 6: 4}[colour_type]
        if kind == b"IDAT":
            packed += body
        place += 12 + size
    raw = zlib.decompress(packed)
    stride, row, seen = width * depth + 1, bytearray(width * depth), set()
    for start in range(0, min(len(raw), 700 * stride), stride):
        kind, line = raw[start], bytearray(raw[start + 1:start + stride])
        for i in range(len(line)):
            left = line[i - depth] if i >= depth else 0
            up, corner = row[i], row[i - depth] if i >= depth else 0
            if kind == 1:
                line[i] = (line[i] + left) & 255
            elif kind == 2:
                line[i] = (line[i] + up) & 255
            elif kind == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif kind == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
                line[i] = (line[i] + near[2]) & 255
        row = line
        seen.update(bytes(line[i:i + 3]) for i in range(0, len(line), depth))
    return len(seen)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        report, acted = pathlib.Path(scratch, "report.html"), pathlib.Path(scratch, "acted.html")
        subprocess.run([sys.argv[1], report], check=True)
        page = report.read_text()
        problems = []
        if re.search(r"""(src|href)\s*=|url\(|@import|fetch\(|https?://""", page):
            problems.append("the page asks for something outside itself")
        if re.search("@(TITLE|CONTENT|STYLE|PLOT|PAGE)@", page):
            problems.append("a part of the frame was not filled in")
        acted.write_text(page.replace("</body>", f"<script>{ACT}</script></body>"))
        root = Root(chromium(scratch, acted, "--dump-dom")).attributes
        if root.get("data-ready") != "yes" or root.get("data-errors") != "0":
            problems.append(f"script error: {root.get('data-error', 'the page was not built')}")
        facts = json.loads(root.get("data-facts", "{}"))
        if not facts:
            problems.append("the acts on the page did not run to their end")
        problems += [f"does not hold: {name}" for name, good in facts.items() if not good]

        shot = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(scratch, "report.png")
        chromium(scratch, report, f"--screenshot={shot}")
        if not shot.exists() or (found := colours(shot)) < 50:
            problems.append(f"the screenshot is blank: {found if shot.exists() else 0} colours")
    if problems:
        sys.exit("\n".join(problems))
    print(f"report: {root['data-plots']} plots, {len(facts)} acts, {found} colours, no script error")


if __name__ == "__main__":
    main()
