# The one place that says how this repository is built and checked; people and CI use the same targets.
#
#   make demo           build, install, and run a pipeline on Spark: what is in Python's library, and what needs what
#   make test           everything that must pass
#   make lint           formatting, clippy, types, docstrings, the stub against the extension, what lies on what
#   make docs           the book and the reference, as a site in site/
#   make bench          ours against the peers, a table of ratios in target/bench; bench-spark: beside DataFrames and
#                       GraphFrames; bench-collections: beside differential dataflow and DBSP
#   make build          the wheel for this machine, in target/wheels
#   make clean
#
# And what takes longer, or needs more than a compiler and Python:
#
#   make check-deep     long property tests, models, Miri, ThreadSanitizer, fuzzing; says what it skips
#   make check-shuttle  of that, the models of what threads share
#   make test-spark     Spark with executors in processes of their own, which are killed; the examples in docstrings
#   make test-connectors  the connectors against real servers: Kafka's broker and PostgreSQL, installed where that can be
#   make soak           memory of what runs for long, and a cluster that runs for MINUTES=10 while things go wrong
#   make coverage       which lines the tests run; says what it skips
#   make audit          known defects and licences of what is used; says what it skips
#   make wheel-dist     the wheel as it is published, in target/dist
#   make release-check  wheel and source as they are published, and whether they may be
#
# PYTHON=python3.12 takes another Python than `python3`; PROFILE=dist what is published in place of a quick build; FEATURES=cloud adds
# checkpoints in buckets.
#
# Stamps under .venv say what has been installed, so an unchanged tree is not built again.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_VERSION := 26.3
RUST_VERSION := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
PYTHON_VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo missing)
CARGO ?= cargo
# One test has its own limit (pyproject.toml); this one is for what hangs outside of a test. The longest command takes
# a quarter of it on two cores.
LIMIT = $(BIN)/python tools/timelimit.py 3600
# Tests of which a few that fail are run again, and named: a rare race is no fault of the change at hand.
TESTS = $(LIMIT) $(BIN)/python tools/once_more.py
# Several workers share the tests (tests/support/sharing.py). The slowest are listed.
PYTEST = $(TESTS) pytest -n auto --durations 25 --durations-min 5

# Programs that this package was asked for with; run where they are at hand.
ACCEPTANCE := ../shared/acceptance

# A peer whose dependencies are not ours.
PATHWAY = test -x target/pathway/bin/pathway || ($(PYTHON) -m venv target/pathway && \
	target/pathway/bin/python -m pip install --quiet --only-binary :all: pathway==0.33.0 pandas)

# What is run a second time with two processes where a test asks for several workers, and some of it with three.
ON_PROCESSES := $(addsuffix .py,$(addprefix tests/,$(addprefix arrow/test_,arrow arrow_custom arrow_keyed arrow_mistakes) \
	$(addprefix engine/test_,capabilities inputs notificators probes streams worker) \
	events/test_not_a_number events/test_own_times loops/test_scopes operators/test_library operators/test_operators))

# The extension is type-checked by clippy against the same interpreter that runs it.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

venv_stamp := $(VENV)/.made-with-$(PYTHON_VERSION)
dev_stamp := $(VENV)/.dependencies
build_stamp := $(VENV)/.dependencies-build
demo_stamp := $(VENV)/.dependencies-demo
docs_stamp := $(VENV)/.dependencies-docs
# `local` is what a person waits for, `dist` what is published (Cargo.toml says how they differ).
PROFILE ?= local
# FEATURES=cloud adds a client of S3, GCS and Azure, for checkpoints in buckets.
FEATURES ?=
wheel_stamp := $(VENV)/.wheel-$(PROFILE)$(FEATURES:%=-%)
wheels := target/wheels
dist := target/dist
MINUTES ?= 10
SOAK := $(firstword $(wildcard tools/soak.py tests/soak.py))
# Holds the JAVA_HOME that Spark runs with: the system's Java, or one from PyPI where that is missing or old.
java_stamp := $(VENV)/.java
JAVA = JAVA_HOME="$$(cat $(java_stamp))"

sources := $(shell find crates python \( -name __pycache__ -o -name tests -o -name benches \) -prune -o \
	\( -name '*.rs' -o -name '*.toml' -o -name '*.py' -o -name '*.pyi' -o -name py.typed -o -type d \) -print)

.PHONY: demo test test-rust test-python lint lint-rust lint-python docs bench bench-spark bench-collections build clean venv prerequisites lint-prerequisites \
	check-deep check-shuttle test-spark test-connectors soak coverage audit wheel-dist release-check
.DELETE_ON_ERROR:

# What the pipeline needs is fetched while the compiler works.
demo: $(build_stamp)
	$(MAKE) --no-print-directory -j2 $(wheel_stamp) $(demo_stamp)
	@$(MAKE) --no-print-directory $(java_stamp)
	$(JAVA) $(BIN)/python examples/spark_pipeline.py --out target/demo $(ARGS)

test: test-rust test-python

# pointstamp-py is tested from Python (outside of an interpreter it does not link); the benches are only run. Arrangements
# are tested once more with all batches stored.
test-rust: $(dev_stamp)
	CARGO=$(CARGO) $(TESTS) cargo --workspace --exclude pointstamp-py --exclude pointstamp-bench --locked
	CARGO=$(CARGO) POINTSTAMP_STORED=1 $(TESTS) cargo -p pointstamp-arrange --tests --locked

test-python: $(dev_stamp) $(wheel_stamp) $(java_stamp)
	$(JAVA) $(PYTEST) tests
	$(PYTEST) --doctest-modules --ignore-glob='*/pointstamp/spark/*' --pyargs pointstamp
	$(if $(wildcard $(ACCEPTANCE)),$(PYTEST) -c pyproject.toml --rootdir=. $(ACCEPTANCE))
	PYTHONPATH=tests/support $(PYTEST) -c pyproject.toml --rootdir=. \
		-p on_processes $(ON_PROCESSES) $(wildcard $(ACCEPTANCE))
	PYTHONPATH=tests/support $(PYTEST) -c pyproject.toml --rootdir=. \
		-p on_processes --processes 3 tests/arrow/test_arrow_keyed.py tests/operators/test_library.py $(wildcard $(ACCEPTANCE))

# `make test` runs a part of these tests. ARGS="-k epochs" for some.
test-spark: $(dev_stamp) $(wheel_stamp) $(java_stamp)
	POINTSTAMP_EFFORT=2 $(JAVA) $(LIMIT) $(BIN)/python -m pytest -v tests/spark tests/package/test_benches.py $(ARGS)

# The broker's jars stay in target/kafka; KAFKA_JARS names them, so that `make test` does not start a broker.
test-connectors: export KAFKA_JARS := $(CURDIR)/target/kafka
test-connectors: $(dev_stamp) $(wheel_stamp) $(java_stamp)
	$(BIN)/python -m pip install --quiet --group connectors
	$(JAVA) sh tools/connectors/servers.sh $(KAFKA_JARS)
	$(JAVA) $(LIMIT) $(BIN)/python -m pytest -v tests/connectors

lint: lint-rust lint-python

lint-rust: $(dev_stamp) | lint-prerequisites
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) check --all-targets --locked --target-dir target --manifest-path benches/collections/Cargo.toml
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --exclude pointstamp-py --no-deps --document-private-items --locked
	$(BIN)/python tools/check_layers.py

lint-python: $(dev_stamp) $(wheel_stamp)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_docstrings.py
	$(BIN)/mypy
	$(BIN)/basedpyright --level error --pythonpath $(BIN)/python
	$(BIN)/python -m mypy.stubtest pointstamp --mypy-config-file pyproject.toml --allowlist tools/stubtest-allowlist.txt

# Warnings are errors: a link that leads nowhere, a name in the reference that is gone.
docs: $(wheel_stamp) $(docs_stamp)
	rm -rf site
	$(LIMIT) $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --fresh-env \
		--doctree-dir target/doctrees docs site

# PROFILE=dist measures what is published. The table and the plots are in target/bench. ARGS="--quick" for a little of the
# work; PROFILE=dist ARGS="--docs scale cost" for these benches, and their figures in the book (benches/figures.json). Bytewax and
# Pathway (in an environment of its own) take part where they have a wheel for this Python and platform. ARGS=--check, before
# a release, runs a short form of the benches up to three times, and fails where the ratio of a row is more than 1.25 times the one
# that is kept (benches/short.json; make bench ARGS="--quick --keep operators" keeps anew).
bench: $(dev_stamp) $(wheel_stamp)
	-$(BIN)/python -m pip install --quiet --only-binary :all: bytewax==0.21.1
	-$(PATHWAY)
	$(BIN)/python benches/python/report.py --profile $(PROFILE) --wheel $(wheels)/*.whl $(ARGS)

# Workspaces of their own, so that peers are compiled for this alone; DBSP wants a newer Rust than the rest, and is left
# out where it does not build. ARGS="--scale 0.01" takes a hundredth of the sizes, "--galen ARCHIVE" the ontology, too,
# "--workers 1 2" what two workers gain; tables are written to target/bench. Then closures beside columns, Pathway (in an
# environment of its own) and a dict of sets, at the sizes that PEERS="--scale 0.02" says; then the kernels alone and
# dataflows built in Rust, without Python, of KERNEL="arrange 100000" or KERNEL="dataflows 1000000" pairs.
bench-collections: $(dev_stamp) $(wheel_stamp)
	$(CARGO) build --release --locked --manifest-path benches/collections/Cargo.toml
	$(CARGO) build --release --locked --manifest-path benches/dbsp/Cargo.toml || \
		echo "DBSP is left out: benches/dbsp does not build here"
	$(BIN)/python benches/python/bench_collections.py --peer benches/collections/target/release/peer \
		--dbsp benches/dbsp/target/release/pointstamp-bench-dbsp $(ARGS)
	-$(PATHWAY)
	$(BIN)/python benches/python/collection_peers.py --pathway target/pathway/bin/python $(PEERS)
	$(CARGO) run --release --locked --manifest-path benches/collections/Cargo.toml -- $(KERNEL)

# ARGS="--graphframes JAR" has GraphFrames beside ours, "--large" the large graphs, for an hour and more; ARGS=pagerank
# is that part alone. PROFILE=dist DOCS=--docs puts the figures into the book. GRAPHFRAMES=SOURCE, a folder with the source of
# GraphFrames, makes its jar first, in target/bench, and takes it.
bench-spark: $(dev_stamp) $(wheel_stamp) $(java_stamp)
	mkdir -p target/bench
	$(if $(GRAPHFRAMES),$(JAVA) $(BIN)/python benches/python/build_graphframes.py $(GRAPHFRAMES) target/bench/graphframes.jar)
	$(JAVA) $(BIN)/python benches/python/report.py --profile $(PROFILE) spark $(DOCS) --limit 7200 \
		--more="$(ARGS) $(if $(GRAPHFRAMES),--graphframes target/bench/graphframes.jar)"

build: $(wheel_stamp)

# ARGS="--effort 100 properties" for one part, and for how long.
check-deep: $(dev_stamp) $(wheel_stamp)
	$(BIN)/python tools/check_deep.py $(ARGS)

check-shuttle: $(dev_stamp)
	$(BIN)/python tools/check_deep.py $(ARGS) shuttle

soak: $(dev_stamp) $(wheel_stamp) $(java_stamp)
	$(BIN)/python tools/flat_memory.py
	POINTSTAMP_EFFORT=10 $(JAVA) $(BIN)/python -m pytest -q --timeout=7200 -o faulthandler_timeout=7500 \
		tests/failures/test_flat.py tests/spark/test_flat_resident.py
	$(if $(SOAK),$(BIN)/python $(SOAK) --minutes $(MINUTES) $(ARGS),@echo "there is no soak program"; exit 1)

coverage: $(dev_stamp) $(wheel_stamp) $(java_stamp)
	$(BIN)/python -m pip install --quiet --group coverage
	$(JAVA) $(BIN)/python tools/coverage_figures.py $(ARGS)

audit: $(dev_stamp)
	$(BIN)/python -m pip install --quiet --group audit
	$(BIN)/python tools/audit.py

wheel-dist: $(build_stamp)
	rm -rf $(dist)
	$(BIN)/maturin build --profile dist --compression-level 9 --out $(dist)

# TAG=v1.2.3 for a release of that name; without one, what comes after the last.
release-check: wheel-dist
	$(BIN)/maturin sdist --out $(dist)
	$(BIN)/python tools/release_check.py $(if $(TAG),--tag $(TAG)) $(dist)

clean:
	$(CARGO) clean
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis dist

prerequisites:
	@sh tools/prerequisites.sh "$(PYTHON)" "$(RUST_VERSION)"

lint-prerequisites:
	@sh tools/prerequisites.sh "$(PYTHON)" "$(RUST_VERSION)" rustfmt clippy

venv: $(dev_stamp)

$(venv_stamp): | prerequisites
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet 'pip==$(PIP_VERSION)'
	@touch $@

$(build_stamp): pyproject.toml $(venv_stamp)
	$(BIN)/python -m pip install --quiet --group build
	@touch $@

$(demo_stamp): pyproject.toml $(venv_stamp)
	$(BIN)/python -m pip install --quiet --group demo
	@touch $@

$(dev_stamp): pyproject.toml $(venv_stamp)
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@ $(build_stamp) $(demo_stamp)

$(java_stamp): tools/java_home.py pyproject.toml | $(venv_stamp)
	@$(BIN)/python tools/java_home.py $(VENV)/java >$@ 2>/dev/null || { \
		$(BIN)/python -m pip install --quiet --group java && $(BIN)/python tools/java_home.py $(VENV)/java >$@; }

$(docs_stamp): pyproject.toml $(venv_stamp)
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

$(wheel_stamp): $(build_stamp) $(sources) Cargo.toml Cargo.lock pyproject.toml README.md LICENSE LICENSE-MIT LICENSE-APACHE
	rm -rf $(wheels) $(VENV)/.wheel-*
	$(BIN)/maturin build --profile $(PROFILE) $(FEATURES:%=--features %) --compression-level 9 --out $(wheels)
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps $(wheels)/*.whl
	@touch $@
