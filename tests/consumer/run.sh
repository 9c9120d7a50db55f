#!/usr/bin/env bash
# usage: run.sh BUILD_FOLDER
# Installs the build into a scratch folder, builds the program beside this script against that copy alone, runs it, and checks which
# shared libraries it asks for.
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cmake --install "$build" --prefix "$scratch/usr" >/dev/null
cp "$here/CMakeLists.txt" "$here/main.cpp" "$scratch"
cmake -S "$scratch" -B "$scratch/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$scratch/usr" --log-level=WARNING
cmake --build "$scratch/build" >/dev/null
"$scratch/build/consumer"

allowed='linux-vdso|libstdc\+\+|libgcc_s|libm|libc|ld-linux-x86-64|libfmt|libhwy|libsndfile|libyaml-cpp|libtomlplusplus|libz'
# What those bring along (libsndfile's codecs) is theirs: look at what the consumer itself asks for.
asked=$(objdump -p "$scratch/build/consumer" | awk '$1 == "NEEDED" { print $2 }')
echo "$asked"
if surplus=$(grep -vE "^($allowed)\.so" <<<"$asked"); then
  echo "the consumer links what it should not: $surplus" >&2
  exit 1
fi
if missing=$(ldd "$scratch/build/consumer" | grep 'not found'); then
  echo "the consumer cannot be loaded: $missing" >&2
  exit 1
fi
if "$scratch/usr/bin/kizzasi" --version | grep -qv '^kizzasi [0-9]'; then
  echo 'the installed program does not say its version' >&2
  exit 1
fi
