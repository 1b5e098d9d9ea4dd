#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Outputs: which format, the older file kept, standard output, the HTML file on its own.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

start chain
mkdir "$TMPDIR/o"
cd "$TMPDIR/o" || fail "cd"

record() {
	vp_ok record -p "$WL_PID" -F 199 --duration 0.5 "$@"
}

# Without -o: vmaprof.html here.
record
[ "$(ls -A)" = vmaprof.html ] || fail "files: $(ls -A)"
grep -q 'vmaprof.html' "$ERR" || fail "the summary does not name the file"
[ -s "$OUT" ] && fail "wrote to standard output"
grep -q -i '<!doctype html' vmaprof.html || fail "not HTML: $(head -c 200 vmaprof.html)"
for name in inner middle outer main chain; do
	grep -q "$name" vmaprof.html || fail "$name is not in the HTML"
done
# self-contained: it loads nothing
grep -o -i -E '(src|href)="?(https?:)?//[^">]*|url\((https?:)?//[^)]*|@import[^;]*|<link [^>]*href[^>]*' \
	vmaprof.html | grep -v -i 'href="\(data:\|#\)' && fail "loads from elsewhere"

# An older file is kept, once.
record
[ "$(echo *)" = "vmaprof.html vmaprof.html.old" ] || fail "files: $(ls -A)"
record
[ "$(echo *)" = "vmaprof.html vmaprof.html.old" ] || fail "files: $(ls -A)"
rm -f vmaprof.html*

# The ending picks the format; a name with spaces and a folder are no problem.
mkdir 'sub folder'
record -o 'sub folder/my stacks.folded'
assert_folded 'sub folder/my stacks.folded'
assert_chain 'sub folder/my stacks.folded' 'main;outer;middle;inner' chain 95
record -o x.data
[ "$(head -c 8 x.data)" = PERFILE2 ] || fail "x.data is no perf.data"
record -o x.html
grep -q -i '<!doctype html' x.html || fail "x.html is no HTML"
vp record -p "$WL_PID" --duration 0.2 -o x.bogus
assert_error 1 2 'bogus'
[ ! -e x.bogus ] || fail "x.bogus was made"

# "-" is folded, on standard output, and only that is there.
record -o -
cp "$OUT" stdout.folded
assert_folded stdout.folded
assert_chain stdout.folded 'main;outer;middle;inner' chain 95
[ ! -e ./- ] || fail "made a file named -"

# Sizes and permissions: what anybody else's output has.
umask 022
rm -f x.folded
record -o x.folded
[ "$(stat -c %a x.folded)" = 644 ] || fail "mode $(stat -c %a x.folded), not 644 under umask 022"

# The summary: samples, how stacks ended, hottest functions, own cost, next command.
grep -q -i -E '[0-9,]+ samples' "$ERR" || fail "no number of samples"
grep -q -E 'ended.* [A-Z_]+ [0-9.]+ ?%' "$ERR" || fail "no word on how stacks ended"
grep -q 'inner' "$ERR" || fail "the hottest function is not named"
grep -q -E 'x\.folded' "$ERR" || fail "the file is not named"
grep -q -E $'\r|\e' "$ERR" && fail "terminal control characters in a file"

# Quiet is quiet.
record -q -o x.folded
[ ! -s "$ERR" ] || fail "-q is not quiet"

# A FIFO is written to, not replaced.
mkfifo pipe.folded
timeout 30 cat pipe.folded >from-pipe &
reader=$!
record -o pipe.folded
wait "$reader"
[ -p pipe.folded ] || fail "the FIFO was replaced"
assert_folded from-pipe

# A symbolic link's target is where the data goes, or the link is replaced; never lost.
ln -s target.folded link.folded
record -o link.folded
assert_folded link.folded
