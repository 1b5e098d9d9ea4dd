#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof sym on what strip, objcopy, dwz and dwp make of a program, and on split units.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3 nm objdump llvm-symbolizer addr2line eu-addr2line gcc g++ dwz dwp
# shellcheck source=selftests/e2e/lib_sym.sh
source "$E2E/lib_sym.sh"

compare_builds <<'END'
gcc.O2 | llvm eu | cxx gcc -g -O2 && cp prog whole
+gcc.zlib | llvm | objcopy --compress-debug-sections=zlib whole prog
+gcc.zlib-gnu | llvm | objcopy --compress-debug-sections=zlib-gnu whole prog
+gcc.zstd | llvm | cp whole asked && objcopy --compress-debug-sections=zstd whole prog
+gcc.debuglink | llvm | rm asked && objcopy --only-keep-debug whole prog.debug && strip whole -o prog && objcopy --add-gnu-debuglink=prog.debug prog
+gcc.dwz | llvm eu | cp whole prog && dwz prog
+gcc.dwz-m | llvm | cp whole asked && cp whole prog && cp whole other && dwz -m common prog other
+gcc.split5 | llvm | rm asked && cp whole twin && cxx gcc -g -gsplit-dwarf -O2
gcc.dwarf4 | llvm eu | cxx gcc -gdwarf-4 -O2 && cp prog twin
+gcc.split4 | llvm | cxx gcc -gdwarf-4 -gsplit-dwarf -O2
+gcc.dwp4 | llvm | dwp -e prog -o prog.dwp && rm ./*.dwo
END
