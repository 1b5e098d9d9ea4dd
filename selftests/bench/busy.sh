#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Ten seconds of a busy machine, which stays busy: how long it takes from the end of sampling until
# every frame has its name. Prints rows as bench.h describes.
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=selftests/e2e/lib.sh
source "$here/../e2e/lib.sh" || exit 1
# shellcheck source=selftests/e2e/lib_unwind.sh
source "$E2E/lib_unwind.sh" || exit 1

target_ms=1000
seconds=10

# row ID FIGURE VALUE UNIT [RELATION TARGET VERDICT [NOTE]]
row() {
	printf 'row\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "${5:-}" "${6:-}" "${7:-}" "${8:-}"
}

# compile LANGUAGE COMPILER: again and again, a program that uses much of its library
compile() {
	local source=$TMPDIR/source.$1
	if [ "$1" = cc ]; then
		printf '#include <%s>\n' iostream map regex string vector algorithm >"$source"
	else
		printf '#include <%s>\n' stdio.h stdlib.h string.h math.h pthread.h >"$source"
	fi
	echo 'int main(void) { return 0; }' | sed 's/(void)/()/' >>"$source"
	# shellcheck disable=SC2016  # the inner shell's
	unwind_program bash -c 'while "$1" -O2 -c "$2" -o "$2.$1.o"; do :; done' compile "$2" "$source"
}

start_load() {
	unwind_start_programs
	unwind_program node -e '
	function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
	for (;;) { fibonacci(24); JSON.parse(JSON.stringify([...Array(2000).keys()])); [3, 1, 2].sort(); }
	'
	compile cc g++
	compile c gcc
	compile cc clang++
	# shellcheck disable=SC2016  # the inner shell's
	unwind_program bash -c 'while git --version && nm -D --size-sort "$1"; do :; done' nm \
		/usr/lib/x86_64-linux-gnu/libcrypto.so.3
	renice -n 19 -p "${UNWIND_PIDS[@]}" >/dev/null
}

# measure NAME FIGURE OPTION…
measure() {
	local name=$1 figure=$2 functions files named verdict facts
	shift 2
	vp_ok record -a -v -F 999 --duration $seconds "$@" -o "$TMPDIR/x.html"
	facts=$(sed -n 's/^symbolized \([0-9]*\) functions of \([0-9]*\) files in \([0-9]*\) ms.*/\1 \2 \3/p' "$ERR")
	read -r functions files named <<<"$facts"
	[ -n "$named" ] || fail "no line about symbolizing: $(cat "$ERR")"
	verdict=$([ "$named" -le $target_ms ] && echo met || echo MISSED)
	row "busy.$name.named" "$figure: from the end of sampling until all is named" "$named" ms '<=' \
		$target_ms "$verdict"
	row "busy.$name.functions" "… functions" "$functions" ""
	row "busy.$name.files" "… of files" "$files" ""
	row "busy.$name.memory" "… largest memory of the recorder" \
		"$(sed -n 's/^vmaprof itself: .*, \([0-9]*\) MB memory$/\1/p' "$ERR")" MB
}

printf 'group\tTen seconds of a busy machine at 999 Hz (compilers, python, perl, node, ripgrep, openssl, nm)\n'
start_load >&2
measure names "names"
if "$VMAPROF" record --help | grep -q -e --inlines; then
	measure inlines "inlined calls and lines, too" --inlines
else
	row busy.inlines.named "inlined calls and lines, too" "" "" "" "" skipped "no --inlines"
fi
