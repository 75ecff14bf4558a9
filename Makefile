# The two commands that matter, and this is all they need: a Rust toolchain, and the C compiler that it links with.
#
#   make bench   how fast is it? builds, measures Esker beside the engines that are here, writes a report
#   make test    does everything hold? formatting, lints, documentation, every test
#
# With CI=true, `make test` also insists on every peer engine; without, a missing one costs one line and nothing else.

CARGO ?= cargo
OUT := bench-out

.PHONY: help bench test
.DEFAULT_GOAL := help

# Runs a command, says how long it took, and fails if it failed: $(call step,name,command)
step = @echo "== $(1)"; start=$$(date +%s); $(2) && echo "== $(1): $$(($$(date +%s) - start)) s"

help:
	@echo "make bench   measure Esker beside other engines; about ten minutes the first time, most of it building"
	@echo "make test    formatting, lints, documentation and all tests"
	@echo "make help    this text"

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

# The cheap steps first. Lints and documentation share the checked dependencies; the tests have the profile `dev`, which
# is optimised, so that nothing heavy is compiled twice.
# The documentation is that of the libraries: the command has the name of the engine, and would overwrite its pages.
test: export ESKER_REQUIRE_PEERS ?= $(if $(filter true,$(CI)),1,0)
test: export RUSTDOCFLAGS := -D warnings
test:
	$(call step,format,$(CARGO) fmt --all --check)
ifeq ($(CI),true)
	$(call step,peers,scripts/peers --strict)
endif
	$(call step,lints,$(CARGO) clippy --workspace --all-targets -- -D warnings)
	$(call step,documentation,$(CARGO) doc --workspace --no-deps --lib)
	$(call step,build of the tests,$(CARGO) test --workspace --no-run)
	$(call step,tests,$(CARGO) test --workspace --no-fail-fast)
