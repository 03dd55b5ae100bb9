# make help          what there is
# make bench         measure patterns and kernels of applications, under the MPI library's own way and under each method
# make test          the tests
#
# MPI=openmpi (Debian's, default) or MPI=mpich (the PyPI wheel). Each target sets everything up by itself: scripts/setup.

MPI ?= openmpi
RANKS ?= 4
HOSTS ?= 4
ARGS ?=
BENCH_ARGS ?=
PYTEST_ARGS ?=
WORKERS ?= 8
MPIS ?=
CASES ?= 500
WHEEL_PYTHON ?= build/wheel/tools/bin/python

BIN := $(CURDIR)/build/$(MPI)/venv/bin

# Where this is set, every rank of every launch would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
export MPI
export PATH := $(BIN):$(PATH)
# Containers and small machines: root may launch, and more ranks than cores may run.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
export OMPI_MCA_rmaps_base_oversubscribe := 1

.PHONY: help bench cluster cluster-run cluster-stop docs test test-mpi test-all test-every test-mpis test-root findings lint release-check wheel build build-bench clean
.DEFAULT_GOAL := help

help: ## this list
	@echo 'Usage: make [MPI=openmpi|mpich] TARGET'
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 14
	@echo
	@echo 'Variables: MPI=$(MPI)   RANKS=$(RANKS) and BENCH_ARGS="--help" (bench)   PYTEST_ARGS="-k NAME" (tests)'
	@echo '           HOSTS=$(HOSTS), ARGS="--share gluster" (cluster)   ARGS="-n 8 PROGRAM" (cluster-run)'

bench: build-bench ## mpirun -n RANKS python -m mpiio_ext.bench BENCH_ARGS; without BENCH_ARGS the quick suite
	$(BIN)/mpirun -n $(RANKS) $(BIN)/python -m mpiio_ext.bench $(or $(BENCH_ARGS),--suite quick)

cluster: ## HOSTS hosts on this machine, made of namespaces, until cluster-stop; see docs/project/clusters.md
	scripts/cluster/run start --hosts $(HOSTS) $(ARGS)

cluster-run: build ## an MPI program on these hosts, without the library: ARGS="-n 8 PROGRAM", ARGS="--help"
	scripts/cluster/run run --mpi $(MPI) $(ARGS)

cluster-stop: ## end the hosts and all that runs on them
	scripts/cluster/run stop

test: build ## the quick tests, by WORKERS workers; launches of MPI programs are mostly waiting
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --max-worker-restart 0 $(PYTEST_ARGS)

test-mpi: build ## of these, what depends on the MPI and one test of each tool: for the second family, where the first has run `test`
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --max-worker-restart 0 -m both $(PYTEST_ARGS)

test-all: ## every test, under both MPIs
	$(MAKE) MPI=openmpi test-every
	$(MAKE) MPI=mpich test-every

test-every: build ## every test, under one MPI
	$(BIN)/python -m pytest --run-slow $(PYTEST_ARGS)

docs: $(if $(wildcard $(BIN)/mpiio-ext),build-bench) ## these documents as a site: build/docs/html/index.html, which needs no server
	scripts/docs $(MPI)

lint: build ## ruff, clang-format, mypy --strict, structure of the sources, import-linter
	$(BIN)/python -m ruff check .
	scripts/format --check
	scripts/typecheck
	$(BIN)/python scripts/check_sources.py
	scripts/importcheck

release-check: build ## what has to be right before a release: CONTRIBUTING.md; in build/release, uploads nothing
	$(BIN)/python -m venv build/release/venv
	build/release/venv/bin/python -m pip install -q --disable-pip-version-check --upgrade pip
	build/release/venv/bin/python -m pip install -q --disable-pip-version-check --group release
	MPICC=$(or $(shell command -v mpicc.$(MPI)),$(BIN)/mpicc) build/release/venv/bin/python scripts/release_check.py $(ARGS)

build: ## set up build/MPI and compile
	@scripts/setup $(MPI)

build-bench:
	@scripts/setup $(MPI) bench

wheel: ## one wheel for every MPI, and the sdist, in build/wheel/dist; needs PyPI, no MPI; WHEEL_MACHINE=aarch64
	scripts/wheel

test-mpis: wheel ## that wheel in fresh environments under every MPI and Python that is to be had; MPIS="NAME...", CASES=500
	$(WHEEL_PYTHON) scripts/test_mpis.py $(MPIS) --cases $(CASES)

test-root: wheel ## that wheel in bare Debian roots with one MPI each: install and the README's example, timed; needs root
	$(WHEEL_PYTHON) scripts/empty_root.py $(MPIS)

findings: ## what surprised in other software, tried again with the versions that each script names; needs PyPI, no build
	@changed=0; for script in findings/*.sh; do \
	    echo "== $$script"; timeout -k 10 1800 bash $$script; status=$$?; \
	    case $$status in 0) ;; 1) echo "$$script: changed"; changed=1;; *) echo "$$script: not tried (status $$status)"; changed=1;; esac; \
	done; exit $$changed

clean: ## remove build/ (wheels built from source stay in the cache)
	rm -rf build
