# The entry to everything that is done with this project; `make` lists the targets. A target
# installs what it needs: system packages by scripts/setup.sh, Cargo tools by scripts/tools.sh.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo

# rustup installs the toolchain of rust-toolchain.toml if it can. If it cannot (no network), the
# default toolchain is used; `rust-version` in Cargo.toml refuses one that is too old.
ifndef RUSTUP_TOOLCHAIN
ifneq ($(shell $(CARGO) --version >/dev/null 2>&1 && echo works),works)
FALLBACK := $(shell cd / && rustup show active-toolchain 2>/dev/null | cut -d' ' -f1)
ifneq ($(FALLBACK),)
$(shell echo "make: the toolchain of rust-toolchain.toml is not available; using $(FALLBACK)" >&2)
export RUSTUP_TOOLCHAIN := $(FALLBACK)
endif
endif
endif

# All that must hold before a merge, in this order: cheap checks first.
CHECKS := fmt-check deny unused clippy doc msrv test test-openapi test-console clean-tree

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help setup demo run test test-rust fuzz faults test-python test-console test-scale bench experiments check list-checks bless release \
	fmt fmt-check clippy doc deny test-openapi unused msrv clean-tree advisories sbom package soak load peaks lines

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup:
	@scripts/setup.sh

demo: setup ## Run the service on public data: upload, anonymize, grant, download
	@scripts/demo.sh

run: setup ## Run the service with its data in ./data
	@scripts/run.sh

# The Rust tests build the program.
test: test-rust ## Run all tests
	@PAIS_BIN="$${CARGO_TARGET_DIR:-target}/debug/pais" scripts/test-python.sh

# Most of the time goes into tests over HTTP, which wait for half of theirs: hence one thread more.
test-rust: setup
	@scripts/browser.sh
	RUST_TEST_THREADS=$$(($$(nproc) + 1)) $(CARGO) test --workspace --locked

# Each test run has a short round of it, 2 seconds for each parser.
fuzz: setup ## Change files and documents at random, a minute for each parser; PAIS_FUZZ_SEED repeats a run
	PAIS_FUZZ_SECONDS=$${PAIS_FUZZ_SECONDS:-60} $(CARGO) test --locked --test fuzz

# Each test run has a short round of it.
faults: setup ## Kill, cut, slow, fill and stop things at random, 200 rounds; PAIS_FAULT_SEED repeats one
	PAIS_FAULT_ROUNDS=$${PAIS_FAULT_ROUNDS:-200} PAIS_FAULT_JOBS=$${PAIS_FAULT_JOBS:-1000} \
		$(CARGO) test --locked --test http faults:: -- --nocapture --test-threads=1

test-python: setup ## Run the tests of the Python client
	@scripts/test-python.sh

# The program is that of the Rust tests, which have just built it.
test-console: setup ## Check the console: types, units, the committed files, and each person's way in a browser
	@scripts/test-console.sh

test-openapi: setup ## Send requests that the OpenAPI document permits and forbids, with every role
	@scripts/test-openapi.sh

# The first build compiles the engine, a hundred crates: some 15 minutes of processor time.
test-scale: setup ## Build with the feature `scale`, check it and run its tests; not part of `make test`
	$(CARGO) clippy --locked -p pais-scale --features datafusion --all-targets -- -D warnings
	$(CARGO) clippy --locked --features scale --bins --test cli --test http -- -D warnings
	$(CARGO) test --locked -p pais-scale --features datafusion
	$(CARGO) test --locked --features scale --test cli --test http -- scale:: executors::

bench: setup ## Run all benchmarks; results are also written to target/bench/summary.json
	$(CARGO) bench --locked --bench end_to_end --bench load --bench groups --bench items
	$(CARGO) bench --locked -p pais-io --bench drafts

experiments: setup ## Repeat the experiments of the three papers; writes docs/experiments
	$(CARGO) run --release --locked -p pais-experiments

check: $(CHECKS) ## Run everything that must pass before a merge

list-checks:
	@echo $(CHECKS)

fmt: ## Format the code
	$(CARGO) fmt --all

fmt-check:
	$(CARGO) fmt --all --check

clippy: setup
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

doc: setup ## Build the documentation of the code; warnings are errors
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

msrv: setup ## Build with the minimum supported Rust version
	@scripts/msrv.sh

# Advisories have a target of their own: their database is a Git repository, which is not reachable
# from every build machine, and a new advisory must not break the build of an old commit.
deny: setup
	@scripts/tools.sh cargo-deny
	$(CARGO) deny --workspace --locked check licenses bans sources

advisories: setup ## Check the dependencies for known vulnerabilities (needs github.com)
	@scripts/tools.sh cargo-deny
	$(CARGO) deny --workspace --locked check advisories

sbom: setup ## Write the program's bill of materials (CycloneDX JSON) to target/pais.cdx.json
	@scripts/tools.sh cargo-cyclonedx
	@scripts/sbom.sh

package: setup ## Make a Debian package and an archive of the release build in target/package
	@scripts/tools.sh cargo-deb
	@scripts/package.sh

soak: setup ## Random mixed load for 10 minutes on the release build, while its memory is watched
	@scripts/measure.sh soak

load: setup ## 200 clients on the release build while it anonymizes 1,000,000 rows twice; latencies against targets
	@scripts/measure.sh load

peaks: setup ## Measure the peak memory of each kind of work on the release build
	@scripts/measure.sh peaks

lines: ## Count lines of Rust by crate and module, import circles, and words of documentation
	@python3 scripts/lines.py

unused: setup
	@scripts/tools.sh cargo-machete
	$(CARGO) machete

# What was checked is what is committed. Not every build is made from a Git checkout.
clean-tree:
	@if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then \
		echo "clean-tree: not a Git checkout; nothing to check"; \
	elif [[ -n "$$(git status --porcelain --untracked-files=no)" ]]; then \
		git status --short --untracked-files=no; \
		echo "clean-tree: commit or revert the changes above" >&2; \
		exit 1; \
	fi

bless: setup ## Accept the present output as expected: snapshots, openapi.json, docs/errors.md
	$(CARGO) run --locked --quiet --bin pais -- openapi > openapi/openapi.json.new
	mv openapi/openapi.json.new openapi/openapi.json
	INSTA_UPDATE=always $(CARGO) test --workspace --locked

release: setup ## Set the version, date the changelog, commit and tag: make release VERSION=1.2.3
	@scripts/release.sh $(VERSION)
