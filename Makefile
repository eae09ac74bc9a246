# Every tool comes from one environment: the active one, or `make check PYTHON=.venv/bin/python`.
PYTHON ?= python

.PHONY: check test

check:
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) -m pyright --warnings --pythonpath "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	$(PYTHON) -c 'from importlinter.cli import lint_imports_command as run; run(["--no-logo"])'

test:
	$(PYTHON) -m pytest -n auto
