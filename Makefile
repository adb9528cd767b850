# Two commands for everybody: `make demo` and `make test`. Both need Python 3.11 or newer and nothing else.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test lint unit wheel test-clients bench docs generate clean

demo: $(VENV)/demo.installed
	$(BIN)/wsformat demo -o out

test: lint unit wheel

lint: $(VENV)/test.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy wsformat
	$(BIN)/python -m wsformat.generate --check

unit: $(VENV)/test.installed
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not client and not gpu and not wheel"

# The wheel as a stranger gets it: built from the tree, installed alone in a new venv, tested away from the sources.
wheel: $(VENV)/test.installed
	$(BIN)/python -m pytest -m wheel

# Tests against real clients: Node, Chromium, a JDK. The script installs what is missing; a missing tool then fails.
test-clients: $(VENV)/test.installed
	PYTHON=$(BIN)/python bash tests/clients/install.sh
	WSFORMAT_REQUIRE_CLIENTS=1 $(BIN)/python -m pytest -m client

bench: $(VENV)/test.installed
	$(BIN)/python bench/run.py

# The site of the documentation, in site/; any broken link stops it.
docs: $(VENV)/test.installed
	$(BIN)/python docs/make_site.py

generate: $(VENV)/test.installed
	$(BIN)/python -m wsformat.generate

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "wsformat needs Python 3.11 or newer; say which with: make PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --editable ".[view]"
	@touch $@

$(VENV)/test.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --editable ".[view,test]"
	@touch $@ $(VENV)/demo.installed

clean:
	rm -rf $(VENV) build dist out site *.egg-info
