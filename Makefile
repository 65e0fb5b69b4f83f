# Facula: `make demo` and `make test` do all set-up themselves; `make help` lists the rest.
PYTHON ?= python3
ORACLE ?= build/oracle-venv
SUITE_OPTIONS ?=
DEMO_OPTIONS ?=
BENCH_OPTIONS ?=
FUZZ_SECONDS ?= 3600
FUZZ_BUILD ?= quick

ifeq ($(shell command -v $(PYTHON) 2>/dev/null),)
$(error $(PYTHON) was not found: apt-get install python3, or choose one with PYTHON=...)
endif

VENV_PYTHON := .venv/bin/python
BUILD := $(VENV_PYTHON) tools/build.py
TESTS := $(VENV_PYTHON) tools/run_tests.py
CONFORMANCE := ../shared/conformance

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-compiler compiler build build-tests demo examples test test-cpp test-python test-isa test-aarch64 fault-matrix \
        test-compiled oracle differential \
        program-packages programs conformance conformance-compiled coverage-table bench leaks fuzz test-abi \
        asan tsan debug docs format lint size baseline completeness wheel \
        wheel-compiler clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## system packages (as root) and the virtual environment .venv
	@$(PYTHON) tools/setup.py

build: setup ## the library and the Python package, in build/release
	@$(BUILD)

setup-compiler: setup
	@$(PYTHON) tools/setup.py --compiler

compiler: setup-compiler ## libfacula_compiler.so: compiled functions as machine code (needs LLVM 19)
	@$(BUILD) --compiler

build-tests: setup-compiler
	@$(BUILD) --tests

demo: build ## train a small network on handwritten digits, with a picture of the result
	@$(VENV_PYTHON) examples/digits.py --out-dir build/demo $(DEMO_OPTIONS)

examples: build program-packages ## the examples with facula and PyTorch: their curves, side by side
	@PYTHONPATH=build/release/python:build/program-packages/site-packages \
	  $(ORACLE)/bin/python examples/compare.py $(SUITE_OPTIONS)

test: build-tests ## all C++ and Python tests
	@$(TESTS) --reset cpp python

test-cpp: build-tests ## the C++ tests (SUITE_OPTIONS=--gtest_filter=...)
	@$(TESTS) cpp --options='$(SUITE_OPTIONS)'

test-python: build ## the Python tests (SUITE_OPTIONS="-k name")
	@$(TESTS) python --options='$(SUITE_OPTIONS)'

test-compiled: build ## the Python tests once more, each test's body as a compiled function
	@$(TESTS) python --compiled --options='--ignore=tests/python/tools $(SUITE_OPTIONS)'

test-abi: setup ## plug-ins compiled against one build, run with one whose records differ
	@$(VENV_PYTHON) tools/test_abi.py

test-isa: build ## values of all operators with each lesser instruction set in force
	@for set in default avx2; do \
	  $(TESTS) python --cpu $$set --options='-k "test_values or test_kernel_paths or test_layouts"' \
	    || exit 1; \
	done

# Emulated, with a Python of that processor: tests that start other processes are not among these.
test-aarch64: setup ## the C++ tests and the tables of values for aarch64, under emulation
	@$(PYTHON) tools/setup.py --target aarch64
	@$(BUILD) --type aarch64 --tests
	@$(TESTS) --type aarch64 cpp --options='$(SUITE_OPTIONS)'
	@$(TESTS) --type aarch64 python/operators \
	  --options='-k "test_values or test_kernel_paths or test_layouts" $(SUITE_OPTIONS)'

oracle: setup ## the environment with PyTorch for comparisons (ORACLE=its folder)
	@$(PYTHON) tools/setup.py --oracle $(ORACLE)

differential: build oracle ## the tests that compare with PyTorch
	@$(TESTS) differential --python $(ORACLE)/bin/python --options='$(SUITE_OPTIONS)'

# The folder's name tells dill, by which datasets makes fingerprints, that they are packages.
program-packages: oracle
	@$(ORACLE)/bin/python -m pip install -q --disable-pip-version-check --no-deps --upgrade \
	  --target build/program-packages/site-packages -r tests/programs/requirements.txt

programs: build program-packages ## programs that say `import torch`, with PyTorch and with facula
	@PYTHONPATH=build/release/python $(ORACLE)/bin/python tests/programs/run.py --table \
	  --packages build/program-packages/site-packages $(SUITE_OPTIONS)

conformance: build oracle ## PyTorch's operator database, and the floor of passing cases
	@PYTHONPATH=build/release/python $(VENV_PYTHON) tools/conformance.py --harness $(CONFORMANCE) \
	  --python $(ORACLE)/bin/python $(SUITE_OPTIONS)

conformance-compiled: build oracle ## the same database, each operator in a compiled call
	@PYTHONPATH=build/release/python $(ORACLE)/bin/python $(CONFORMANCE)/opinfo.py ops \
	  --module compiled_facula --path tools/compiled --jobs 2 $(SUITE_OPTIONS)

coverage-table: build oracle ## docs/coverage_autograd.md: PyTorch's names of autograd and its kin
	@PYTHONPATH=build/release/python $(ORACLE)/bin/python tools/coverage_table.py

bench: build oracle ## facula and PyTorch side by side, ratios and medians
	@PYTHONPATH=build/release/python $(ORACLE)/bin/python -m bench $(BENCH_OPTIONS)

fault-matrix: build ## what ranks are told when one fails, by engine: the table in docs/internals/distributed.md
	@PYTHONPATH=build/release/python $(VENV_PYTHON) tools/fault_matrix.py --write

leaks: build ## run the scenarios of object lifetimes 100,000 times; nothing may grow
	@PYTHONPATH=build/release/python $(VENV_PYTHON) tests/python/leaks.py $(SUITE_OPTIONS)

fuzz: setup ## calls, programs and files drawn at random (FUZZ_SECONDS=3600); nothing may break
	@$(BUILD) --type $(FUZZ_BUILD)
	@PYTHONPATH=build/$(FUZZ_BUILD)/python $(VENV_PYTHON) tests/fuzz/run.py --seconds $(FUZZ_SECONDS)

asan: setup ## all tests under the address and undefined-behaviour sanitizers
	@$(BUILD) --type asan --tests
	@$(TESTS) --type asan cpp python --options='$(SUITE_OPTIONS)'

tsan: setup ## threads under the thread sanitizer: the C++ tests, and the Python tests of threads
	@$(BUILD) --type tsan --tests
	@$(TESTS) --type tsan cpp --options='$(SUITE_OPTIONS)'
	@$(TESTS) --type tsan python --options='-k test_threads $(SUITE_OPTIONS)'

debug: setup ## a build for the debugger in build/debug, with tools/gdb/facula_printers.py
	@$(BUILD) --type debug --tests
	@echo "PYTHONPATH=build/debug/python gdb -x tools/gdb/facula_printers.py --args $(VENV_PYTHON) SCRIPT"

docs: build ## the site in build/docs/html: tutorial, reference, measured speed
	@$(PYTHON) tools/setup.py --docs
	@$(VENV_PYTHON) -m pytest -q tests/python/tools/test_pages.py tests/python/tools/test_reference.py
	@$(VENV_PYTHON) tools/docs_site.py

format: setup ## format C++ and sort Python imports
	@$(VENV_PYTHON) tools/lint.py --fix

lint: setup ## style: formatting, ruff, the rules of the house
	@$(VENV_PYTHON) tools/lint.py

size: build ## the library's size by operator family
	@$(VENV_PYTHON) tools/library_size.py

baseline: build ## no newer vector instruction in baseline code
	@$(VENV_PYTHON) tools/check_baseline.py

completeness: build-tests ## what operators have and lack; fails where a hole has no reason
	@$(TESTS) cpp --options='--gtest_filter=Completeness*'
	@$(TESTS) python --options='-k test_completeness'

wheel: setup ## a wheel in dist/
	@$(VENV_PYTHON) -m pip wheel --disable-pip-version-check --no-deps -q -w dist . && ls -lh dist/*.whl

wheel-compiler: compiler ## a wheel of libfacula_compiler.so in dist/: facula-compiler
	@rm -rf build/wheel-compiler && cp -r packaging build/wheel-compiler
	@strip -o build/wheel-compiler/facula_compiler/libfacula_compiler.so \
	  build/release/python/facula/libfacula_compiler.so
	@$(VENV_PYTHON) -m pip wheel --disable-pip-version-check --no-deps -q -w dist build/wheel-compiler \
	  && ls -lh dist/facula_compiler*.whl

clean: ## remove what was built (keeps .venv and the oracle's environment)
	@rm -rf build/generated build/release build/quick build/debug build/asan build/tsan build/aarch64 build/wheel-* build/demo build/docs build/reports build/logs dist

distclean: clean ## remove everything that is not in the repository
	@rm -rf build .venv
