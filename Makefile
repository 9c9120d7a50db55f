# make            what there is to make
# make build      the program, build/bin/kizzasi
# make demo       learns three recordings, streams them through their limits, writes demo/report.html
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
KIZZASI := build/bin/kizzasi
# Tests are configured where their library is installed, so that a machine with the everyday packages alone can build the program.
TESTS := $(shell pkg-config --exists gtest 2>/dev/null && echo ON || echo OFF)

export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export CTEST_PARALLEL_LEVEL := $(JOBS)
export CTEST_OUTPUT_ON_FAILURE := 1

# $(call need,PROGRAM,TARGET): a clear word where a tool is missing, instead of a shell's.
need = command -v $(1) >/dev/null || { echo "make $(2) needs $(1), which is not installed: run ./setup" >&2; exit 1; }

.PHONY: help setup build demo quick test evidence bench format features package clean
.PHONY: configure-tests test-format test-release test-headers test-docs test-sanitizers test-races test-neon

help:
	@echo 'make build      build/bin/kizzasi (installs missing packages first)'
	@echo 'make demo       the demo in three acts; writes demo/report.html'
	@echo 'make quick      builds and runs the unit tests, at most 3 minutes after a small change'
	@echo 'make test       everything that must hold: tests, sanitizers, format, layers, documentation, install'
	@echo 'make test-neon  the kernels for 64-bit Arm, cross-compiled, their tests under emulation'
	@echo 'make evidence   the long checks; writes docs/evidence.md (hours; interrupted, it goes on where it was)'
	@echo 'make bench      speed of kernels and steps on this machine'
	@echo 'make format     formats every C++ file'
	@echo 'make features   writes docs/FEATURES.md from docs/features.toml, docs/configuration.md from the fields'
	@echo 'make package    a .deb and a tarball in dist/'

setup:
	@./setup

build:
	@./setup build
	@cmake --preset release -DKIZZASI_TESTS=$(TESTS) -DKIZZASI_BENCH=OFF >/dev/null
	@cmake --build build --target kizzasi
	@echo 'built $(KIZZASI)'

demo: build
	$(KIZZASI) demo --out demo

configure-tests:
	@$(call need,ninja,test)
	@pkg-config --exists gtest || { echo 'the tests need libgtest-dev, which is not installed: run ./setup' >&2; exit 1; }
	@cmake --preset release -DKIZZASI_TESTS=ON -DKIZZASI_BENCH=ON >/dev/null

quick: configure-tests
	@cmake --build build
	@ctest --test-dir build --label-exclude house --quiet || ctest --test-dir build --rerun-failed
	@tools/check_layers.py kizzasi build/layers.txt --quiet

# Gates, cheapest first.
test: setup
	@$(MAKE) --no-print-directory test-format test-release test-headers test-docs test-sanitizers test-races
	@echo 'make test: everything holds'

test-format:
	@tools/check_format

test-release: configure-tests
	cmake --build build
	ctest --test-dir build -j2

test-headers: configure-tests
	cmake --build build --target all_verify_interface_header_sets

test-docs:
	@$(call need,doxygen,test)
	tools/check_docs

test-sanitizers:
	@$(call need,clang++-19,test)
	@cmake --preset asan -DKIZZASI_BENCH=OFF >/dev/null
	cmake --build build/asan
	ctest --test-dir build/asan -j2 --label-exclude house

# Not part of make test: it needs a cross-compiler and an emulator (tools/test_neon says which).
test-neon:
	@tools/test_neon

test-races:
	@$(call need,clang++-19,test)
	@cmake --preset tsan -DKIZZASI_BENCH=OFF >/dev/null
	cmake --build build/tsan --target base_test train_test engine_test
	ctest --test-dir build/tsan -j2 --label-regex '^(base|train|engine)$$'

evidence: configure-tests
	@$(call need,python3,evidence)
	@cmake --build build
	tools/evidence.py

bench: configure-tests
	@cmake --build build
	@if [ -x build/bin/kizzasi_bench ]; then build/bin/kizzasi_bench; else echo 'kernels are left out: Google Benchmark is not installed (./setup)'; fi
	@$(KIZZASI) bench

format:
	@$(call need,clang-format-19,format)
	git ls-files '*.h' '*.cpp' | xargs clang-format-19 -i

features: configure-tests
	@$(call need,python3,features)
	@tools/check_features.py --write docs/FEATURES.md
	@cmake --build build --target configuration_page
	@build/bin/configuration_page > docs/configuration.md

package: build
	tools/package

clean:
	rm -rf build demo dist
