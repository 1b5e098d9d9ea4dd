# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make                 build/vmaprof
# make deps            install what a build needs (Debian, root)
# make check           all tests; ends with `N passed, N failed, N skipped`
# make check-vm        tests of the kernel in VMs: KERNELS="6.1 6.12-rt", VMLINUZ=image or KDIR=build tree
# make demo            ten seconds of profiling of a sample workload
# make bench           measurements
# make fuzz            SECONDS=60: what reads other people's files, with made-up ones
# make check-kconfig   kernels with as few options as Kconfig-min.md says, built and recorded in: an hour
# make lint            formatting, static analysis, spelling
# make format          lets clang-format rewrite the sources
# make verifier-stats  instructions the verifier processes per program, against the budget
# make install         PREFIX=/usr/local DESTDIR=
# make clean
#
# V=1 shows the commands. Everything that is made goes below build/.

MAKEFLAGS += --no-builtin-rules --no-builtin-variables --no-print-directory
.DELETE_ON_ERROR:
.SECONDARY:
.SECONDEXPANSION:
.SUFFIXES:
.DEFAULT_GOAL := all

CC := gcc
CXX := g++
AR := ar
CLANG := clang
LLVM_STRIP := llvm-strip
# lives in a directory that is not on every user's PATH
BPFTOOL := $(or $(shell PATH="$$PATH:/usr/sbin:/sbin" command -v bpftool),bpftool)

PREFIX := /usr/local
DESTDIR :=

ifeq ($(V),1)
Q :=
say =
else
Q := @
say = @printf '  %-8s %s\n' $(1) '$(2)';
endif

B := build

# ---- flags -----------------------------------------------------------------------------------

MACHINE := $(shell uname -m)
ARCH := $(or $(patsubst x86_64,x86,$(filter x86_64,$(MACHINE))),$(patsubst \
	aarch64,arm64,$(filter aarch64,$(MACHINE))),$(MACHINE))

VERSION := $(or $(shell git describe --always --dirty --tags 2>/dev/null),unknown)

INCLUDES := -Iinclude -Iuser -I$(B)/kern
WARN := -Wall -Wextra -Werror
CFLAGS := -std=gnu11 -O2 -g -fno-omit-frame-pointer $(WARN)
CPPFLAGS := -D_GNU_SOURCE $(INCLUDES)
LDFLAGS :=
LDLIBS := -lbpf -lelf -ldw -liberty -lz -lzstd -llzma -lpthread -lm

BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -Ivmlinux/$(ARCH) -Iinclude -Ikern \
	-Wall -Werror -Wno-missing-declarations

ASAN_FLAGS := -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
TEST_CPPFLAGS := $(CPPFLAGS) -Iselftests/lib
TEST_LDLIBS := -lcriterion $(LDLIBS)

# a workload's source may replace these: /* build: FLAGS */ in its first five lines
WORKLOAD_FLAGS := -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread

# a build of nofp.c or nofp_cc.cc is named LANGUAGE.COMPILER.LEVEL.FORM: c.clang.O3.spie
nofp.c.gcc := $(CC) -D_GNU_SOURCE
nofp.c.clang := $(CLANG) -D_GNU_SOURCE
nofp.cc.gcc := $(CXX)
nofp.cc.clang := $(CLANG)++
nofp.pie := -fpie -pie
nofp.exe := -fno-pie -no-pie
nofp.sexe := -fno-pie -static
nofp.spie := -fpie -static-pie
NOFP_FLAGS := -Wall -g -fomit-frame-pointer -pthread

# ---- sources ---------------------------------------------------------------------------------

BPF_SRC := $(wildcard kern/*.bpf.c)
USER_SRC := $(filter-out user/main.c,$(wildcard user/*.c user/*/*.c user/*/*/*.c))
UNIT_SRC := $(wildcard selftests/unit/*.c)
BPFTEST_SRC := $(wildcard selftests/bpf/*.c)
# with a main of their own
TOOL_SRC := selftests/lib/verifier_stats.c selftests/lib/compare_rows.c
LIB_SRC := $(filter-out selftests/lib/main.c $(TOOL_SRC),$(wildcard selftests/lib/*.c))
BENCH_SRC := $(wildcard selftests/bench/*.c)
BENCH_PROG_SRC := $(wildcard selftests/bench/prog/*.bpf.c)
WORKLOAD_SRC := $(wildcard selftests/workloads/*.c selftests/workloads/*.cc selftests/workloads/*.S)

BPF_OBJ := $(BPF_SRC:%.c=$(B)/%.o)
SKEL := $(BPF_OBJ:.bpf.o=.skel.h)
USER_OBJ := $(USER_SRC:%.c=$(B)/obj/%.o)
MAIN_OBJ := $(B)/obj/user/main.o
ASAN_OBJ := $(USER_SRC:%.c=$(B)/asan/%.o)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o)
UNIT_OBJ := $(UNIT_SRC:%.c=$(B)/obj/%.o) $(LIB_OBJ) $(B)/obj/selftests/lib/main.unit.o
UNIT_ASAN_OBJ := $(UNIT_SRC:%.c=$(B)/asan/%.o) $(LIB_SRC:%.c=$(B)/asan/%.o) \
	$(B)/asan/selftests/lib/main.unit.o
BPFTEST_OBJ := $(BPFTEST_SRC:%.c=$(B)/obj/%.o) $(LIB_OBJ) $(B)/obj/selftests/lib/main.bpf.o

# built apart: every byte of it instrumented by clang
FUZZ_SRC := $(wildcard selftests/fuzz/*.c)
FUZZED_SRC := selftests/lib/made_cfi.c $(wildcard user/unwind/cfi_*.c) user/unwind/rows.c \
	user/unwind/code_rows.c user/unwind/row_image.c user/unwind/rule_dict.c \
	$(wildcard user/symbolize/*.c user/util/*.c)
FUZZED_OBJ := $(FUZZED_SRC:%.c=$(B)/fuzz/%.o)
FUZZ_OBJ := $(FUZZ_SRC:%.c=$(B)/fuzz/%.o) $(FUZZED_OBJ)
FUZZERS := $(FUZZ_SRC:%.c=$(B)/%)
FUZZ_FLAGS := -std=gnu11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined

# one binary that needs only itself
CONFORMANCE_PROG_SRC := $(wildcard selftests/conformance/prog/*.bpf.c)
CONFORMANCE_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard selftests/conformance/*.c))

BENCH_OBJ := $(BENCH_SRC:%.c=$(B)/obj/%.o)
BENCHES := $(BENCH_SRC:selftests/bench/%.c=$(B)/selftests/bench/%)
NOFP := $(foreach cc,gcc clang,$(foreach level,O0 O2 O3,\
	$(foreach form,pie exe sexe spie,c.$(cc).$(level).$(form)) cc.$(cc).$(level).pie)) \
	cc.gcc.O2.sexe cc.clang.O2.sexe
WORKLOADS := $(addprefix $(B)/selftests/workloads/,$(notdir $(basename $(WORKLOAD_SRC))) $(NOFP))
TEST_BINS := $(if $(UNIT_SRC),$(B)/selftests/unit $(B)/selftests/unit-asan) \
	$(if $(BPFTEST_SRC),$(B)/selftests/bpf)
VMAPROF := $(if $(wildcard user/main.c),$(B)/vmaprof)

# ---- targets ---------------------------------------------------------------------------------

.PHONY: all deps test-deps lint-deps tests check check-vm vm-tests check-kconfig demo bench \
	bench-built fuzz fuzz-built lint \
	format verifier-stats install clean FORCE

all: $(VMAPROF)

deps:
	@.ci/deps build

test-deps:
	@.ci/deps build test

lint-deps:
	@.ci/deps build test lint

tests: $(VMAPROF) $(TEST_BINS) $(WORKLOADS) $(B)/selftests/compare-rows $(B)/vmaprof-selftest

# A second make, because what this one found out about tools precedes their installation.
check: test-deps
	@$(MAKE) tests
	@selftests/run

# what guests are made of
vm-tests: $(VMAPROF) $(B)/vmaprof-selftest $(B)/selftests/bpf $(WORKLOADS) $(B)/selftests/compare-rows \
	$(BPF_OBJ)

check-vm:
	@.ci/deps build test vm
	@$(MAKE) vm-tests
	@selftests/vm/check

# ARGS="6.1 --every": see selftests/vm/kconfig --help
check-kconfig:
	@.ci/deps build test kconfig
	@$(MAKE) tests
	@selftests/vm/kconfig --note $(ARGS)

demo: deps
	@$(MAKE) all $(B)/selftests/workloads/demo
	@selftests/demo

bench: test-deps
	@$(MAKE) bench-built

bench-built: $(VMAPROF) $(BENCHES) $(WORKLOADS)
	@if [ -x selftests/bench/run ]; then selftests/bench/run; fi

SECONDS := 60

fuzz:
	@.ci/deps build fuzz
	@$(MAKE) fuzz-built

fuzz-built: $(FUZZERS)
	@selftests/fuzz/run $(SECONDS)

lint: lint-deps
	@$(MAKE) $(SKEL)
	@.ci/lint

format:
	@.ci/lint format

verifier-stats: $(B)/selftests/verifier-stats $(BPF_OBJ)
	@$< selftests/verifier-budget $(BPF_OBJ)

install: all $(B)/vmaprof-selftest
	install -D -m 755 $(B)/vmaprof $(DESTDIR)$(PREFIX)/bin/vmaprof
	install -m 755 $(B)/vmaprof-selftest $(DESTDIR)$(PREFIX)/bin/vmaprof-selftest
	install -D -m 644 user/symbolize/perfmap.lua $(DESTDIR)$(PREFIX)/share/vmaprof/perfmap.lua
	install -d $(DESTDIR)$(PREFIX)/share/doc/vmaprof
	install -m 644 $(wildcard README.md Kconfig-min.md LICENSE LICENSES/*) \
		$(DESTDIR)$(PREFIX)/share/doc/vmaprof

clean:
	rm -rf $(B)

# ---- directories and lists -------------------------------------------------------------------

$(B)/%/:
	@mkdir -p $@

$(B)/:
	@mkdir -p $@

# Files that change only when their content does: the flags, and which objects make up a
# binary (so that a source that goes away is unlinked too).
# $(call list,FILE,CONTENT)
define list
$(1): FORCE | $$$$(@D)/
	@printf '%s\n' '$(2)' | cmp -s - $$@ || printf '%s\n' '$(2)' >$$@
endef

$(eval $(call list,$(B)/bpf.flags,$(CLANG) $(BPF_CFLAGS)))
$(eval $(call list,$(B)/user.flags,$(CC) $(CFLAGS) $(TEST_CPPFLAGS) $(LDFLAGS) $(LDLIBS) $(ASAN_FLAGS)))
$(eval $(call list,$(B)/workload.flags,$(CC) $(CXX) $(WORKLOAD_FLAGS)))
$(eval $(call list,$(B)/nofp.flags,$(nofp.c.gcc) $(nofp.c.clang) $(nofp.pie) $(nofp.exe) $(nofp.sexe) \
	$(nofp.spie) $(NOFP_FLAGS)))
$(eval $(call list,$(B)/version,$(VERSION)))
$(eval $(call list,$(B)/user.list,$(USER_OBJ)))
$(eval $(call list,$(B)/unit.list,$(UNIT_OBJ)))
$(eval $(call list,$(B)/bpftest.list,$(BPFTEST_OBJ)))

# ---- BPF objects and skeletons ---------------------------------------------------------------

$(B)/kern/%.bpf.o: kern/%.bpf.c $(B)/bpf.flags | $$(@D)/
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@

$(B)/kern/%.skel.h: $(B)/kern/%.bpf.o
	$(call say,SKEL,$@)
	$(Q){ echo '/* NOLINTBEGIN */' && $(BPFTOOL) gen skeleton $< name $(subst -,_,$*) && \
		echo '/* NOLINTEND */'; } >$@

# What benchmarks measure in the kernel.
$(B)/selftests/bench/prog/%.bpf.o: selftests/bench/prog/%.bpf.c $(B)/bpf.flags | $$(@D)/
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@

$(B)/selftests/conformance/prog/%.bpf.o: selftests/conformance/prog/%.bpf.c $(B)/bpf.flags | $$(@D)/
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@

$(CONFORMANCE_OBJ): TEST_CPPFLAGS += -Iselftests/conformance -I$(B)/selftests/conformance/prog
$(CONFORMANCE_OBJ): | $(CONFORMANCE_PROG_SRC:%.bpf.c=$(B)/%.skel.h)

$(B)/vmaprof-selftest: $(CONFORMANCE_OBJ) $(B)/libvmaprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -static $(LDFLAGS) -o $@ $^ -lbpf -lelf -lz -lzstd

# It sees the kernel as user space does.
$(B)/selftests/e2e/%.bpf.o: selftests/e2e/%.bpf.c $(B)/bpf.flags | $$(@D)/
	$(call say,BPF,$@)
	$(Q)$(CLANG) -g -O2 -target bpf -Wall -I/usr/include/$$($(CC) -print-multiarch) -MMD -MP \
		-c $< -o $@

$(B)/selftests/%.skel.h: $(B)/selftests/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(*F)_bpf >$@

$(B)/obj/selftests/bench/lookup.o: $(B)/selftests/bench/prog/lookup.skel.h
$(B)/obj/selftests/bench/lookup.o: TEST_CPPFLAGS += -I$(B)/selftests/bench/prog
$(B)/obj/selftests/bench/churn.o: $(B)/selftests/e2e/open_counter.skel.h
$(B)/obj/selftests/bench/churn.o: TEST_CPPFLAGS += -I$(B)/selftests/e2e

# ---- user space ------------------------------------------------------------------------------

# These include skeletons, or headers that do. The others need not wait for them; which one an
# object uses is in its depfile from the first compilation on.
$(filter $(B)/%/main.o $(B)/obj/user/kernel/% $(B)/asan/user/kernel/% $(B)/obj/user/cmd/% \
	$(B)/asan/user/cmd/% $(B)/obj/selftests/bpf/% $(B)/obj/selftests/bench/%,$(USER_OBJ) \
	$(ASAN_OBJ) $(MAIN_OBJ) $(BPFTEST_OBJ) $(BENCH_OBJ)): | $(SKEL)

# .incbin is in no depfile
$(B)/obj/user/output/html_asset.o $(B)/asan/user/output/html_asset.o: \
	$(wildcard user/output/flamegraph/*)

# the only file that knows the version
$(B)/obj/user/main.o $(B)/asan/user/main.o: $(B)/version
$(B)/obj/user/main.o $(B)/asan/user/main.o: CPPFLAGS += -DVP_VERSION='"$(VERSION)"'

$(B)/obj/user/%.o: user/%.c $(B)/user.flags | $$(@D)/
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(B)/asan/user/%.o: user/%.c $(B)/user.flags | $$(@D)/
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(ASAN_FLAGS) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(B)/libvmaprof.a: $(USER_OBJ) $(B)/user.list
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(USER_OBJ)

$(B)/asan/libvmaprof.a: $(ASAN_OBJ) $(B)/user.list
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(ASAN_OBJ)

$(B)/vmaprof: $(MAIN_OBJ) $(B)/libvmaprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# ---- tests -----------------------------------------------------------------------------------

# Criterion finds tests through a section: as objects, never from an archive, and without
# --gc-sections or -flto, which drop them silently.

$(B)/obj/selftests/lib/main.%.o: selftests/lib/main.c $(B)/user.flags | $$(@D)/
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(TEST_CPPFLAGS) -DVP_TEST_$* -MMD -MP -c $< -o $@

$(B)/asan/selftests/lib/main.%.o: selftests/lib/main.c $(B)/user.flags | $$(@D)/
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(ASAN_FLAGS) $(TEST_CPPFLAGS) -DVP_TEST_$* -MMD -MP -c $< -o $@

$(B)/obj/selftests/%.o: selftests/%.c $(B)/user.flags | $$(@D)/
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(TEST_CPPFLAGS) -MMD -MP -c $< -o $@

# is_in() of spinner.c must not take the next function for the one it is asked about.
$(B)/obj/selftests/bpf/%.o: CFLAGS += -falign-functions=128

$(B)/asan/selftests/%.o: selftests/%.c $(B)/user.flags | $$(@D)/
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(ASAN_FLAGS) $(TEST_CPPFLAGS) -MMD -MP -c $< -o $@

$(B)/selftests/unit: $(UNIT_OBJ) $(B)/libvmaprof.a $(B)/unit.list | $$(@D)/
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(UNIT_OBJ) $(B)/libvmaprof.a $(TEST_LDLIBS)

$(B)/selftests/unit-asan: $(UNIT_ASAN_OBJ) $(B)/asan/libvmaprof.a $(B)/unit.list | $$(@D)/
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(ASAN_FLAGS) $(LDFLAGS) -o $@ $(UNIT_ASAN_OBJ) $(B)/asan/libvmaprof.a \
		$(TEST_LDLIBS)

$(B)/selftests/bpf: $(BPFTEST_OBJ) $(B)/libvmaprof.a $(B)/bpftest.list | $$(@D)/
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(BPFTEST_OBJ) $(B)/libvmaprof.a $(TEST_LDLIBS)

$(B)/selftests/verifier-stats: $(B)/obj/selftests/lib/verifier_stats.o | $$(@D)/
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LDLIBS)

$(B)/selftests/compare-rows: $(B)/obj/selftests/lib/compare_rows.o \
		$(B)/obj/selftests/lib/rows_oracle.o $(B)/libvmaprof.a | $$(@D)/
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/selftests/bench/%: $(B)/obj/selftests/bench/%.o $(B)/libvmaprof.a | $$(@D)/
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/fuzz/%.o: %.c $(B)/user.flags | $$(@D)/
	$(call say,FUZZ,$@)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link $(TEST_CPPFLAGS) -MMD -MP -c $< -o $@

$(B)/selftests/fuzz/%: $(B)/fuzz/selftests/fuzz/%.o $(FUZZED_OBJ) | $$(@D)/
	$(call say,LINK,$@)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

# A script's text: sets $$flags to the source's own flags or the default. They stand behind the
# source on the command line, because libraries must.
workload_flags = flags=$$(sed -n '1,5s,.*/\* build: *\(.*[^ ]\) *\*/.*,\1,p' $<)

$(B)/selftests/workloads/%: selftests/workloads/%.c $(B)/workload.flags | $$(@D)/ $(B)/obj/selftests/workloads/
	$(call say,CC,$@)
	$(Q)$(workload_flags); \
		$(CC) -D_GNU_SOURCE -Wall -MMD -MP -MF $(@:$(B)/%=$(B)/obj/%.d) -MT $@ -o $@ $< $${flags:-$(WORKLOAD_FLAGS)}

$(B)/selftests/workloads/%: selftests/workloads/%.cc $(B)/workload.flags | $$(@D)/ $(B)/obj/selftests/workloads/
	$(call say,CXX,$@)
	$(Q)$(workload_flags); \
		$(CXX) -Wall -MMD -MP -MF $(@:$(B)/%=$(B)/obj/%.d) -MT $@ -o $@ $< $${flags:-$(WORKLOAD_FLAGS)}

$(B)/selftests/workloads/%: selftests/workloads/%.S $(B)/workload.flags | $$(@D)/ $(B)/obj/selftests/workloads/
	$(call say,AS,$@)
	$(Q)$(workload_flags); \
		$(CC) -MMD -MP -MF $(@:$(B)/%=$(B)/obj/%.d) -MT $@ -o $@ $< $${flags:--g}

nofp_word = $(word $(1),$(subst ., ,$(@F)))

$(NOFP:%=$(B)/selftests/workloads/%): selftests/workloads/nofp$$(if $$(filter cc.%,$$(@F)),_cc.cc,.c) \
		$(B)/nofp.flags | $$(@D)/ $(B)/obj/selftests/workloads/
	$(call say,NOFP,$@)
	$(Q)$(nofp.$(call nofp_word,1).$(call nofp_word,2)) -MMD -MP -MF $(@:$(B)/%=$(B)/obj/%.d) -MT $@ \
		-o $@ $< -$(call nofp_word,3) $(nofp.$(call nofp_word,4)) $(NOFP_FLAGS)

# ---- what the compilers found out ------------------------------------------------------------

-include $(BPF_OBJ:.o=.d) $(USER_OBJ:.o=.d) $(ASAN_OBJ:.o=.d) $(MAIN_OBJ:.o=.d)
-include $(UNIT_OBJ:.o=.d) $(UNIT_ASAN_OBJ:.o=.d) $(BPFTEST_OBJ:.o=.d) $(WORKLOADS:$(B)/%=$(B)/obj/%.d)
-include $(TOOL_SRC:%.c=$(B)/obj/%.d) $(BENCH_OBJ:.o=.d) $(FUZZ_OBJ:.o=.d)
-include $(BENCH_PROG_SRC:%.c=$(B)/%.d) $(B)/selftests/e2e/open_counter.bpf.d
-include $(CONFORMANCE_OBJ:.o=.d) $(CONFORMANCE_PROG_SRC:%.c=$(B)/%.d)
