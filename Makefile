# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` set up a fresh Debian 12 by themselves; a second call does only what is out of date.

PYTHON ?= python3
JOBS ?= $(shell nproc)
VENV := .venv
BUILD := build/make
STAMPS := build/stamps

# Debian's CMake: another one on PATH may find other libraries.
export CMAKE_EXECUTABLE ?= $(or $(wildcard /usr/bin/cmake),cmake)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PYTHON
CTEST := $(or $(wildcard /usr/bin/ctest),ctest)

# What the installed package is made of; tests are built from $(BUILD) later.
PACKAGE_INPUTS := $(shell find CMakeLists.txt pyproject.toml runtime sim sgd upmem compiler python machines -type f \
  -not -name '*.pyc' -not -name '*Test.cpp' -not -path '*/test/*')

.PHONY: demo test build setup check format clean
.DELETE_ON_ERROR:

demo: build
	@$(VENV)/bin/nearbank run minilm --machine nmc-64 --policy two-stage

# Both runners always run; either one's failure fails the target. Pytest's ctest entry would run it twice.
test: build
	@"$(CMAKE_EXECUTABLE)" --build $(BUILD)
	@failed=0; \
	"$(CTEST)" --test-dir $(BUILD) --output-on-failure -LE python -j $(JOBS) || failed=1; \
	$(VENV)/bin/python -m pytest || failed=1; \
	exit $$failed

build: setup $(STAMPS)/package

setup: $(STAMPS)/system-packages $(STAMPS)/python-environment

# Without a stamp of its own when it fails: whoever installs the packages by hand goes on from here.
$(STAMPS)/system-packages: setup/debian-packages.txt setup/system-packages.sh
	@mkdir -p $(STAMPS)
	@setup/system-packages.sh
	@touch $@

$(STAMPS)/python-environment: setup/python-environment.sh $(wildcard setup/*.txt) | $(STAMPS)/system-packages
	@setup/python-environment.sh $(VENV)
	@touch $@

$(STAMPS)/package: $(PACKAGE_INPUTS) $(STAMPS)/python-environment
	@echo "build: compiling and installing nearbank into $(VENV)" >&2
	@$(VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --force-reinstall \
	  --config-settings=build-dir=$(BUILD) \
	  --config-settings=cmake.define.NEARBANK_BUILD_TESTS=ON \
	  --config-settings=cmake.define.CMAKE_MAKE_PROGRAM=$(or $(wildcard /usr/bin/ninja),ninja) . </dev/null
	@touch $@

check: setup
	@git ls-files '*.cpp' '*.h' | xargs clang-format-22 --dry-run --Werror
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/codespell $$(git ls-files)
	@$(VENV)/bin/python tests/checks/source_files.py
	@$(VENV)/bin/python tests/checks/include_directions.py
	@$(VENV)/bin/python tests/checks/documents.py

format: setup
	@git ls-files '*.cpp' '*.h' | xargs clang-format-22 -i
	@$(VENV)/bin/ruff check --fix --quiet .
	@$(VENV)/bin/ruff format --quiet .

clean:
	rm -rf build $(VENV)
