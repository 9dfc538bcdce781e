# Needs Python 3.11 or newer, git and make; everything else is put into .venv.
# Each target works alone, from a fresh clone.

PYTHON ?= python3
BIN := .venv/bin
VENV := .venv/.made
INSTALLED := .venv/.installed
MINUTES ?= 10
# What is made beside those parts of `check` that need no test.
BESIDE =
# Where the demo tells what it does.
TOLD =
READY := .venv/.ready
# Many tests wait for a program or the disk: one worker more than there are processors.
WORKERS = $$(( $$(getconf _NPROCESSORS_ONLN) + 1 ))
# A worker that has nothing left takes tests from one that has.
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist worksteal -q
# Pages with generated parts; a page opts in by an opening cog marker at the start of a line.
GENERATED = grep -rl --include='*.md' '^<!-- \[\[\[cog' README.md docs
# Else each of the hundreds of programs that tests start compiles our modules anew.
unexport PYTHONDONTWRITEBYTECODE
HEADING = @printf '\n== %s ==\n'

.PHONY: help demo test fast check lint types generated bench deep docs soak torture

help:
	@echo 'make demo    show the tool at work on a real team'
	@echo 'make test    run every test'
	@echo 'make fast    run the tests of functions and formats: under three minutes'
	@echo 'make check   what CI runs: format, lint, types, generated docs, every test'
	@echo 'make lint    format and lint; make types and make generated are the other parts of check that need no test'
	@echo 'make bench   measure, beside the floors of this machine'
	@echo 'make deep    the property tests again, with many more examples'
	@echo 'make soak    each case of what is drawn by lot, two verifiers on 10,000 mutated exports, each attack 60 times, every row damaged, 20,000 schedules of merges, 60 of clones that die, each source damaged 60 times, each worst of each parser, 200,000 mutated sessions, each mutant of the judge'
	@echo 'make torture kill, crowd and corrupt teams for ten minutes (needs strace); MINUTES=60 for an hour'
	@echo 'make docs    write the generated parts of the documentation again'

$(VENV): pyproject.toml
	@echo 'Preparing .venv (once, and again when pyproject.toml changes) ...'
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tripod needs Python 3.11 or newer; say which one: make PYTHON=python3.12")'
	@$(PYTHON) -m venv .venv
	@touch $@

# What the command itself needs; the rest of what is put there is for tests.
$(INSTALLED): $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(READY): $(INSTALLED)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(INSTALLED)
	@$(BIN)/tripod demo $(TOLD)

test: $(READY)
	$(PYTEST) tests

fast: $(READY)
	$(PYTEST) tests/core

check: $(READY)
	@$(MAKE) --no-print-directory -j3 $(BESIDE) types generated lint
	$(HEADING) 'tests'
	$(PYTEST) tests

lint: $(READY)
	$(HEADING) 'format and lint'
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(HEADING) 'types'
	$(BIN)/mypy

generated: $(READY)
	$(HEADING) 'generated documentation is up to date'
	$(GENERATED) | xargs $(BIN)/cog --check

bench: $(READY)
	$(BIN)/python -m benchmarks

deep: $(READY)
	$(PYTEST) --hypothesis-profile=deep tests/core tests/deep

docs: $(READY)
	$(GENERATED) | xargs -r $(BIN)/cog -r

soak: $(READY)
	TRIPOD_TRIALS=10000 $(BIN)/pytest -n0 -q tests/deep/verify/test_exports_mutated.py
	TRIPOD_TRIALS=60 $(PYTEST) tests/deep/verify/test_attacks.py
	TRIPOD_TRIALS=10000 $(BIN)/pytest -n0 -q tests/deep/verify/test_any_column.py
	TRIPOD_TRIALS=20000 $(PYTEST) tests/deep/peers/test_merge_soak.py
	TRIPOD_TRIALS=1 $(PYTEST) -m drawn tests
	TRIPOD_TRIALS=3 $(PYTEST) tests/deep/peers/test_exchange_killed.py
	TRIPOD_TRIALS=60 $(PYTEST) tests/deep/peers/test_exchange_schedules.py
	TRIPOD_TRIALS=1000 $(PYTEST) tests/deep/projections/test_exchange.py
	TRIPOD_TRIALS=1 $(PYTEST) tests/core/recovery/test_renew.py tests/deep/trust/test_seal_mutations.py
	TRIPOD_TRIALS=60 $(PYTEST) tests/deep/verify/test_damaged_sources.py
	TRIPOD_TRIALS=99 $(PYTEST) tests/deep/verify/test_linear.py
	TRIPOD_TRIALS=200000 $(BIN)/pytest -n0 -q tests/deep/sessions/test_fuzzed_sessions.py
	PYTHONPATH=tests:. $(BIN)/python tests/judge_mutants.py

torture: $(READY)
	$(BIN)/python -m torture --minutes $(MINUTES)
