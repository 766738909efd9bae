# make test      every test, under the race detector, and the examples
# make lint      gofmt, go mod tidy, go vet, staticcheck
# make mutate    break every promise on purpose: its tests must notice; ONLY=NAME for one, PART=0/5 for a fifth
# make fuzz      every fuzz target for FUZZTIME
# make bench     ours and the peers side by side; ROWS=REGEXP for some rows
# make bench BENCH=REGEXP   benchmarks, COUNT times, for benchstat

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c

GO       ?= go
ROWS     ?=
PASSES   ?= 9
BENCH    ?=
COUNT    ?= 1
ONLY     ?=
FUZZTIME ?= 30s

# Modules inside this one; the go tool does not go into them by itself.
NESTED := $(shell find . -mindepth 2 -name go.mod -not -path '*/testdata/*' -printf '%h ')

# Under the race detector allocations cannot be counted, and some tests do less:
# they run once more without it.
LESS  = $(shell grep -rl --include='*_test.go' --exclude-dir=lint '\braceEnabled\b' . | xargs -rn1 dirname | sort -u)
ALLOC = $(filter-out $(LESS),$(shell grep -rl --include='*_test.go' --exclude-dir=lint '^func Test.*Alloc' . | xargs -rn1 dirname | sort -u))

# AT_ONCE runs a command for several folders at once, each with its output in one
# piece: many of their tests wait for servers and for time. Examples run in real
# time, which their own tests do not: each has three tries to find the machine quiet.
AT_ONCE = xargs -P 3 -I{} sh -c 'out=$$( { $(1); } 2>&1 ); code=$$?; printf "%s\n" "$$out"; exit $$code'

.PHONY: all test browser redis lint mutate fuzz bench

all: lint test

test: browser redis
	$(GO) test -race ./...
	$(GO) test $(LESS)
	$(if $(ALLOC),$(GO) test -run Alloc $(ALLOC))
	printf '%s\n' $(NESTED) | $(call AT_ONCE,$(GO) -C {} test -race ./...)
	printf '%s\n' examples/*/ | $(call AT_ONCE,$(GO) -C {} run . || $(GO) -C {} run . || $(GO) -C {} run .)

# The page is tested in a browser: Debian's, or the one that CHROMIUM names.
browser:
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || { \
		apt-get update; \
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-dejavu-core; \
	}

# store/redis and the fleet are tested over real servers: Debian's.
redis:
	@command -v redis-server >/dev/null && command -v redis-cli >/dev/null || { \
		apt-get update; \
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server; \
	}

lint: staticcheck := $(CURDIR)/.bin/staticcheck
lint:
	@files=$$(gofmt -l .); test -z "$$files" || { echo "not in gofmt's form:" $$files; exit 1; }
	$(GO) build -modfile=tools.mod -o $(staticcheck) honnef.co/go/tools/cmd/staticcheck
	for dir in . $(NESTED); do \
		$(GO) -C $$dir mod tidy -diff; \
		$(GO) -C $$dir vet -tags mutation ./...; \
		(cd $$dir && $(staticcheck) -tags mutation ./...); \
	done

mutate:
	PART=$(PART) $(GO) test -tags mutation -count=1 -timeout 30m $(if $(ONLY),-v -run 'TestMutations/$(ONLY)') ./internal/mutation

fuzz:
	for dir in . $(NESTED); do \
		$(GO) -C $$dir test -list '^Fuzz' ./... | \
		awk '/^Fuzz/ {names = names " " $$1} /^ok/ {n = split(names, name); for (i = 1; i <= n; i++) print $$2, name[i]; names = ""}' | \
		while read -r pkg name; do \
			$(GO) -C $$dir test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

bench:
ifeq ($(BENCH),)
	$(GO) -C bench run . -rows '$(ROWS)' -passes $(PASSES)
else
	for dir in . $(NESTED); do $(GO) -C $$dir test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...; done
endif
