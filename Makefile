# Everything that sets up, runs and checks the project. Each target is safe to repeat: an install
# is stamped with the hash of what it was made from and done again only when that changes.

PYTHON ?= python3
# A CPU build of torch is enough; choose another with `make setup TORCH=...`.
TORCH ?= torch==2.13.0

VENV := .venv
BIN := $(VENV)/bin
PROJECTS := pyproject.toml integrations/llama-index/pyproject.toml integrations/langchain/pyproject.toml
HASH := $(shell cat Makefile $(PROJECTS) lara_plugins/version.py requirements-test.txt | cksum | cut -d ' ' -f 1)
DEMO := $(VENV)/.stamps/demo-$(HASH)
TEST := $(VENV)/.stamps/test-$(HASH)
SETUP := $(VENV)/.stamps/setup-$(HASH)
# Tests run side by side, so each takes one thread.
ONE_THREAD := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false

.PHONY: demo test setup check clean

demo: $(DEMO)  ## install the embedded default and watch questions go through the five phases
	$(BIN)/lara demo

test: $(TEST)  ## install what the tests need, then run all checks and tests
	$(MAKE) --no-print-directory check
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadfile

setup: $(SETUP)  ## prepare everything for a developer: the tests' needs and the torch engines

check:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13) and "Python 3.11 to 3.13 is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(DEMO): | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[embedded,cli]'
	@mkdir -p $(@D) && touch $@

$(TEST): $(DEMO)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[embedded,cli]' \
		-e 'integrations/llama-index[embedded]' -e 'integrations/langchain[embedded]' -r requirements-test.txt
	$(BIN)/pip check
	@mkdir -p $(@D) && touch $@

$(SETUP): $(TEST)
	$(BIN)/pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[embedded,cli,cross-encoder]'
	@mkdir -p $(@D) && touch $@
