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

.PHONY: help run test lint docs bench lock clean setup-bench setup-build setup-test

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: setup-build ## build, plan the ATLAS scenario (another: SCENARIO=name-or-path), and run a real rack with real data, beside its simulation
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

bench: setup-bench ## the benchmarks of every crate that has some
	@cargo bench --workspace --exclude fanin-python

lock: setup-test ## pin the Python tools again, with hashes
	@.venv/bin/python -m pip install --quiet uv
	@.venv/bin/uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
		--custom-compile-command "make lock" --output-file requirements-dev.txt requirements-dev.in

clean: ## remove what was built and measured
	rm -rf .venv out python/fanin/*.so .mypy_cache .pytest_cache .ruff_cache
	if command -v cargo >/dev/null; then cargo clean; else rm -rf target; fi

setup-bench:
	@scripts/setup.sh bench

setup-build:
	@scripts/setup.sh build

setup-test:
	@scripts/setup.sh test
