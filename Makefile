# Everything here can be run again at any time: what is already done is not done twice.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory

SCENARIO ?= thesis-a-1000hz
# rustup puts cargo here; a shell opened before rustup ran does not have it on its path yet.
export PATH := $(PATH):$(HOME)/.cargo/bin
TARGET := $(or $(CARGO_TARGET_DIR),target)
PYTHON := .venv/bin/python
package = cargo build --release --quiet -p fanin-cli --features bpf \
	&& python3 scripts/package.py $(1) $(TARGET)/release/fanin --out $(TARGET)/package

.PHONY: help run test lint docs figures bench deb image wheels lock clean setup-bench setup-build setup-package setup-test

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: setup-build ## build, plan the ATLAS scenario (another: SCENARIO=name-or-path), and compare a real rack, with real data, with its simulation
	@cargo build --release --quiet -p fanin-cli --features bpf
	@mkdir -p out
	@$(TARGET)/release/fanin plan $(SCENARIO) --json out/plan.json
	@echo; echo "Now an ATLAS-like rack, scaled to this machine, with real data of a neutrino telescope, in about two minutes:"; echo
	@scripts/rack.sh $(TARGET)/release/fanin out/rack
	@echo "More: $(TARGET)/release/fanin --help"

test: setup-test ## every check and test; the last line says how many passed
	@$(PYTHON) scripts/test.py

lint: setup-test ## formats, lints and types only
	@$(PYTHON) scripts/test.py --only format clippy ruff-format ruff mypy

docs: setup-test ## the generated pages, the documentation as a site, and the API pages
	@$(PYTHON) scripts/docs.py
	@$(PYTHON) scripts/website.py
	@cargo doc --workspace --no-deps --quiet
	@echo "API pages: $(TARGET)/doc/fanin_units/index.html"

figures: setup-test ## draw the papers' figures into out/figures (some: ONLY=thesis-4.3; longer: FULL=1; and docs/gallery: GALLERY=1)
	@VIRTUAL_ENV=$(CURDIR)/.venv $(PYTHON) -m maturin develop --release --locked --quiet
	@$(PYTHON) -m fanin.figures $(ONLY) --out out/figures $(if $(FULL),--full) $(if $(GALLERY),--gallery)

bench: setup-bench ## the benchmarks of every crate that has some
	@cargo bench --workspace --exclude fanin-python

deb: setup-package ## the Debian package of a release build, under target/package
	@$(call package,deb)

image: setup-package ## the container image of a release build, under target/package
	@$(call package,image)

wheels: setup-test ## wheels of the Python package for Linux and macOS, x86-64 and ARM, in target/wheels
	@scripts/wheels.sh

lock: setup-test ## pin the Python tools again, with hashes
	@.venv/bin/python -m pip install --quiet uv
	@for list in dev wheels; do \
		.venv/bin/uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
			--custom-compile-command "make lock" --output-file requirements-$$list.txt requirements-$$list.in; \
	done

clean: ## remove what was built and measured
	rm -rf .venv out python/fanin/*.so .mypy_cache .pytest_cache .ruff_cache
	if command -v cargo >/dev/null; then cargo clean; else rm -rf target; fi

setup-bench:
	@scripts/setup.sh bench

setup-build:
	@scripts/setup.sh build

setup-package:
	@scripts/setup.sh package

setup-test:
	@scripts/setup.sh test
