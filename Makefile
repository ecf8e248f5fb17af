# Every target makes its own virtual environment; nothing but Python ≥ 3.11, bash and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# From nothing each time: a page that is read from the cache does not repeat its warnings.
SITE := $(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env --doctree-dir build/doctrees docs build/site

# An idle worker takes over tests of a busy one, so that both end at the same time.
SPREAD := --numprocesses $(or $(PYTEST_WORKERS),auto) --dist worksteal
PYTEST := $(BIN)/pytest $(SPREAD)
# Many tests wait for processes and terminals: with one worker more than cores, no core waits with them. While other
# targets run, one worker per core is enough.
ONE_MORE = --numprocesses $(if $(PYTEST_WORKERS),auto,$$(($$(getconf _NPROCESSORS_ONLN) + 1)))
DOCTEST := $(BIN)/pytest --quiet --doctest-modules src/llxprt_hooks --ignore src/llxprt_hooks/recipes/collection --ignore src/llxprt_hooks/integrations
# The engine, from settings to decisions: its coverage is measured. The rest is agent, commands, fuzzing.
ENGINE_TESTS := tests/core tests/dialects tests/hooks tests/model tests/settings tests/process/shell tests/process/warm tests/_support \
	tests/fleet/test_nats_bus.py tests/clients/test_sentences.py tests/test_public_names.py
# What users read and install, and what they copy into their projects.
DOCS_TESTS := tests/docs tests/distribution
RECIPE_TESTS := tests/recipes tests/commands

# The tests of the agent frameworks, which need an environment of their own. With NEWEST=1, one with the newest releases.
INTEGRATION_VENV := .venv-integrations$(if $(NEWEST),-newest)
INTEGRATION_BIN := $(INTEGRATION_VENV)/bin

# Some machines and containers set it. Compiling every module again in each of thousands of processes takes minutes.
unexport PYTHONDONTWRITEBYTECODE

RUN_PARALLEL := $(BIN)/python tests/run_parallel.py $(MAKE)

.PHONY: check test test-fast lint check-engine doctest test-engine test-others test-docs test-recipes test-trace \
	test-integrations matrix docs dist lock demo pictures soak bench fleet trace format clean

# While you work: about a minute on two cores.
check: $(VENV)/.installed
	@$(RUN_PARALLEL) 'lint doctest' check-engine

# Everything; what CI runs. Each of these targets can be made on its own. Side by side, they keep two cores busy without
# workers, which would add what they import and report, and in which coverage takes longer to measure.
test: export PYTEST_WORKERS = $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores > 3 ? cores / 2 : 0)))
test: $(VENV)/.installed
	@$(RUN_PARALLEL) 'test-engine test-recipes lint test-trace' 'test-others' 'test-integrations test-docs'

# Of these, the ones that may differ between systems and versions of Python.
test-fast: $(VENV)/.installed
	@$(RUN_PARALLEL) 'test-engine test-others test-recipes'

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

check-engine: $(VENV)/.installed
	$(PYTEST) --quiet -m "not slow" $(ENGINE_TESTS)

doctest: $(VENV)/.installed
	$(DOCTEST)

test-engine: $(VENV)/.installed
	$(PYTEST) --cov --cov-report= $(ENGINE_TESTS)
	$(DOCTEST) --cov --cov-append --cov-report=
	$(BIN)/python tests/coverage_check.py

test-others: $(VENV)/.installed
	$(PYTEST) $(ONE_MORE) $(addprefix --ignore ,$(ENGINE_TESTS) $(DOCS_TESTS) $(RECIPE_TESTS) tests/integrations)

test-docs: $(VENV)/.installed
	$(PYTEST) $(ONE_MORE) $(DOCS_TESTS)

test-recipes: $(VENV)/.installed
	$(PYTEST) $(ONE_MORE) $(RECIPE_TESTS)

test-trace: $(VENV)/.installed
	$(BIN)/python tests/requirement_trace.py --check

# Those that run again, because google-genai has another major version in this environment. Newest frameworks may have
# other versions of every SDK.
MODEL_TESTS = $(if $(NEWEST),tests/model,$(filter-out %_translator_properties.py,$(shell grep --files-with-matches google tests/model/test_*.py)))

test-integrations: $(INTEGRATION_VENV)/.installed
	$(INTEGRATION_BIN)/mypy --config-file tests/integrations/mypy.ini
	$(INTEGRATION_BIN)/pytest $(SPREAD) --doctest-modules tests/integrations $(MODEL_TESTS) src/llxprt_hooks/integrations

# The engine's tests on every installed Python from 3.11 on, and warm scripts on every one from 3.8 on.
matrix: $(VENV)/.installed
	$(PYTHON) tests/python_matrix.py
	LLXPRT_TEST_PYTHONS=all $(PYTEST) --dist load tests/process/warm

docs: $(VENV)/.installed
	$(SITE)
	@echo "open $(CURDIR)/build/site/index.html"

# A wheel and a source archive in dist/. The wheel is built from the archive, so both are complete.
dist: $(VENV)/.installed
	rm -rf dist
	$(BIN)/python -m build

# The exact versions that the other targets install, on every supported Python and system.
LOCK := $(BIN)/uv pip compile --quiet --upgrade --universal --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	--no-emit-package llxprt-hooks
lock: $(VENV)/.installed
	echo '--editable .' | $(LOCK) --group dev --output-file constraints/dev.txt -
	echo '--editable .' | $(LOCK) --group integrations --output-file constraints/integrations.txt -

# The first thing that many people run: it installs the package itself, and nothing for development.
demo: $(VENV)/.base
	@$(BIN)/llxprt-hooks demo

# The picture of the inspector, which README.md shows too; with chromium and chromium-driver.
pictures: $(VENV)/.installed
	$(BIN)/python -m docs.pictures.draw_inspector

soak: $(VENV)/.installed
	$(BIN)/python -m tests.soak.soak $(EVENTS)
	$(BIN)/python -m tests.soak.ahead $(EVENTS)

bench: $(VENV)/.installed
	$(BIN)/python bench/run.py

# 200 agents ask four workers, which are killed one by one, while the NATS server is restarted: about half a minute.
fleet: $(VENV)/.installed
	$(BIN)/python bench/fleet_load.py

trace: $(VENV)/.installed
	$(BIN)/python tests/requirement_trace.py

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .venv-integrations .venv-integrations-newest .venv-matrix .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build

# uv installs in a fraction of pip's time. It does not read pip's configuration, and some machines cannot have it: where
# it fails, pip installs. The pip that comes with Python may be too old for dependency groups.
PACKAGES = $(VERSIONS) --editable . $(addprefix --group ,$(GROUP))
# Compiled when they are installed: some packages have warnings in their source, which would fail the tests.
$(VENV)/.base $(VENV)/.installed: VERSIONS := --constraint constraints/dev.txt
$(INTEGRATION_VENV)/.installed: VERSIONS := $(if $(NEWEST),--overrides tests/integrations/newest.txt,--constraint constraints/integrations.txt)
$(VENV)/.base: GROUP :=
$(VENV)/.base: DURATION := about 10 seconds
$(VENV)/.installed: GROUP := dev
$(VENV)/.installed: DURATION := about a minute
$(INTEGRATION_VENV)/.installed: GROUP := integrations
$(INTEGRATION_VENV)/.installed: DURATION := one or two minutes
$(VENV)/.installed: $(VENV)/.base
$(VENV)/.base $(VENV)/.installed $(INTEGRATION_VENV)/.installed: pyproject.toml constraints/dev.txt constraints/integrations.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11")'
	@echo "Installing llxprt-hooks$(GROUP:%= and the group %) in $(@D): $(DURATION)" >&2
	@test -x $(@D)/bin/pip || $(PYTHON) -m venv $(@D)
	@pip="$(@D)/bin/python -m pip install --quiet --disable-pip-version-check"; \
	{ $$pip uv && $(@D)/bin/uv pip install --quiet --compile-bytecode --python $(@D)/bin/python $(PACKAGES); } || \
	{ echo "uv does not work here. Installing with pip"; $(if $(GROUP),$$pip 'pip>=25.1' &&) $$pip $(PACKAGES); } || \
	{ echo "Cannot install the packages in $(@D). Is a package index reachable? See the errors above." >&2; exit 1; }
	@touch $@
