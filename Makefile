# Two commands matter: `make check` and `make test`. Both set up what they need.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Without bytecode files, every server that the tests start compiles its modules anew: a third of its start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: check test pytest targets lint browser postgres browsers-and-databases docs wheel audit matrix mutants bench bench-compare help

help:
	@echo "make check   run the whole suite against the bundled server"
	@echo "make test    lint, type-check and run all tests"
	@echo "make targets run the tests with real servers, which installs them"
	@echo "make lint    ruff, mypy and the spec's own lint"
	@echo "make wheel   build dist/session_continuity-…-py3-none-any.whl"
	@echo "make docs    build the documentation site in build/site, and check its links"
	@echo "make matrix  run the suite on every defect and write the matrix anew"
	@echo "make mutants run the suite on every mechanical mutant of the server (20 minutes) and write docs/reference/mutants.md anew;"
	@echo "             MUTANTS=--new plays only those of lines that have changed"
	@echo "make audit   compare the installed packages with known vulnerabilities (needs the network)"
	@echo "make bench   measure the server (10 minutes) and write docs/reference/benchmarks.md anew;"
	@echo "             make bench-compare BASE=rev measures it beside the server of another commit"

check: $(READY)
	$(BIN)/continuity check

test:
	@$(MAKE) --no-print-directory -j2 $(READY) browsers-and-databases
	@$(MAKE) --no-print-directory -j2 lint pytest

# The slowest files come first, so that no worker is left alone with one at the end. One that mostly waits is as slow as one that works.
SLOWEST := $(addprefix tests/e2e/test_,matrix.py hostile_targets.py every_option.py wheel.py)
SLOW := $(filter-out $(SLOWEST),$(wildcard tests/e2e/test_*.py)) tests/server tests/tools tests/kit
OTHERS := $(filter-out tests/e2e tests/server tests/tools tests/kit tests/real_targets tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/))) $(wildcard tests/test_*.py)

pytest: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations=10 $(SLOWEST) $(SLOW) $(OTHERS)

# Real servers, installed in the user's cache folder: hundreds of MB the first time.
targets: $(READY)
	$(BIN)/python -m pytest tests/real_targets

lint: $(READY)
	$(BIN)/ruff check -q
	$(BIN)/ruff format -q --check
	$(BIN)/mypy
	$(BIN)/continuity spec lint

# The tests of report.html, of the site and of `continuity ui` open them in a real browser.
browser:
	@command -v chromium > /dev/null || (echo "make: installing Debian's chromium for the tests of report.html" && apt-get update -qq && apt-get install -y -qq chromium > /dev/null)

# The tests of the server on PostgreSQL start clusters of their own, so Debian need not make one.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || (echo "make: installing Debian's postgresql for the tests of the server on PostgreSQL" && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql-common > /dev/null && sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql > /dev/null)

# apt-get runs once at a time.
browsers-and-databases:
	@$(MAKE) --no-print-directory browser
	@$(MAKE) --no-print-directory postgres

# pip-audit has an environment of its own, so that it does not audit itself.
audit: $(READY)
	test -x .audit/bin/pip-audit || ($(PYTHON) -m venv .audit && .audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit)
	$(BIN)/python tools/audit.py .audit/bin/pip-audit

# One file that installs the commands `continuity` and `session-continuity` anywhere.
wheel: $(READY)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# Without a network. A warning, such as a link that leads nowhere or a page that is stale, ends the build.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

matrix: $(READY)
	$(BIN)/python tools/matrix/matrix.py
	$(BIN)/python tools/matrix/signatures.py

mutants: $(READY)
	$(BIN)/python tools/mutants/mutants.py $(MUTANTS)

bench: $(READY)
	$(BIN)/python tools/benchmarks/bench.py $(BENCH)

BASE ?= HEAD
bench-compare: $(READY)
	$(BIN)/python tools/benchmarks/compare.py $(BASE) $(BENCH)

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Session Continuity needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]" --group dev
	touch $@
