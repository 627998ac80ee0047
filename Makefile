# The two commands of a fresh machine are `make demo` and `make test`; both need Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Which version of pip there is doesn't matter: the packages are pinned.
PIP := $(BIN)/pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest
# Processes of `make test` on two cores: while two wait for a worker, a browser or a timeout, the others go on.
# What is made once for a module stays in one process; tests/conftest.py sorts the longest to the front.
PROCESSES ?= 4
SPREAD := -n $(PROCESSES) --dist loadgroup --no-loadscope-reorder
# Of the nightly tier (tests/tiers.py): none, all, or those that are due, since something that they cover has changed.
NIGHTLY ?= none
SLOW := browser releases analytics/stats/cli
# `make test APP=judging`: the tests of one app, and those of the shape of the code.
CHOSEN = $(or $(ARGS),$(if $(APP),tests/$(APP) $(SHAPE)))
SHAPE := tests/test_layout.py tests/test_interfaces.py tests/test_structure.py
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --upgrade

.PHONY: help demo up test test-all test-quick check audit format locale lock bench clean

help:
	@echo "make demo    install, load the demo project, start it and print its address; ARGS=\"--port 8100\" for another port"
	@echo "make up      the same without the demo"
	@echo "make test    every test but the nightly tier, on PostgreSQL and Redis and on the embedded default; APP=judging for one app"
	@echo "make test-all     the same with the nightly tier: backup, releases, equal rows, schema, published figures, installed wheel, long journeys in a browser"
	@echo "make test-quick   the walk on the embedded default and all tests that need no database, server or process"
	@echo "make check   style, types, layers, templates, migrations"
	@echo "make audit   risky code, secrets in the repository, dependencies with known vulnerabilities"
	@echo "make format  put the code into its style"
	@echo "make locale  bring the interface's translations up to date and compile them"
	@echo "make lock    pin every package anew"
	@echo "make bench   one measurement of bench/, by NAME"
	@echo "make clean   remove the environment and the caches (the data in .panelbench stays)"

demo: $(VENV)/base.stamp
	@exec $(BIN)/panelbench demo $(ARGS)

up: $(VENV)/base.stamp
	@exec $(BIN)/panelbench up $(ARGS)

# Compiled tests are kept, whatever the shell says: the second process and the next run read them.
test test-quick: export PYTHONDONTWRITEBYTECODE :=
# What is missing may be installed, and the last run's summary counts every run. That an app has no test that runs on
# both databases (status 5) is no fault.
test: export PANELBENCH_TEST_INSTALL := 1
test: export PANELBENCH_TEST_SERIES := $(VENV)/test-runs
test: $(VENV)/dev.stamp
	@rm -f $(PANELBENCH_TEST_SERIES)
	$(PYTEST) --nightly $(NIGHTLY) --embedded $(SPREAD) -m "walk or both_databases" $(CHOSEN) || [ $$? -eq 5 ]
	$(PYTEST) --nightly $(NIGHTLY) $(SPREAD) $(CHOSEN)

test-all:
	@$(MAKE) test NIGHTLY=all

# Tables come from the models here, not from migrations; `make test` migrates. What is always slow isn't read.
test-quick: $(VENV)/dev.stamp
	$(PYTEST) --nightly none --embedded --no-migrations -n 2 --dist worksteal -m "walk or not slow" $(SLOW:%=--ignore=tests/%) $(ARGS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/djlint --lint templates
	DEBUG=on $(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/mypy

audit: $(VENV)/dev.stamp
	@$(BIN)/python -m bench.audit

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

locale: $(VENV)/base.stamp
	@DEBUG=on $(BIN)/python manage.py catalogues

lock: $(VENV)/dev.stamp
	$(LOCK) -c requirements/constraints.txt pyproject.toml --extra parquet --extra pdf --group build -o requirements/base.txt
	$(LOCK) -c requirements/base.txt pyproject.toml --extra parquet --extra pdf --group build --group dev -o requirements/dev.txt

bench: $(VENV)/dev.stamp
	@test -n "$(NAME)" || { echo "make bench NAME=submit, or another of:"; grep -l __main__ bench/*.py; exit 1; }
	$(BIN)/python -m bench.$(NAME) $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist

# --- the environment; a stamp for each layer, so that nothing is asked of the network twice -------------------------

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Panelbench needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "Python's venv is missing; on Debian: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet uv || echo "uv could not be had; installing with pip, which takes longer"
	@touch $@

# $(call install,ARGUMENTS): with uv where it can be had and reaches the packages, else with pip.
install = { test -x $(BIN)/uv && $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(1); } || $(PIP) install --quiet $(1)

$(VENV)/base.stamp: $(VENV)/python.stamp requirements/base.txt pyproject.toml
	@echo "installing what Panelbench runs on"
	@$(call install,--require-hashes -r requirements/base.txt)
	@$(call install,--no-deps --no-build-isolation --editable .)
	@touch $@

$(VENV)/dev.stamp: $(VENV)/base.stamp requirements/dev.txt
	@echo "installing what the checks and tests run on"
	@$(call install,--require-hashes -r requirements/dev.txt)
	@touch $@
