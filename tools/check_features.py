#!/usr/bin/env python3
"""Checks docs/features.toml against the house, and prints it as a page.

usage: check_features.py [--write FILE]

Fails when a row is absent or repeated, when a row that is done names no test, and when a header, verb or test that any row names does not
exist. With --write, the page goes to FILE; without, FILE docs/FEATURES.md must already be as it would be written.
"""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = 216
STATES = ("done", "partly", "planned")
TEST = re.compile(r"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\s*\(\s*(\w+)\s*,\s*(\w+)", re.MULTILINE)


def unit_tests():
    """{room: {"Suite.Name", ...}} of every *_test.cpp; the command line counts as the room `cli`."""
    found = {}
    for path in (ROOT / "kizzasi").rglob("*_test.cpp"):
        room = path.relative_to(ROOT / "kizzasi").parts[0]
        found.setdefault(room, set()).update(f"{suite}.{name}" for suite, name in TEST.findall(path.read_text()))
    for path in (ROOT / "apps/cli").glob("*_test.cpp"):
        found.setdefault("cli", set()).update(f"{suite}.{name}" for suite, name in TEST.findall(path.read_text()))
    return found


def house_tests():
    return set(re.findall(r"kizzasi_house_test\((\w+)", (ROOT / "tests/CMakeLists.txt").read_text()))


def verbs():
    table = (ROOT / "apps/cli/verbs.cpp").read_text()
    return set(re.findall(r'^\s*\{"(\w+)",', table, re.MULTILINE))


def problems(features):
    numbers = [feature["number"] for feature in features]
    for number in range(1, ROWS + 1):
        if numbers.count(number) != 1:
            yield f"row {number} stands {numbers.count(number)} times"
    in_rooms, in_house, known_verbs = unit_tests(), house_tests(), verbs()
    for feature in features:
        row = f"row {feature['number']} ({feature['title']})"
        if feature["state"] not in STATES:
            yield f"{row}: state '{feature['state']}' is none of {', '.join(STATES)}"
        if feature["mark"] not in ("core", "extra"):
            yield f"{row}: mark '{feature['mark']}' is neither core nor extra"
        if feature["state"] == "done" and not (feature.get("tests") and feature.get("where")):
            yield f"{row}: done without a place and a test"
        if feature["state"] == "partly" and not feature.get("note"):
            yield f"{row}: partly done, but no note says what is missing"
        for place in feature.get("where", []):
            if place.startswith("verb "):
                if place.split()[1] not in known_verbs:
                    yield f"{row}: there is no {place}"
            elif not (ROOT / place).exists():
                yield f"{row}: there is no file {place}"
        for test in feature.get("tests", []):
            kind, _, name = (part.strip() for part in test.partition(":"))
            if kind == "ctest":
                good = name in in_house
            else:
                pool = in_rooms.get(kind.removesuffix("_test"), set())
                good = any(each.startswith(name[:-1]) for each in pool) if name.endswith(".*") else name in pool
            if not good:
                yield f"{row}: there is no test '{test}'"


def page(features):
    count = {state: sum(feature["state"] == state for feature in features) for state in STATES}
    lines = ["# Features", "",
             f"Of {ROWS} rows {count['done']} are done, {count['partly']} are partly there, {count['planned']} are planned.",
             "This page is written from `features.toml` by `make features`; a test fails when a row that is done names a header, a verb or a",
             "test that does not exist."]
    area = None
    for feature in features:
        if feature["area"] != area:
            area = feature["area"]
            lines += ["", f"## {area}", "", "| # | what | mark | state | where | tests |", "|---|---|---|---|---|---|"]
        title = feature["title"] + (f". *{feature['note']}*" if feature.get("note") else "")
        where = ", ".join(f"`{place}`" for place in feature.get("where", []))
        tests = ", ".join(f"`{test}`" for test in feature.get("tests", []))
        lines.append(f"| {feature['number']} | {title} | {feature['mark']} | {feature['state']} | {where} | {tests} |")
    return "\n".join(lines) + "\n"


def main():
    features = tomllib.loads((ROOT / "docs/features.toml").read_text())["feature"]
    found = list(problems(features))
    text = page(features)
    written = ROOT / "docs/FEATURES.md"
    if len(sys.argv) == 3 and sys.argv[1] == "--write":
        pathlib.Path(sys.argv[2]).write_text(text)
        print(text.splitlines()[2])
    elif not written.exists() or written.read_text() != text:
        found.append("docs/FEATURES.md is not what features.toml says: run make features")
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
