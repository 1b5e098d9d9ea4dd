#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof sym on what gcc builds; sym_files.sh has more.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3 nm objdump llvm-symbolizer addr2line eu-addr2line gcc g++
# shellcheck source=selftests/e2e/lib_sym.sh
source "$E2E/lib_sym.sh"

compare_builds <<'END'
gcc.O0 | llvm | cxx gcc -g -O0
gcc.O1 | llvm | cxx gcc -g -O1
gcc.O3 | llvm | cxx gcc -g -O3
gcc.g1 | llvm | cxx gcc -g1 -O2
gcc.g3.nopie | llvm | cxx gcc -g3 -O2 -no-pie
gcc.types | llvm | cxx gcc -g -O2 -fdebug-types-section
gcc.dwarf64 | llvm | cxx gcc -g -O2 -gdwarf64
gcc.lto | llvm | cxx gcc -g -O2 -flto
gcc.sections | llvm | cxx gcc -g -O2 -ffunction-sections -Wl,--gc-sections
gcc.static | llvm | cxx gcc -g -O2 -static
gcc.prelinked | llvm | cxx gcc -g -O2 -shared -fPIC -Wl,-Ttext-segment=0x3000000000
gcc.apart | llvm eu | gcc -g -O2 -nostdlib -static -T apart.ld -Wl,--build-id=none -o prog apart.c
gcc.object | gnu | gcc -g -O2 -c apart.c -o prog
gcc.object4 | gnu | gcc -gdwarf-4 -O2 -ffunction-sections -c c.c -o prog
END
