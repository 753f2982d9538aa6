# The commands people and CI use. `make setup` is implied by all of them.

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Half as many again as there are cores: tests wait for processes, discs and clocks.
SPREAD := -n $(shell expr $$(nproc) \* 3 / 2) --dist worksteal
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
            "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
            && command -v "$$p" && break; done)

.PHONY: setup demo check format test test-real test-gpu bench clean

setup: $(READY)

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Dovetail needs Python 3.11 or newer: install python3 (Debian, Ubuntu: apt install python3 python3-venv)."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv is missing: install it (Debian, Ubuntu: apt install python3-venv)."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

demo: setup  ## replay a made-up trace under five policies, then real jobs under two
	$(BIN)/dovetail demo --out out/demo.html

check: setup  ## format, lint, types, import contract
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo >/dev/null || $(BIN)/lint-imports --no-logo

format: setup
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --quiet --fix .

test: setup  ## all tests that need no system packages
	@$(BIN)/python -m compileall -q src
	$(BIN)/pytest $(SPREAD) -m 'not real and not gpu'

test-real: setup  ## what needs system packages; installs them when root, else skips by name
	$(BIN)/python tests/real/prepare.py
	DOVETAIL_TEST_EFFORT=1 $(BIN)/pytest $(SPREAD) -m 'hypothesis and not real and not gpu'
	$(BIN)/pytest -m real -rs

test-gpu: setup  ## what only a box with an NVIDIA GPU and PyTorch can show
	$(BIN)/pytest -m gpu -rs

bench: setup  ## figures and ratios in out/bench.json, checked against benchmarks/ranges.toml
	$(BIN)/python benchmarks/run.py --out out/bench.json

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .import_linter_cache .hypothesis
