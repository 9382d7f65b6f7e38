# spillway: `make help` lists the targets.
#
# CFLAGS, CPPFLAGS and LDFLAGS belong to whoever builds; ours are kept apart.

PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
MANDIR  ?= $(PREFIX)/share/man
DOCDIR  ?= $(PREFIX)/share/doc/spillway
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
HOSTS   := $(sort $(wildcard contrib/hosts/*))

CC      ?= cc
CFLAGS  ?= -O2 -g
PKG_CONFIG ?= pkg-config

INSTALL ?= install

# SAN=address,undefined builds an instrumented variant beside the plain one.
comma := ,
VARIANT := $(if $(SAN),$(subst $(comma),-,$(SAN)),plain)
ifdef SAN
SANFLAGS := -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
OBJ := build/$(VARIANT)
PROGRAM := $(if $(SAN),$(OBJ)/spillway,build/spillway)

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wundef \
	-Wformat=2 -Wvla -Wswitch-enum -Wnull-dereference
WERROR ?= 1
ifeq ($(WERROR),1)
WARN += -Werror
endif
HARDEN := -fstack-protector-strong -fPIE -D_FORTIFY_SOURCE=2
ifdef SAN
HARDEN :=
endif

JANSSON_CFLAGS := $(shell $(PKG_CONFIG) --cflags jansson 2>/dev/null)
JANSSON_LIBS := $(shell $(PKG_CONFIG) --libs jansson 2>/dev/null || echo -ljansson)
CHECK_LIBS := $(shell $(PKG_CONFIG) --libs check 2>/dev/null || echo -lcheck -lsubunit -lm -lrt -lpthread)

ALL_CPPFLAGS := -D_GNU_SOURCE -Iinclude $(JANSSON_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS := -std=c11 $(WARN) -MMD -MP $(HARDEN) $(SANFLAGS) $(CFLAGS)
ALL_LDFLAGS := $(if $(SAN),,-pie -Wl,-z,relro,-z,now) $(SANFLAGS) $(LDFLAGS)

CORE := $(patsubst src/%.c,$(OBJ)/%.o,$(sort $(wildcard src/core/*.c)))
OS   := $(patsubst src/%.c,$(OBJ)/%.o,$(sort $(wildcard src/os/*.c)))
TOP  := $(patsubst src/%.c,$(OBJ)/%.o,$(sort $(wildcard src/*.c)))
UNIT := $(patsubst tests/unit/%.c,$(OBJ)/unit/%,$(sort $(wildcard tests/unit/test_*.c)))
KIT  := $(patsubst tests/unit/%.c,$(OBJ)/unit/%.o,$(sort $(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c))))

OST  := $(patsubst tests/os/%.c,$(OBJ)/os/%,$(sort $(wildcard tests/os/test_*.c)))

# What `make check` proves under; T=WORD runs only tests with WORD in the name.
CHECK_SAN := address,undefined
CHECKED := plain $(subst $(comma),-,$(CHECK_SAN))
RUN := scripts/run-tests $(if $(JOBS),-j $(JOBS)) $(if $(T),-k $(T))

Q := $(if $(V),,@)

all: $(PROGRAM)

$(PROGRAM): $(TOP) $(OS) $(OBJ)/core.a
	@echo "  LD    $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(TOP) $(OS) $(OBJ)/core.a -lev

# One file that runs anywhere this kernel's system calls are known.
static:
	$(Q)$(MAKE) --no-print-directory OBJ=build/static \
	    PROGRAM=build/static/spillway LDFLAGS="-static-pie $(LDFLAGS)" \
	    build/static/spillway

$(OBJ)/core.a: $(CORE)
	@echo "  AR    $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $(CORE)

$(OBJ)/%.o: src/%.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

$(OBJ)/unit/%.o: tests/unit/%.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(ALL_CPPFLAGS) -Itests/unit -Isrc $(ALL_CFLAGS) -Wno-missing-prototypes -c -o $@ $<

# Unit tests of the core link core.a alone: a link error is a design error.
$(OBJ)/unit/test_%: $(OBJ)/unit/test_%.o $(KIT) $(OBJ)/core.a
	@echo "  LD    $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(KIT) $(OBJ)/core.a $(CHECK_LIBS) $(JANSSON_LIBS)

# Tests of src/os and of what lies above, less the session's own two files.
$(OBJ)/os/test_%.o: tests/os/test_%.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(ALL_CPPFLAGS) -Itests/unit -Isrc $(ALL_CFLAGS) -Wno-missing-prototypes -c -o $@ $<

$(OBJ)/os/test_%: $(OBJ)/os/test_%.o $(OS) $(filter-out %/main.o %/session.o,$(TOP)) $(OBJ)/core.a
	@echo "  LD    $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(CHECK_LIBS) -lev $(JANSSON_LIBS)

# Fuzz targets: with libFuzzer where clang has it, and to replay the corpus.
FUZZ := scan cut relay
REPLAY := $(FUZZ:%=$(OBJ)/fuzz/replay_%)
FUZZ_SRC = tests/fuzz/fail.c tests/unit/rig.c $(wildcard src/core/*.c)

$(OBJ)/fuzz/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(CC) $(ALL_CPPFLAGS) -Itests/unit -Isrc $(ALL_CFLAGS) -c -o $@ $<

$(OBJ)/fuzz/replay_%: $(OBJ)/fuzz/fuzz_%.o $(OBJ)/fuzz/standalone.o $(OBJ)/fuzz/fail.o $(OBJ)/unit/rig.o $(OBJ)/core.a
	@echo "  LD    $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(JANSSON_LIBS)

build/fuzz/%: tests/fuzz/fuzz_%.c $(FUZZ_SRC)
	@mkdir -p $(@D)
	@echo "  FUZZ  $@"
	$(Q)clang -std=c11 -O1 -g -fsanitize=fuzzer,address,undefined \
	    -fno-sanitize-recover=all $(ALL_CPPFLAGS) -Itests/unit -Isrc \
	    -o $@ $^ $(JANSSON_LIBS)

TIME ?= 60
fuzz: $(addprefix build/fuzz/,$(or $(T),$(FUZZ)))
	$(Q)tests/fuzz/run $(TIME) $(or $(T),$(FUZZ))

tests: $(PROGRAM) $(UNIT) $(OST) $(REPLAY)

both: tests
	$(Q)$(MAKE) --no-print-directory SAN=$(CHECK_SAN) tests

check: both
	$(Q)$(RUN) lint $(foreach k,unit os fuzz e2e cases,$(CHECKED:%=$(k):%)) real:plain

check-unit: $(UNIT)
	$(Q)$(RUN) unit:$(VARIANT)

check-os: $(OST)
	$(Q)$(RUN) os:$(VARIANT)

check-e2e: $(PROGRAM)
	$(Q)$(RUN) e2e:$(VARIANT) cases:$(VARIANT)

check-real: $(PROGRAM)
	$(Q)$(RUN) real:$(VARIANT)

# What takes minutes; the last of it SECONDS long.
SECONDS ?= 600
soak: $(PROGRAM)
	$(Q)SPILLWAY=$(CURDIR)/$(PROGRAM) tests/soak/run $(SECONDS) $(T)

lint: $(PROGRAM)
	$(Q)$(RUN) lint

# What the engine needs without pipes around it.
$(OBJ)/bench/engine: tests/bench/engine.c $(OBJ)/core.a
	@mkdir -p $(@D)
	@echo "  LD    $@"
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< $(OBJ)/core.a $(JANSSON_LIBS)

bench-engine: $(OBJ)/bench/engine
	$(Q)$<

bench: $(PROGRAM)
	$(Q)SPILLWAY=$(CURDIR)/$(PROGRAM) tests/bench/run

demo:
	$(Q)scripts/install-deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)SPILLWAY=$(CURDIR)/$(PROGRAM) scripts/demo

install: all
	$(INSTALL) -d $(addprefix $(DESTDIR),$(BINDIR) $(MANDIR)/man1 \
	    $(MANDIR)/man7 $(DOCDIR)/hosts $(BASHDIR) $(ZSHDIR) $(FISHDIR))
	$(INSTALL) -m 755 $(PROGRAM) $(DESTDIR)$(BINDIR)/spillway
	$(INSTALL) -m 755 contrib/spillway-wrap $(DESTDIR)$(BINDIR)/spillway-wrap
	$(INSTALL) -m 644 man/spillway.1 $(DESTDIR)$(MANDIR)/man1/spillway.1
	$(INSTALL) -m 644 man/spillway.7 $(DESTDIR)$(MANDIR)/man7/spillway.7
	$(INSTALL) -m 644 README COPYING $(DESTDIR)$(DOCDIR)
	$(INSTALL) -m 644 $(HOSTS) $(DESTDIR)$(DOCDIR)/hosts
	$(INSTALL) -m 644 contrib/completions/spillway.bash $(DESTDIR)$(BASHDIR)/spillway
	$(INSTALL) -m 644 contrib/completions/_spillway $(DESTDIR)$(ZSHDIR)/_spillway
	$(INSTALL) -m 644 contrib/completions/spillway.fish $(DESTDIR)$(FISHDIR)/spillway.fish

uninstall:
	rm -f $(addprefix $(DESTDIR),$(BINDIR)/spillway $(BINDIR)/spillway-wrap \
	    $(MANDIR)/man1/spillway.1 $(MANDIR)/man7/spillway.7 \
	    $(DOCDIR)/README $(DOCDIR)/COPYING \
	    $(HOSTS:contrib/%=$(DOCDIR)/%) $(BASHDIR)/spillway \
	    $(ZSHDIR)/_spillway $(FISHDIR)/spillway.fish)
	rmdir $(DESTDIR)$(DOCDIR)/hosts $(DESTDIR)$(DOCDIR) 2>/dev/null || true

help:
	@echo "make               build/spillway"
	@echo "make static        build/static/spillway, which needs no library"
	@echo "make demo          install what is missing, build, show the main job"
	@echo "make check         all tests, plain and instrumented; T=WORD for some"
	@echo "make check-unit    tests of src/core        (these four take SAN= and T=)"
	@echo "make check-os      tests of src/os"
	@echo "make check-e2e     real processes, and tests/cases"
	@echo "make check-real    published clients and servers (needs npm)"
	@echo "make soak          what takes minutes; SECONDS=$(SECONDS)"
	@echo "make fuzz          fuzz targets, TIME=$(TIME) seconds each; T=scan for one"
	@echo "make lint          static checks"
	@echo "make bench         throughput and latency beside a direct pipe"
	@echo "make bench-engine  what the engine alone costs"
	@echo "make install       PREFIX=$(PREFIX) DESTDIR= BINDIR= MANDIR= DOCDIR="
	@echo "make uninstall     what install put there"
	@echo "make clean         remove build/"
	@echo "SAN=address,undefined  instrumented variant in build/address-undefined"
	@echo "V=1 shows commands; WERROR=0 keeps warnings warnings; CFLAGS are yours"

clean:
	rm -rf build

.PHONY: all static tests both fuzz check check-unit check-os check-e2e check-real soak lint \
	bench bench-engine demo install uninstall help clean
.SECONDARY:
-include $(shell find build -name '*.d' 2>/dev/null)
