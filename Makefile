# Every target makes its own virtual environment; nothing but Python ≥ 3.11, bash and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# From nothing each time: a page that is read from the cache does not repeat its warnings.
SITE := $(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env --doctree-dir build/doctrees docs build/site

# A file's tests share what they made once, so each file stays with one worker.
PYTEST := $(BIN)/pytest --numprocesses auto --dist loadfile
DOCTEST := $(BIN)/pytest --quiet --doctest-modules src/llxprt_hooks --ignore src/llxprt_hooks/recipes/collection
# The engine, from settings to decisions: its coverage is measured. The rest is agent, commands, documentation, fuzzing.
ENGINE_TESTS := tests/decision tests/direct tests/events tests/model tests/running tests/settings tests/text \
	tests/cli/test_cli_hook_type.py

# The tests of the agent frameworks, which need an environment of their own.
INTEGRATION_VENV := .venv-integrations
INTEGRATION_BIN := $(INTEGRATION_VENV)/bin

.PHONY: check test test-integrations lint matrix docs demo soak bench trace format clean

# While you work: under a minute on two cores.
check: lint
	$(PYTEST) --quiet -m "not slow" $(ENGINE_TESTS)
	$(DOCTEST)

# Everything; what CI runs.
test: lint
	$(SITE)
	$(PYTEST) --cov --cov-report= $(ENGINE_TESTS)
	$(PYTEST) $(addprefix --ignore ,$(ENGINE_TESTS) tests/integrations)
	$(DOCTEST) --cov --cov-append --cov-report=
	$(BIN)/python tests/coverage_check.py
	$(BIN)/python tests/requirement_trace.py --check
	$(MAKE) test-integrations

test-integrations: $(INTEGRATION_VENV)/.installed
	$(INTEGRATION_BIN)/mypy --config-file tests/integrations/mypy.ini
	$(INTEGRATION_BIN)/pytest --numprocesses auto --dist loadfile tests/integrations

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The engine's tests on every installed Python from 3.11 on.
matrix:
	$(PYTHON) tests/python_matrix.py

docs: $(VENV)/.installed
	$(SITE)
	@echo "open $(CURDIR)/build/site/index.html"

demo: $(VENV)/.installed
	$(BIN)/llxprt-hooks demo

soak: $(VENV)/.installed
	$(BIN)/python -m tests.soak.soak $(EVENTS)

bench: $(VENV)/.installed
	$(BIN)/python bench/run.py

trace: $(VENV)/.installed
	$(BIN)/python tests/requirement_trace.py

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(INTEGRATION_VENV) .venv-matrix .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# uv installs a large set of packages in a fraction of pip's time.
$(INTEGRATION_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(INTEGRATION_VENV)
	$(INTEGRATION_BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(INTEGRATION_BIN)/uv pip install --quiet --python $(INTEGRATION_BIN)/python --editable '.[dev,integrations]'
	touch $@
