# The commands that matter, and this is all they need: a Rust toolchain, and the C compiler that it links with.
#
#   make bench         how fast is it? builds, measures Esker beside the engines that are here, writes a report
#   make bench-check   is it still as fast? measures Esker and a steady peer, compares with the figures that are kept
#   make test          does everything hold? formatting, lints, documentation, every test
#   make fuzz          coverage-guided fuzzing of the decoders and of the engine, FUZZ_SECONDS for each target
#
# With CI=true, `make test` also insists on every peer engine and on a browser; without, a missing one costs one line and nothing else.

CARGO ?= cargo
OUT := bench-out

# What bench-check measures, by which engine, and what it compares with: a baseline of its own if one is kept (bench-baseline
# writes it), otherwise the newest scoreboard that is kept, which must have the same number of entries.
CHECK_ENGINES ?= esker,leveldb
CHECK_NUM ?= 1000000
CHECK_REPEAT ?= 3
MAX_LOSS ?= 10
FUZZ_SECONDS ?= 60
BASELINE := doc/results/bench-check.jsonl
BASE ?= $(firstword $(wildcard $(BASELINE)) $(lastword $(sort $(wildcard doc/results/*-scoreboard*.jsonl))))

.PHONY: help bench bench-check bench-baseline build-time test fuzz
.DEFAULT_GOAL := help

# Runs a command, says how long it took, and fails if it failed: $(call step,name,command)
step = @echo "== $(1)"; start=$$(date +%s); $(2) && echo "== $(1): $$(($$(date +%s) - start)) s"

help:
	@echo "make bench           measure Esker beside other engines; about ten minutes the first time, most of it building"
	@echo "make bench-check     compare the speed of this tree with the kept figures; fails on a loss above $(MAX_LOSS) %"
	@echo "make bench-baseline  measure this tree and keep the figures for bench-check"
	@echo "make build-time      build the engine from nothing and say how long it took"
	@echo "make test            formatting, lints, documentation and all tests"
	@echo "make fuzz            fuzz every decoder and the engine, each for FUZZ_SECONDS (default $(FUZZ_SECONDS))"
	@echo "make help            this text"

# The peers that are C libraries are installed where that is possible; the study leaves out what is missing.
# The table is kept back while the study reports its progress, so that it comes last.
bench:
	@mkdir -p $(OUT)
	@scripts/peers || echo "Not every peer could be installed; measuring those that are here."
	$(CARGO) build --release --package esker-cli
	@status=0; \
	target/release/esker study scoreboard --quick --html $(OUT)/scoreboard.html --json $(OUT)/scoreboard.jsonl \
	    >$(OUT)/scoreboard.txt || status=$$?; \
	[ ! -f $(OUT)/scoreboard.html ] || echo "Report: $(CURDIR)/$(OUT)/scoreboard.html"; \
	cat $(OUT)/scoreboard.txt; \
	exit $$status

# The rows that lost, or whose spread is too wide to tell, are measured once more before anything fails.
CHECK := target/release/esker study scoreboard --engines $(CHECK_ENGINES) --num $(CHECK_NUM) --repeat $(CHECK_REPEAT)
COMPARE := target/release/esker study compare $(BASE) $(OUT)/check.jsonl --max-loss $(MAX_LOSS)
bench-check:
	@mkdir -p $(OUT)
	$(CARGO) build --release --package esker-cli
	@echo "Compared with $(BASE)"
	$(CHECK) --json $(OUT)/check.jsonl >$(OUT)/check.txt
	@rm -f $(OUT)/check.rows; $(COMPARE) --failing $(OUT)/check.rows; status=$$?; \
	if [ $$status -gt 1 ]; then exit $$status; fi; \
	if [ ! -s $(OUT)/check.rows ]; then exit 0; fi; \
	echo "Once more:"; cat $(OUT)/check.rows; \
	$(CHECK) --rows-from $(OUT)/check.rows --json $(OUT)/check-again.jsonl >$(OUT)/check-again.txt && \
	$(COMPARE) --again $(OUT)/check-again.jsonl

bench-baseline:
	$(CARGO) build --release --package esker-cli
	$(CHECK) --json $(BASELINE)

# In a directory of its own, so that nothing is there already and nothing else is lost.
build-time:
	@rm -rf $(OUT)/build-time
	$(call step,build of the engine from nothing,$(CARGO) build --release --package esker --target-dir $(OUT)/build-time)
	@rm -rf $(OUT)/build-time

# The cheap steps first. Lints and documentation share the checked dependencies; the tests have the profile `dev`, which
# is optimised, so that nothing heavy is compiled twice.
# The documentation is that of the libraries: the command has the name of the engine, and would overwrite its pages.
test: export ESKER_REQUIRE_PEERS ?= $(if $(filter true,$(CI)),1,0)
test: export RUSTDOCFLAGS := -D warnings
test:
	$(call step,format,$(CARGO) fmt --all --check)
ifeq ($(CI),true)
	$(call step,peers,scripts/peers --strict)
	$(call step,browser,scripts/browser --strict)
endif
	$(call step,lints,$(CARGO) clippy --workspace --all-targets -- -D warnings)
	$(call step,documentation,$(CARGO) doc --workspace --no-deps --lib)
	$(call step,build of the tests,$(CARGO) test --workspace --no-run)
	$(call step,tests,$(CARGO) test --workspace --no-fail-fast)

fuzz:
	scripts/fuzz --seconds $(FUZZ_SECONDS)
