# Every target makes its own virtual environment first: `make demo` and `make test` need nothing but Python 3.11+.
# PYTHON=/path/to/python chooses the interpreter when the environment does not exist yet; ARGS=... reaches the tool.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS  ?= 2
ARGS  ?=

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint types docs bench soak live clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

venv: $(STAMP) ## make or refresh the virtual environment

$(STAMP): pyproject.toml tools/make-venv
	@tools/make-venv $(VENV)
	@touch $@

demo: $(STAMP) ## compact a long conversation, kill it half-way, resume, verify
	@$(BIN)/python examples/demo.py $(ARGS)

test: $(STAMP) ## run every test but the long ones
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

lint: $(STAMP) ## style, format and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

types: $(STAMP) ## type-check the package and its tests
	$(BIN)/mypy

docs: $(STAMP) ## run every example of the pages and compare them with the code
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/docs $(ARGS)

bench: $(STAMP) ## run every benchmark; the table goes to build/bench.md
	@$(BIN)/python -m benchmarks $(ARGS)

soak: $(STAMP) ## run the long tests, with many more generated examples
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m soak --hypothesis-profile=soak --timeout 3600 $(ARGS)

live: $(STAMP) ## run the tests against the model server that TURNFOLD_LIVE_BASE_URL names
	$(BIN)/python -m pytest -m live $(ARGS)

clean: ## remove the virtual environment, the caches and what was built
	rm -rf $(VENV) $(VENV).lock build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
