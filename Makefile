PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JARS := $(VENV)/.jars

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow lint format bench bench-tpch bench-tick soak fuzz lock clean

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) $(JARS) ## Create .venv, install the locked dependencies, resolve the Delta jars

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: Python 3.11 or newer is needed, but $(PYTHON) is $$($(PYTHON) --version 2>&1)" >&2; \
	  echo "hint: install Python 3.11+ and run make PYTHON=python3.11 <target>" >&2; exit 1; }
	@scripts/make_venv.sh $(PYTHON) $(VENV)
	@echo "installing the locked dependencies into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Looked at in each set-up, because Java can be removed or appear between two of them.
$(JARS): $(STAMP) scripts/resolve_jars.py | java
	@$(BIN)/python scripts/resolve_jars.py
	@touch $@

.PHONY: java
java:
	@scripts/check_java.sh

demo: setup ## Run the demo: a small shop, four stream tables, rounds of changes
	@$(BIN)/runnel demo

test: setup lint ## Lint, then all tests that are not slow
	@scripts/run_tests.sh $(ARGS)

# What shows that nothing depends on one JVM: verbs, graphs, sources, types, recursion.
PORTABLE := $(addprefix tests/refresh/test_,verbs.py refused.py interface.py graph.py sources.py values.py recursion.py tidying.py)

# What Spark computes by itself: with stages compiled, as users have it, and not as in the other tests.
COMPILED := $(addprefix tests/refresh/test_,fuzz_on_spark.py steps_on_lake.py values.py)

test-slow: setup ## The slow tests: every step file on the lake, compiled stages, a Connect server, a local cluster, two processes
	$(BIN)/pytest --ignore tests/crash -m slow --timeout 1800 $(ARGS)
	$(BIN)/pytest tests/crash -m slow --timeout 1800 $(ARGS)
	RUNNEL_TEST_COMPILED=1 $(BIN)/pytest $(COMPILED) --timeout 1800 $(ARGS)
	RUNNEL_TEST_COMPILED=1 RUNNEL_TEST_MASTER=connect $(BIN)/pytest $(PORTABLE) --timeout 1800 $(ARGS)
	RUNNEL_TEST_MASTER='local-cluster[2,1,1024]' $(BIN)/pytest $(PORTABLE) --timeout 1800 $(ARGS)

lint: $(STAMP) ## ruff format and check, mypy strict, import-linter
	$(BIN)/ruff format --check src tests scripts bench
	$(BIN)/ruff check src tests scripts bench
	$(BIN)/mypy --strict src scripts bench
	$(BIN)/lint-imports

format: $(STAMP) ## Let ruff format and fix the code
	$(BIN)/ruff format src tests scripts bench
	$(BIN)/ruff check --fix src tests scripts bench

bench: setup ## Measure DIFFERENTIAL against FULL and the hand-written ways; fails when a promise is not kept
	$(BIN)/python -m bench $(ARGS)

bench-tpch: setup ## Measure the 22 queries of TPC-H (ARGS="--scale 1")
	$(BIN)/python -m bench.tpch $(ARGS)

bench-tick: setup ## Measure a tick of the scheduler over 1,000 tables with nothing to do; fails when it takes too long
	$(BIN)/python -m bench.tick $(ARGS)

soak: setup ## A daemon that is killed now and then, writers, checking readers: 10 minutes (ARGS="--minutes 2 --kill-every 20")
	$(BIN)/python -m bench.soak $(ARGS)

# The seed of a run is printed with its cases; SEED=<number> makes them again.
SEED ?= random
fuzz: setup ## Check many generated queries and change sequences, on DuckDB and on Spark (ARGS are passed to pytest)
	RUNNEL_FUZZ_CASES=$${RUNNEL_FUZZ_CASES:-100000} RUNNEL_FUZZ_SEED=$(SEED) \
	  $(BIN)/pytest -s tests/compile/test_fuzz_algebra.py --timeout 0 $(ARGS)
	RUNNEL_FUZZ_SPARK_CASES=$${RUNNEL_FUZZ_SPARK_CASES:-2000} RUNNEL_FUZZ_LAKE_CASES=$${RUNNEL_FUZZ_LAKE_CASES:-200} \
	  RUNNEL_FUZZ_SEED=$(SEED) $(BIN)/pytest -s tests/refresh/test_fuzz_on_spark.py --timeout 0 $(ARGS)

lock: $(STAMP) ## Rewrite requirements.lock from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --quiet \
	  --custom-compile-command "make lock" --output-file requirements.lock

clean: ## Remove the environment, caches and build results
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
