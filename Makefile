# RLM-MEM: one target per chore. All is installed into $(VENV); nothing outside this folder is touched.
# On a fresh machine with Python 3.11+ and make, `make demo` and `make test` need no other step.

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

# Handed on to pytest or to the benchmarks: make test ARGS="-k links", make bench ARGS="--quick"
ARGS ?=

# Compiled modules are kept: tests start some hundred processes, and each would compile them again.
unexport PYTHONDONTWRITEBYTECODE

# How many processes run the tests: one a core and one more, since tests wait for browsers, servers and killed processes a
# fifth of their time; each has a database server of its own. A few chosen tests (-k, a path) and a machine with one core
# need no more than one, which is 0 and starts sooner.
CORES := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
WORKERS ?= $(if $(filter 1,$(CORES))$(filter -k% tests/%,$(ARGS)),0,$(shell expr $(CORES) + 1))
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help install dev demo test test-slow test-models test-integrations test-crewai test-clients check format bench bench-peers site links lighthouse image wheels figures clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1	\2/' | expand -t 22

install: $(VENV)/.installed ## the command rlm-mem, in .venv/bin

dev: $(VENV)/.installed-dev ## the same, and what tests and checks need

demo: $(VENV)/.installed ## remember a body of text and answer questions about it
	@$(BIN)/rlm-mem demo --brain build/demo

test: $(VENV)/.installed-dev ## the test suite, on every core (ARGS="-k links", WORKERS=4)
	$(PYTEST) $(ARGS)

test-slow: $(VENV)/.installed-dev ## the tests that take long, too
	$(PYTEST) -m "not real_llm" $(ARGS)

test-models: $(VENV)/.installed-dev ## the tests against a real local model server
	$(PIP) install --quiet --no-deps --requirement tests/real_llm/requirements.txt || echo "No model server for this machine: its tests will be skipped."
	$(BIN)/python -m pytest -m real_llm $(ARGS)

test-integrations: $(VENV)/.installed-dev ## the adapters, each against the real package of its framework; programs of users, by pyright
	$(PIP) install --quiet --editable ".[test,check]" --requirement tests/integrations/requirements.txt
	$(BIN)/python -m pytest tests/integrations tests/test_typed_programs.py $(ARGS)

# CrewAI needs mcp<2, the server of this package mcp>=2.1: it is tested in an environment without the server.
test-crewai: $(BIN)/python ## the memory for CrewAI against the real package
	@test -x build/crewai/bin/python || sh tools/venv.sh build/crewai
	build/crewai/bin/python -m pip install --quiet --editable . "crewai>=1.15.30,<2" pytest hypothesis
	build/crewai/bin/python -m pytest tests/integrations/test_crewai.py $(ARGS)

# Without @latest, npm takes an old client that fits the machine's own Node.js.
test-clients: $(VENV)/.installed-dev ## hooks and server, used by real coding agents (needs npm)
	$(PIP) install --quiet "claude-agent-sdk>=0.2,<0.3"
	npm install --silent --prefix build/clients node@22 @openai/codex@latest @google/gemini-cli@latest @github/copilot@latest @qwen-code/qwen-code@latest opencode-ai@latest
	$(BIN)/python -m pytest -m "not real_llm" tests/integrations/test_coding_agents.py $(ARGS)

check: $(VENV)/.installed-dev ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev ## put the code into the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed-dev ## every benchmark, one report (ARGS="--quick", "--data FOLDER", "--postgres DSN")
	$(BIN)/python tools/bench.py $(ARGS)

bench-peers: $(BIN)/python ## other memories, to be measured beside this one
	@PYTHON=$(CURDIR)/$(BIN)/python sh tools/peers.sh

site: $(VENV)/.installed-docs ## the documentation as a site, in build/site; every warning is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env docs build/site
	@echo "build/site/index.html"

links: $(VENV)/.installed-docs ## ask for every address outside of the site that the documentation names (needs the network)
	$(BIN)/python -m sphinx -b linkcheck --quiet docs build/links

lighthouse: $(VENV)/.installed-dev site ## every page of the site and the dashboard by the rules of axe and by Lighthouse (needs npm, Chromium)
	npm install --silent --prefix build/lighthouse lighthouse@12
	$(BIN)/python benchmarks/pages.py $(ARGS)

image: ## the image, built and tried by the engine that is here: docker, podman or buildah
	sh tools/image.sh $(ARGS)

wheels: ## the wheel, tried in a clean environment of each Python that is here (ARGS="python3.12 …")
	sh tools/wheels.sh $(ARGS)

figures: $(BIN)/python ## fill the pages of benchmarks from benchmarks/results
	$(BIN)/python tools/figures.py

clean: ## remove the environment and every cache
	rm -rf $(VENV) .venv-bare build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@echo "Making the environment $(VENV)"
	@sh tools/venv.sh $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "Installing RLM-MEM into $(VENV)"
	@$(PIP) install -qq --editable ".[server]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "Installing RLM-MEM with what its tests and checks need into $(VENV)"
	@$(PIP) install -qq --editable ".[test,check]"
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	@echo "Installing what builds the site into $(VENV)"
	@$(PIP) install -qq --editable ".[docs]"
	@touch $@ $(VENV)/.installed
