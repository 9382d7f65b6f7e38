# spillway: `make help` lists the targets.
#
# CFLAGS, CPPFLAGS and LDFLAGS belong to whoever builds; ours are kept apart.

PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
MANDIR  ?= $(PREFIX)/share/man
DOCDIR  ?= $(PREFIX)/share/doc/spillway

CC      ?= cc
CFLAGS  ?= -O2 -g
PKG_CONFIG ?= pkg-config

# SAN=address,undefined builds an instrumented variant beside the plain one.
ifdef SAN
VARIANT := $(subst $(comma),-,$(SAN))
SANFLAGS := -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
comma := ,
VARIANT := $(if $(SAN),$(subst $(comma),-,$(SAN)),plain)
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

Q := $(if $(V),,@)

all: $(PROGRAM)

$(PROGRAM): $(TOP) $(OS) $(OBJ)/core.a
	@echo "  LD    $@"
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(TOP) $(OS) $(OBJ)/core.a -lev $(JANSSON_LIBS)

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

clean:
	rm -rf build

.PHONY: all clean
.SECONDARY:
-include $(shell find build -name '*.d' 2>/dev/null)
