#!/usr/bin/env python3
"""Checks the directions between rooms.

usage: check_layers.py HOUSE LAYERS [--quiet]

HOUSE is the folder of the rooms (kizzasi/), LAYERS the list that CMake writes (build/layers.txt, a line `room:dep,dep` each). Fails when a
room includes a room that it does not declare, when the declared rooms form a ring, when a file includes another by a relative path, or when
a header includes a library that belongs into a .cpp file (*_inl.h, a part of a kernel compiled for each instruction set, may).
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
# Libraries of which no header of ours may speak; tl/expected.hpp is the one exception of the house.
THIRD_PARTY = re.compile(r"(hwy|fmt|nlohmann|CLI|toml\+\+|yaml-cpp|gtest|gmock|benchmark)/|(sndfile|zlib|yaml)\.h")


def read_layers(path):
    rooms = {}
    for line in path.read_text().split():
        name, _, deps = line.partition(":")
        rooms[name] = [dep for dep in deps.split(",") if dep]
    return rooms


def floors(rooms):
    """The floor of every room: one above the highest room below it. A ring is an error that names its path."""
    found = {}

    def floor(room, path):
        if room in path:
            sys.exit("ring of rooms: " + " -> ".join(path[path.index(room):] + [room]))
        if room not in rooms:
            sys.exit(f"room '{path[-1]}' declares '{room}', which is no room")
        if room not in found:
            found[room] = 1 + max((floor(dep, path + [room]) for dep in rooms[room]), default=-1)
        return found[room]

    for room in rooms:
        floor(room, [])
    return found


def problems(house, rooms):
    for path in sorted(house.rglob("*")):
        if path.suffix not in (".h", ".cpp") or path.parent == house:
            continue  # a header in the house itself is the umbrella
        room = path.relative_to(house).parts[0]
        is_test = re.search(r"_(test|fuzz)\.(h|cpp)$", path.name)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quoted, angled = match.groups()
            place = f"{path}:{number}"
            if angled:
                if path.suffix == ".h" and not is_test and not path.name.endswith("_inl.h") and THIRD_PARTY.match(angled):
                    yield f"{place}: <{angled}> belongs into a .cpp file"
                continue
            if quoted.startswith("hwy/"):
                if path.suffix == ".h" and room != "kernels":
                    yield f"{place}: \"{quoted}\" belongs into a .cpp file"
                continue
            parts = quoted.split("/")
            if parts[0] not in (house.name, "apps", "tests") or ".." in parts:
                yield f"{place}: \"{quoted}\" is relative; write it from the root"
            elif is_test:
                continue  # tests may look anywhere
            elif parts[0] != house.name:
                yield f"{place}: room '{room}' may not include '{parts[0]}'"
            elif len(parts) > 2 and parts[1] != room and parts[1] not in rooms.get(room, []):
                yield f"{place}: room '{room}' may not include '{parts[1]}'; cmake/Rooms.cmake does not name it"


def main():
    house, layers = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    rooms = read_layers(layers)
    heights = floors(rooms)
    found = list(problems(house, rooms))
    if found:
        sys.exit("\n".join(found))
    if "--quiet" not in sys.argv:
        for height in sorted(set(heights.values())):
            print(f"floor {height}:", " ".join(sorted(room for room in rooms if heights[room] == height)))


if __name__ == "__main__":
    main()
