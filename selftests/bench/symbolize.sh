#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# See symbolize.py.
here=$(dirname "${BASH_SOURCE[0]}")
for tool in python3 llvm-symbolizer eu-addr2line addr2line; do
	command -v "$tool" >/dev/null && continue
	printf 'group\tNames, lines and inlined calls of 10,000 random PCs\n'
	printf 'row\tsymbolize\tCPU time\t\t\t\t\tskipped\tneeds %s\n' "$tool"
	exit 0
done
exec python3 "$here/symbolize.py" "$PWD/build/vmaprof" "$PWD/build/bench-symbolize"
