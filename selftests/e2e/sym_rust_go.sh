#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof sym on what rustc and go build.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3 nm objdump llvm-symbolizer addr2line eu-addr2line rustc go
# shellcheck source=selftests/e2e/lib_sym.sh
source "$E2E/lib_sym.sh"

export GOCACHE=$TMPDIR/gocache GO111MODULE=off
compare_builds <<'END'
rust.debug | llvm | rustc -g main.rs -o prog
rust.legacy | llvm | RUSTC_BOOTSTRAP=1 rustc -g -O -Z unstable-options -C symbol-mangling-version=legacy main.rs -o prog
rust.v0 | llvm | rustc -g -O -C symbol-mangling-version=v0 main.rs -o prog
go.packed | llvm | go build -o prog main.go && cp prog whole
+go.plain | llvm | objcopy --decompress-debug-sections whole prog
+go.stripped | nm | strip whole -o prog
END
