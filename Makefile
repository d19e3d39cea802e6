# Every target sets up .venv by itself: the machine needs make and Python 3.11 or newer, nothing else.

PYTHON ?= python3
ARGS ?=
EXAMPLES ?= 5000

VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUNS := $(VENV)/.holdfast-runs
STAMP := $(VENV)/.holdfast-installed

.DEFAULT_GOAL := help
.PHONY: help run test check bench campaign soak simulate ablate fuzz docs fresh-venv

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  Options are passed on with ARGS, as in: make test ARGS="-k lease"'
	@echo '  Another Python is chosen with PYTHON, as in: make PYTHON=python3.13 test'

run: $(RUNS) ## Watch jobs at work: retries, dead letters, progress, a killed worker; Ctrl-C ends it
	@$(BIN)/holdfast demo --api-port 8420 $(ARGS)

# Bytecode is kept here, also where the shell asks for none: four processes would compile every test, each run anew.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(STAMP) ## Run the tests, four at a time (they mostly wait); says which took longest, and which are unsteady
	@export TMPDIR="$${TMPDIR:-$$($(BIN)/python -m tests.room)}"; \
	$(BIN)/python -m pytest -q -n 4 --dist worksteal --durations=10 --durations-min=1 \
		$(if $(ARGS),$(ARGS),--cache-clear tests || $(BIN)/python -m tests.again $$?)

check: $(STAMP) ## Check style, formatting, types and layers
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/lint-imports

bench: $(STAMP) ## Measure throughput and latency on this machine
	@$(BIN)/python -m bench $(ARGS)

campaign: $(STAMP) ## Run processes under random faults and check every promise; ARGS=table: every fault at every moment
	@$(BIN)/python -m tests.campaign $(ARGS)

simulate: $(STAMP) ## Run seeds of the deterministic simulation, or replay one: ARGS="--seed 7"
	@$(BIN)/python -m tests.simulation $(ARGS)

soak: $(STAMP) ## Run a steady load with a fault every ten seconds and fail if anything keeps growing
	@$(BIN)/python -m tests.campaign.soak $(ARGS)

ablate: $(STAMP) ## Remove each safeguard in turn and show that a test notices
	@$(BIN)/python -m tests.ablate $(ARGS)

fuzz: $(STAMP) ## Feed every decoder of outside data with EXAMPLES strange inputs each; says each property when it has held
	@HOLDFAST_TEST_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -v -n 2 --timeout=0 --durations=5 tests/fuzz $(ARGS)

docs: $(STAMP) ## Build the documentation as a site, and check that it is true
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "The site is in site/; begin with site/index.html"
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/docs $(ARGS)

# A stamp holds the directory it was made for: in a copied tree, .venv would run the original's sources.
ifneq ($(shell cat $(RUNS) 2>/dev/null || cat $(STAMP) 2>/dev/null),$(CURDIR))
$(RUNS): fresh-venv
endif

fresh-venv:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
		echo "Holdfast needs Python 3.11 or newer, and there is no '$(PYTHON)' here: install one," \
			"or name it, as in: make PYTHON=/path/to/python3.12 $(firstword $(MAKECMDGOALS))" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Holdfast needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1):" \
			"name a newer one, as in: make PYTHON=python3.12 $(firstword $(MAKECMDGOALS))" >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) …"
	@$(PYTHON) -m venv --clear $(VENV) || { \
		echo "$(PYTHON) could not make $(VENV); the lines above say why" \
			"(on Debian and Ubuntu it needs the package python3-venv)" >&2; exit 1; }

# What `make run` needs is a few packages; the tools for everything else are many, and come when they are asked for.
$(RUNS): pyproject.toml
	@echo "Installing Holdfast into $(VENV), once …"
	@$(PIP) --editable '.[cli,http]'
	@printf '%s' '$(CURDIR)' > $@

$(STAMP): $(RUNS)
	@echo "Installing the tools for tests and docs into $(VENV), once; this may take a minute …"
	@# A fresh environment may bring a pip that does not know dependency groups (before 25.1).
	@$(PIP) --upgrade 'pip>=25.1'
	@$(PIP) --group dev
	@printf '%s' '$(CURDIR)' > $@
