# Bootstrap only: everything else is in tasks.py (`.venv/bin/invoke --list`).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test serve clean help

help:
	@echo "make demo    ask the embedded model two questions, then stop"
	@echo "make serve   serve it on http://127.0.0.1:8000"
	@echo "make test    lint, types, drift and the whole test suite"

demo: $(VENV)/.runtime
	@$(BIN)/python -m codegen generate
	@$(BIN)/coli demo

serve: $(VENV)/.runtime
	@$(BIN)/coli serve

test: $(VENV)/.development
	@$(BIN)/invoke test --all

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	@echo "installing the project into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[build]'
	@touch $@

# not compiled here, on one core: what the tests import of it is compiled by them, on both
$(VENV)/.development: pyproject.toml | $(BIN)/python
	@echo "installing the project and its test tools into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[build,dev,clients]'
	@touch $@ $(VENV)/.runtime

clean:
	rm -rf $(VENV) build dist *.egg-info
