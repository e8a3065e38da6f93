# Everything that a contributor runs. `make` alone lists it.
#
# Each target works in a fresh clone on Debian or Ubuntu with Go, git and make.

SHELL     := /bin/bash
BIN       := $(CURDIR)/.bin
LINT_VERS := v2.12.2
LINT      := $(BIN)/golangci-lint
# Modules of the workspace, and the one outside of it.
WORKSPACE := . zamokgoredis zamokrueidis cmd/zamok
LAB       := lab
FUZZTIME  ?= 500000x
BENCH     ?= .

# The server that the tests start: redis-server, or valkey-server where the
# distribution has only that.
export ZAMOK_TEST_REDIS_SERVER ?= $(shell command -v redis-server || command -v valkey-server || echo redis-server)

# The race detector needs a C compiler. .ci/run installs one.
CC_FOUND := $(shell command -v "$$(go env CC)" 2>/dev/null)
RACE     ?= $(if $(CC_FOUND),-race)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what the tests need and this machine lacks
	@scripts/setup

.PHONY: test
test: setup ## every test of every module, with the race detector where it pays; prints totals
	$(if $(RACE),,@echo 'no C compiler: the tests run without the race detector')
	@go run ./internal/gotest -race='$(RACE)' $(WORKSPACE) $(if $(wildcard $(LAB)/go.mod),-- $(LAB))

.PHONY: test-failovers
test-failovers: setup ## the tests in which servers take over from each other, which make test leaves out; on a quiet machine
	@for m in . zamokgoredis zamokrueidis $(LAB); do \
	  (cd $$m && GOWORK=off ZAMOK_TEST_FAILOVERS=yes go test -count=1 -run 'Cluster|Sentinel|Case29' $$( [ $$m = . ] && echo ./driver/drivertest || echo ./... )) || exit 1; \
	done

# SERVERS are some of what scripts/servers --names prints.
SERVERS ?= $(shell scripts/servers --names)

.PHONY: test-servers
test-servers: setup ## what needs a server, on each that Debian has (SERVERS), an hour on a quiet machine; writes docs/servers.md
	@scripts/servers $(SERVERS)
	@ZAMOK_TEST_FAILOVERS=yes go run ./internal/gotest -servers -report docs/servers.md $(SERVERS:%=.bin/servers/%)

.PHONY: test-newest
test-newest: setup ## some minutes of test-servers on the newest server; make test has the oldest
	@scripts/servers valkey-forky
	@ZAMOK_DIFF_OPS=50000 go run ./internal/gotest -servers -brief .bin/servers/valkey-forky

.PHONY: race
race: ## every test with the race detector, lab too; fails without a C compiler
	@go run ./internal/gotest -race=-race $(WORKSPACE) $(if $(wildcard $(LAB)/go.mod),$(LAB))

.PHONY: short
short: ## the root module alone, without a server: under a minute
	@GOWORK=off go test ./...

.PHONY: lint
lint: linter ## gofmt, go vet for other systems, golangci-lint
	@scripts/check format
	@scripts/check vet
	@scripts/check lint $(LINT)

# The linter is built from source, once for each version: some minutes.
.PHONY: linter
linter:
	@if [ "$$($(LINT) version --short 2>/dev/null)" != '$(LINT_VERS:v%=%)' ]; then \
	  GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERS); fi

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (500000x, or 5m)
	@FUZZTIME=$(FUZZTIME) scripts/check fuzz

# ONLY is a regular expression: the other scenarios keep the figures that they have.
.PHONY: bench
bench: setup ## the race against other libraries (ONLY, all), 25 minutes on a quiet machine; writes docs/performance.md
	@cd $(LAB) && GOWORK=off go run ./bench $(if $(ONLY),-only '$(ONLY)')

.PHONY: bench-quick
bench-quick: setup ## tries whether the race can be run, in a minute; nothing is measured and nothing is written
	@cd $(LAB) && GOWORK=off go run ./bench -quick

.PHONY: bench-go
bench-go: ## the benchmarks of go test that match BENCH (all), with allocations
	@for m in $(WORKSPACE) $(LAB); do \
	  [ -f $$m/go.mod ] || continue; \
	  (cd $$m && GOWORK=off go test -run '^$$' -bench '$(BENCH)' -benchmem ./...) || exit 1; \
	done

.PHONY: fault
fault: setup ## five minutes of faults to processes, servers and the ways between them; ZAMOK_SEED plays the same again
	@cd $(LAB) && GOWORK=off go run ./fault -at-once 2 $(ZAMOK_SEED:%=-seed %)

ZAMOK_SOAK ?= 1h
.PHONY: soak
soak: setup ## the same for an hour (ZAMOK_SOAK), on a quiet machine; writes docs/faults.md
	@cd $(LAB) && GOWORK=off go run ./fault -at-once 2 -soak $(ZAMOK_SOAK) -for 90s $(ZAMOK_SEED:%=-seed %) -report ../docs/faults.md

.PHONY: model
model: setup ## the models of lab/model with larger bounds: some minutes, 4 GiB
	@cd $(LAB) && GOWORK=off ZAMOK_MODELS=big go test -v -count=1 -timeout 1h ./model

.PHONY: modules
modules: ## each module alone: tidy, build, and the drivers with their oldest and newest clients
	@scripts/check tidy
	@scripts/check alone
	@scripts/check clients

.PHONY: release-check
release-check: ## build what a user gets: every module without its replace lines
	@scripts/check release

.PHONY: ci
ci: ## what CI runs, with the time of each step
	@.ci/run
