#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# vmaprof sym on what clang and lld build.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3 nm objdump llvm-symbolizer addr2line eu-addr2line clang clang++ ld.lld llvm-dwp
# shellcheck source=selftests/e2e/lib_sym.sh
source "$E2E/lib_sym.sh"

compare_builds <<'END'
clang.object | gnu | clang -g -O2 -c apart.c -o prog
clang.O0 | llvm | cxx clang -g -O0
clang.O1 | llvm | cxx clang -g -O1
clang.O2 | llvm | cxx clang -g -O2 && cp prog twin
+clang.split5 | llvm | cxx clang -g -gsplit-dwarf -O2
+clang.dwp5 | llvm | llvm-dwp -e prog -o prog.dwp && rm ./*.dwo
clang.O3 | llvm | cxx clang -g -O3
clang.dwarf4 | llvm eu | cxx clang -gdwarf-4 -gdwarf-aranges -O2 && cp prog twin
+clang.split4 | llvm | cxx clang -gdwarf-4 -gsplit-dwarf -O2
+clang.dwp4 | llvm | llvm-dwp -e prog -o prog.dwp && rm ./*.dwo
clang.tables | llvm | cxx clang -gline-tables-only -O2
clang.lto | llvm | cxx clang -g -O2 -flto -fuse-ld=lld
clang.thinlto | llvm | cxx clang -g -O2 -flto=thin -fuse-ld=lld
clang.sections | llvm | cxx clang -g -O2 -ffunction-sections -fuse-ld=lld -Wl,--gc-sections,--icf=all
clang.segments | llvm | cxx clang -g -O2 -fuse-ld=lld -Wl,-z,separate-loadable-segments
END
