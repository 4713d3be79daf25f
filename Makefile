# Everything one does with pais. Each target installs what it needs by scripts/setup.sh.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo

.DEFAULT_GOAL := help
.PHONY: help setup demo run test bench check bless fmt doc

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

setup:
	@scripts/setup.sh

demo: setup ## Show the whole way on public data: upload, anonymize, grant, fetch
	@scripts/demo.sh

run: setup ## Run the service with its data in ./data
	@scripts/run.sh

test: setup ## Run all tests
	$(CARGO) test --locked

bench: setup ## Measure everything; the figures go to target/bench/summary.json too
	$(CARGO) bench --locked --bench whole_way --bench breadth --bench groups --bench items

fmt: ## Format the code
	$(CARGO) fmt

doc: setup ## Build the code's documentation; warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps

bless: setup ## Take the present output as the expected one: snapshots, openapi.json, docs/errors.md
	@mkdir -p openapi
	$(CARGO) run --locked --quiet -- openapi > openapi/openapi.json.new
	mv openapi/openapi.json.new openapi/openapi.json
	INSTA_UPDATE=always $(CARGO) test --locked

# Advisories are left out: their database is fetched from a place that builds must not depend on.
check: setup ## All that must hold before a merge
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) test --locked
	$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install cargo-deny --locked
	$(CARGO) deny --locked check licenses bans sources
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps
	@if [[ -n "$$(git status --porcelain)" ]]; then \
		git status --short; \
		echo "check: the working tree is not clean; commit or remove the files above" >&2; \
		exit 1; \
	fi
