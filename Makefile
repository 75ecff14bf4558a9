# The commands that matter, and this is all they need: a Rust toolchain, and the C compiler that it links with.
#
#   make bench         how fast is it? builds, measures Esker beside the engines that are here, writes a report
#   make bench-check   is it still as fast? measures Esker and a steady peer, compares with the figures that are kept
#   make test          does everything hold? formatting, lints, documentation, every test
#   make torture       the long tier of the checks in slices: TORTURE_ROUNDS of each campaign; adds the totals up
#   make under-load  the whole suite, again and again, beside the long tier in eight threads
#   make planted-faults   plants one small fault at a time in a copy, and says which test catches it; hours
#   make install, make uninstall   the libraries of the C interfaces (doc/c.md), PREFIX=/usr/local DESTDIR=
#   make python        the Python package: its tests, in an environment of its own, and plyvel's
#   make node          the Node package: the suite of abstract-level, and its own tests
#   make server        esker serve, by clients of others
#   make static        esker serve as one file without shared libraries, checked (minutes)
#   make container     an image of that file, built and run with buildah
#   make clusters      histories of simulated clusters under faults: 500 seeds
#   make book          the book, with all links checked
#   make first-steps   what the book's first pages say, done to the letter; CI does it with what it keeps compiled
#   make go            the Go package: its own tests, and go-ethereum's suite for databases
#   make fuzz          coverage-guided fuzzing of the decoders and of the engine, FUZZ_SECONDS for each target
#   make without-assertions    the orders of keys without debug assertions, as programs have them, and a build without zstd
#   make without-c-compiler    that nothing the engine is built upon needs one
#   make interleavings, make miri, make tsan, make deny    what threads do, in other ways than by running it; what it is built upon
#
# With CI=true, `make test` also insists on every peer engine, on a browser and on Node; without, a missing one costs one line and nothing else.

CARGO ?= cargo
OUT := bench-out
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Programs that CI installs, which other clones find too; remove the directory for newer ones.
export ESKER_TOOLS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/esker/tools
# The command measures and backs up only where that was asked for: what that needs is most of what would be compiled.
BENCH := --features esker-cli/bench,esker-cli/backup,esker-cli/serve

# What bench measures, and what installs the other engines.
BENCH_SIZE ?= --quick
PEERS := scripts/peers

# What bench-check measures, by which engine, and what it compares with: a baseline of its own if one is kept (bench-baseline
# writes it), otherwise the newest scoreboard that is kept, which must have the same number of entries.
CHECK_ENGINES ?= esker,leveldb
CHECK_NUM ?= 1000000
CHECK_REPEAT ?= 3
MAX_LOSS ?= 10
FUZZ_SECONDS ?= 60
LOADED_RUNS ?= 20
TORTURE_ROUNDS ?= 1
TORTURE_SECONDS ?= 120
BASELINE := doc/results/scoreboard-bench-check.jsonl
BASE ?= $(firstword $(wildcard $(BASELINE)) $(lastword $(sort $(wildcard doc/results/*-scoreboard*.jsonl))))

.PHONY: suite beside without-assertions install uninstall help bench bench-check bench-baseline build-time test torture under-load planted-faults python node go server redis-suite cloud package static container clusters book first-steps fuzz interleavings miri tsan deny last-command last-first-steps last-interleavings last-dependencies last-oldest-rust last-public-interfaces last-packages last-without-assertions last-fuzz-targets last-miri last-tsan without-c-compiler
.DEFAULT_GOAL := help

# Runs a command, says how long it took, and fails if it failed: $(call step,name,command)
step = @echo "== $(1)"; start=$$(date +%s); $(2) && echo "== $(1): $$(($$(date +%s) - start)) s"

help:
	@echo "make bench           measure Esker beside other engines; about ten minutes the first time, most of it building"
	@echo "make bench-check     compare the speed of this tree with the kept figures; fails on a loss above $(MAX_LOSS) %"
	@echo "make bench-baseline  measure this tree and keep the figures for bench-check"
	@echo "make build-time      build the engine from nothing and say how long it took"
	@echo "make test            formatting, lints, documentation and all tests"
	@echo "make torture         the long tier of the checks in slices, with totals (TORTURE_ROUNDS=$(TORTURE_ROUNDS) TORTURE_SECONDS=$(TORTURE_SECONDS))"
	@echo "make under-load      the whole suite LOADED_RUNS=$(LOADED_RUNS) times beside eight busy threads (hours)"
	@echo "make planted-faults  plant one small fault at a time in a copy, and say which test catches it (hours)"
	@echo "make node            build the Node package and run its tests; needs node and npm"
	@echo "make server          run esker serve under redis-py, ioredis, go-redis and the tools of Redis"
	@echo "make redis-suite     run the test suite of Redis on esker serve, with the list of what fails; needs tclsh"
	@echo "make cloud           test backups with an S3 server over HTTP; needs go"
	@echo "make package         package the crates that are to be published, and check what is in them"
	@echo "make static          build esker serve as one static file, and check it (minutes)"
	@echo "make container       build and test an image of it; needs buildah"
	@echo "make book            build the book, doc/book, and check its links; needs mdbook"
	@echo "make first-steps     follow its pages that install something in empty directories; minutes"
	@echo "make go              build libesker and run the tests of the Go package; needs go, cc and pkg-config"
	@echo "make fuzz            fuzz every decoder and the engine, each for FUZZ_SECONDS (default $(FUZZ_SECONDS))"
	@echo "make interleavings   what threads do, in every order; says how many schedules that were"
	@echo "make without-assertions   the orders of keys without debug assertions; compiles the engine once more"
	@echo "make miri            the tests of the files with unsafe code, interpreted; needs a nightly toolchain"
	@echo "make tsan            tests of threads under ThreadSanitizer; needs a nightly toolchain"
	@echo "make deny            licences, sources and known faults of the dependencies; needs cargo-deny"
	@echo "make install         libesker, libesker_leveldb and esker.h, to PREFIX=/usr/local, below DESTDIR="
	@echo "make uninstall       removes them from there"
	@echo "make help            this text"

# The peers that are C libraries are installed where that is possible; the study leaves out what is missing.
# The table is kept back while the study reports its progress, so that it comes last.
bench:
	@mkdir -p $(OUT)
	@$(PEERS) || echo "Not every peer could be installed; measuring those that are here."
	$(CARGO) build --release --package esker-cli --features bench
	@status=0; \
	$(TARGET)/release/esker study scoreboard $(BENCH_SIZE) --html $(OUT)/scoreboard.html --json $(OUT)/scoreboard.jsonl \
	    >$(OUT)/scoreboard.txt || status=$$?; \
	[ ! -f $(OUT)/scoreboard.html ] || echo "Report: $(abspath $(OUT))/scoreboard.html"; \
	cat $(OUT)/scoreboard.txt; \
	exit $$status

# The rows that lost, or whose spread is too wide to tell, are measured once more before anything fails.
CHECK := $(TARGET)/release/esker study scoreboard --engines $(CHECK_ENGINES) --num $(CHECK_NUM) --repeat $(CHECK_REPEAT)
COMPARE := $(TARGET)/release/esker study compare $(BASE) $(OUT)/check.jsonl --max-loss $(MAX_LOSS)
bench-check:
	@mkdir -p $(OUT)
	$(CARGO) build --release --package esker-cli --features bench
	@echo "Compared with $(BASE)"
	$(CHECK) --json $(OUT)/check.jsonl >$(OUT)/check.txt
	@rm -f $(OUT)/check.rows; $(COMPARE) --failing $(OUT)/check.rows; status=$$?; \
	if [ $$status -gt 1 ]; then exit $$status; fi; \
	if [ ! -s $(OUT)/check.rows ]; then exit 0; fi; \
	echo "Once more:"; cat $(OUT)/check.rows; \
	$(CHECK) --rows-from $(OUT)/check.rows --json $(OUT)/check-again.jsonl >$(OUT)/check-again.txt && \
	$(COMPARE) --again $(OUT)/check-again.jsonl

bench-baseline:
	$(CARGO) build --release --package esker-cli --features bench
	$(CHECK) --json $(BASELINE)

PREFIX ?= /usr/local
install uninstall: export PREFIX := $(PREFIX)
install:
	$(CARGO) build --release --package esker-c --package esker-leveldb
	@scripts/install-libraries $(TARGET)/release
uninstall:
	@scripts/install-libraries --uninstall

# In a directory of its own, so that nothing is there already and nothing else is lost.
build-time:
	@rm -rf $(OUT)/build-time
	$(call step,build of the engine from nothing,$(CARGO) build --release --package esker --target-dir $(OUT)/build-time)
	@rm -rf $(OUT)/build-time

# The cheap steps first. Lints and documentation share the checked dependencies; the tests have the profile `dev`, which
# is optimised, so that nothing heavy is compiled twice. Examples are looked at by the lints, and those of the engine are
# modules of a test too: they are not linked as programs.
# The documentation is that of the libraries: the command has the name of the engine, and would overwrite its pages.
test: export ESKER_REQUIRE_PEERS ?= $(if $(filter true,$(CI)),1,0)
test: export RUSTDOCFLAGS := -D warnings
test: export CARGO := $(CARGO)
test:
	$(call step,format,$(CARGO) fmt --all --check)
	$(call step,planted faults,scripts/planted-faults --list && scripts/planted-faults --faults scripts/planted-faults-clusters.toml --list)
ifeq ($(CI),true)
	$(call step,peers,scripts/peers --strict)
	$(call step,tools of the tests,scripts/test-tools --strict)
	$(call step,browser,scripts/browser --strict)
endif
	$(call step,lints,$(CARGO) clippy --workspace --all-targets $(BENCH) -- -D warnings)
	$(call step,documentation,$(CARGO) doc --workspace --no-deps --lib)
	$(call step,build of the tests,$(CARGO) test --workspace $(BENCH) --tests --no-run)
ifeq ($(CI),true)
	@mkdir -p $(OUT) && rm -f $(OUT)/beside.txt
	@status=0; $(MAKE) --no-print-directory --keep-going --jobs 2 suite beside || status=$$?; \
	cat $(OUT)/beside.txt; exit $$status
else
	@$(MAKE) --no-print-directory suite
endif
	$(call step,the server and clients of others,scripts/server-tests $(if $(filter true,$(CI)),--strict) --binary $(TARGET)/debug/esker)
	@$(MAKE) --no-print-directory --keep-going --jobs 2 --output-sync=target $(LAST)

suite:
	$(call step,tests,{ $(CARGO) test --workspace $(BENCH) --tests --no-fail-fast; tests=$$?; \
	    $(CARGO) test --workspace $(BENCH) --doc --no-fail-fast && [ $$tests -eq 0 ]; })

# What the tests leave of the processors, where they wait for one another, for disks and for time, goes to steps that build in
# directories of their own and wait for nothing. They give way: campaigns that end by the clock do as much as they would alone.
BESIDE := last-interleavings last-oldest-rust last-public-interfaces last-fuzz-targets last-miri last-tsan
beside:
	@nice -n 19 $(MAKE) --no-print-directory --keep-going --output-sync=target $(BESIDE) >$(OUT)/beside.txt 2>&1

# The last steps, two at a time: some wait for installations or run on one processor, and some build in directories of their
# own, so that they do not wait for the builds of others. In this order hardly one waits.
LAST := python go last-command node book
ifeq ($(CI),true)
LAST := python last-first-steps go last-dependencies last-command last-without-assertions node book last-packages
endif
last-command:
	$(call step,the command without benchmarks,$(CARGO) test --package esker-cli)
last-interleavings:
	$(call step,interleavings,$(MAKE) --no-print-directory interleavings)
last-dependencies:
	$(call step,dependencies,$(MAKE) --no-print-directory without-c-compiler deny)
last-first-steps:
	$(call step,the first steps of the book,scripts/first-steps --quick)
last-miri last-tsan: export NIGHTLY := $(NIGHTLY)
last-miri:
	$(call step,some tests under Miri,scripts/nightly-tests miri --optional $(MIRI_TESTS_OF_SECONDS))
last-tsan:
	$(call step,some tests under ThreadSanitizer,scripts/nightly-tests tsan --optional $(TSAN_TESTS_OF_SECONDS))
last-oldest-rust:
	$(call step,oldest Rust,scripts/oldest-rust --strict)
last-public-interfaces:
	$(call step,public interfaces,scripts/public-api --check)
last-packages:
	$(call step,packages,$(MAKE) --no-print-directory package)
last-without-assertions:
	$(call step,orders without debug assertions,$(MAKE) --no-print-directory without-assertions)
# They are no part of the workspace, so that nothing else compiles them.
last-fuzz-targets:
	$(call step,fuzz targets,$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz)

# In a directory of its own: what is built for it is built for nothing else. LOOM_MAX_PREEMPTIONS=3 tries more, and takes longer;
# ESKER_SCHEDULES=n ends each model after so many. Loom itself is what takes the time, so that the engine need not be optimised.
interleavings: export RUSTFLAGS := $(RUSTFLAGS) --cfg esker_loom
interleavings:
	@mkdir -p $(OUT)
	@status=0; $(CARGO) test --config profile.dev.package.esker.opt-level=0 --package esker --lib \
	    --target-dir target/interleavings -- interleavings:: --nocapture --test-threads=1 >$(OUT)/interleavings.txt || status=$$?; \
	if [ $$status -ne 0 ]; then cat $(OUT)/interleavings.txt; exit $$status; fi; \
	sed -n 's/.*\(interleavings: .*\)/\1/p' $(OUT)/interleavings.txt; \
	sed -n 's/.*interleavings: .* \([0-9]*\) schedules.*/\1/p' $(OUT)/interleavings.txt | \
	    awk '{ sum += $$1 } END { print "interleavings: " sum " schedules of " NR " models, none wrong"; exit NR == 0 }'

# The engine compiles without one: what would run it, or look for a library of it, is not among its dependencies.
without-c-compiler:
	@tree=$$($(CARGO) tree --package esker --edges normal,build --prefix none) || exit 1; \
	if echo "$$tree" | grep -E '^(cc|cmake|bindgen|pkg-config|vcpkg|nasm-rs) '; \
	then echo "the engine needs a C compiler, for what is above"; exit 1; fi

# Debug builds notice more of what a comparator of the program's own does wrong: here it meets the engine as programs have it.
# Little is optimised, since the build is what takes the time.
without-assertions: export CARGO_PROFILE_DEV_DEBUG_ASSERTIONS := false
without-assertions: export CARGO_PROFILE_DEV_OPT_LEVEL := 0
without-assertions:
	scripts/filtered-tests --filters "order:: zstd::a_build_without_it" -- \
	    $(CARGO) test --config profile.dev.package.esker.opt-level=0 --package esker --test operations \
	    --target-dir $(TARGET)/without-assertions -- {}

# The files with `unsafe` (crates/esker/tests/tidy/exceptions.rs) but for those that call the system, and what they are for.
# A filter that matches no test is a failure, here and below.
NIGHTLY ?= +nightly
MIRI_TESTS ?= memtable:: base::memory:: base::counter:: base::slice:: cache:: db::state::thread_gate::
MIRI_TESTS_OF_SECONDS := base::memory:: base::counter:: base::slice:: db::state::thread_gate:: memtable::tests::nobody_appends \
    memtable::tests::counters_fold memtable::tests::superseded_entries
miri: export NIGHTLY := $(NIGHTLY)
miri:
	scripts/nightly-tests miri $(MIRI_TESTS)

TSAN_TESTS ?= memtable:: cache:: base:: wal:: db::
TSAN_TESTS_OF_SECONDS := memtable::tests:: cache::tests::many cache::buffer_pool:: db::state::snapshots:: db::state::thread_gate:: db::write
tsan: export NIGHTLY := $(NIGHTLY)
tsan:
	scripts/nightly-tests tsan $(TSAN_TESTS)

# Without the advisory database, which is a repository of its own, the rest is checked all the same. The fuzz targets have a lock
# file of their own.
deny:
	@PATH="$$ESKER_TOOLS/bin:$$PATH"; \
	if ! $(CARGO) deny --version >/dev/null 2>&1 && [ "$(CI)" = true ]; then \
	    echo "deny: cargo-deny is missing; installing it"; \
	    scripts/cargo-tool cargo-deny || exit 1; \
	fi; \
	if ! $(CARGO) deny --version >/dev/null 2>&1; then \
	    echo "deny: cargo-deny is missing (cargo install --locked cargo-deny): not checked"; \
	    exit 0; \
	fi; \
	offline=; checks="bans licenses sources"; \
	if $(CARGO) deny fetch db >/dev/null 2>&1; then \
	    offline=--offline; checks=; \
	else \
	    echo "deny: the advisory database cannot be fetched: advisories are not checked"; \
	fi; \
	for manifest in Cargo.toml fuzz/Cargo.toml; do \
	    $(CARGO) deny $$offline --all-features --config deny.toml --manifest-path $$manifest check $$checks || exit 1; \
	done

# What a step needs and cannot have costs one line; in CI it is a failure. `make test` runs these two at a time: they wait
# for installations, and for one another's builds, most of the time.
STRICT := $(if $(filter true,$(CI)),--strict)
python go node book: export CARGO := $(CARGO)
python:
	$(call step,the Python package,scripts/python-tests $(STRICT))
go:
	$(call step,the Go package,scripts/go-tests $(STRICT))
node:
	$(call step,the Node package,scripts/node-tests $(STRICT))
book:
	$(call step,the book,scripts/book $(STRICT))

server:
	scripts/server-tests

redis-suite:
	scripts/redis-suite

cloud:
	scripts/cloud-backup-test

package: export CARGO := $(CARGO)
package:
	scripts/package

static:
	@mkdir -p $(OUT)
	scripts/static-binary --output $(OUT)/esker

container: static
	scripts/container-test --binary $(OUT)/esker

first-steps:
	scripts/first-steps

clusters:
	scripts/cluster-histories --simulated --seeds 1..501

fuzz:
	scripts/fuzz --seconds $(FUZZ_SECONDS)

# Tests that fail on a slow machine are found beside a busy one.
under-load:
	scripts/under-load --runs $(LOADED_RUNS)

torture:
	scripts/torture --rounds $(TORTURE_ROUNDS) --seconds $(TORTURE_SECONDS)

planted-faults:
	@mkdir -p $(OUT)
	scripts/planted-faults --results $(OUT)/planted-faults.jsonl
