#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Which file a mapping is of: equal names, inodes, sizes and times are told apart, and one name is
# the same in maps, find and all records of samples.
# shellcheck source=selftests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh" || exit 1

need python3 unshare nsenter perf gcc
folded=$TMPDIR/identity.folded
unshare -m true 2>/dev/null || skip "cannot make namespaces here"

# build FUNCTION FILE: spins in main -> FUNCTION; two of them differ in nothing but that name
build() {
	gcc -O1 -fno-omit-frame-pointer -static -x c -o "$2" - <<-EOF || fail "gcc"
		#include <stdio.h>
		#include <sys/prctl.h>
		volatile unsigned long count;
		__attribute__((noinline)) void $1(void)
		{
			for (volatile int keep = 0; keep == 0;)
				count++;
		}
		int main(void)
		{
			prctl(PR_SET_PDEATHSIG, 9);
			puts("READY twin");
			fflush(stdout);
			$1();
			return 0;
		}
	EOF
}
build spin_of_one "$TMPDIR/one"
build spin_of_two "$TMPDIR/two"
[ "$(stat -c %s "$TMPDIR/one")" = "$(stat -c %s "$TMPDIR/two")" ] || fail "the builds differ in size"

# record_both PID PID: the first is in spin_of_one, the second in spin_of_two
record_both() {
	vp_ok record -p "$1,$2" -F 299 --duration 1 -o "$folded"
	stop "$1" "$2"
	assert_folded "$folded"
	assert_chain "$folded" 'main;spin_of_one' "$3" 25
	assert_chain "$folded" 'main;spin_of_two' "$3" 25
	! grep -q 'deleted' "$folded" || fail "$(grep deleted "$folded")"
}

# Another build under the name of one that still runs.
cp "$TMPDIR/one" "$TMPDIR/replaced"
start_as "$TMPDIR/replaced"
first=$WL_PID
mv "$TMPDIR/two" "$TMPDIR/replaced"
start_as "$TMPDIR/replaced"
record_both "$first" "$WL_PID" replaced
mv "$TMPDIR/replaced" "$TMPDIR/two"

# Its file system was taken away: names and symbols are there all the same.
mkdir "$TMPDIR/lazy"
# shellcheck disable=SC2016 # that shell expands it
start_as unshare -m --propagation private sh -c \
	'mount -t tmpfs tmpfs "$1" && cp "$2" "$1/gone_chain" && exec "$1/gone_chain"' \
	sh "$TMPDIR/lazy" "$WORKLOADS/static_chain"
nsenter --target "$WL_PID" --mount umount -l "$TMPDIR/lazy" || fail "umount -l"
grep -q 'r-xp.* /gone_chain$' "/proc/$WL_PID/maps" || fail "still mounted"
python3 "$E2E/compare_maps.py" "$VMAPROF" "$WL_PID" || fail "maps of a lazily unmounted file system"
vp_ok record -p "$WL_PID" -F 299 --duration 0.7 -o "$folded"
assert_chain "$folded" 'main;outer;middle;inner' gone_chain 95
stop "$WL_PID"

# A chroot: what the walk finds and what is seen at exec have one name, and find says it, too.
mkdir -p "$TMPDIR/root/bin"
cp "$WORKLOADS/static_chain" "$TMPDIR/root/bin/jailed_chain"
# mapped_names DATA
mapped_names() {
	perf script -i "$1" --show-mmap-events 2>/dev/null | grep 'MMAP2.*jailed_chain$' |
		sed 's/.* //' | sort -u
}
vp_ok record -F 99 -o "$TMPDIR/exec.data" -- chroot "$TMPDIR/root" /bin/jailed_chain 0.3
start_as chroot "$TMPDIR/root" /bin/jailed_chain
vp_ok record -F 99 -p "$WL_PID" --duration 0.3 -o "$TMPDIR/walk.data"
[ "$(mapped_names "$TMPDIR/exec.data")" = /bin/jailed_chain ] ||
	fail "at exec: $(mapped_names "$TMPDIR/exec.data")"
[ "$(mapped_names "$TMPDIR/walk.data")" = /bin/jailed_chain ] ||
	fail "by the walk: $(mapped_names "$TMPDIR/walk.data")"
python3 "$E2E/compare_find.py" "$VMAPROF" "$WL_PID" 200 || fail "find in a chroot"
stop "$WL_PID"

# Two btrfs subvolumes: two files with one device, inode number, generation, size and time.
grep -q btrfs /proc/filesystems || modprobe btrfs 2>/dev/null
if ! grep -q btrfs /proc/filesystems || ! command -v mkfs.btrfs >/dev/null; then
	echo "note: no btrfs here"
	exit 0
fi
truncate -s 120M "$TMPDIR/btrfs.img"
mkdir "$TMPDIR/btrfs"
mkfs.btrfs -q -m single "$TMPDIR/btrfs.img" >/dev/null || fail "mkfs.btrfs"
if ! mount -o loop "$TMPDIR/btrfs.img" "$TMPDIR/btrfs" 2>"$TMPDIR/btrfs.err"; then
	echo "note: cannot mount: $(cat "$TMPDIR/btrfs.err")"
	exit 0
fi
on_exit umount -l "$TMPDIR/btrfs"
for name in one two; do
	btrfs subvolume create "$TMPDIR/btrfs/$name" >/dev/null || fail "btrfs"
done
for name in one two; do
	cp "$TMPDIR/$name" "$TMPDIR/btrfs/$name/same_place"
done
touch -d 2020-01-01 "$TMPDIR"/btrfs/*/same_place
[ "$(stat -c %i "$TMPDIR"/btrfs/*/same_place | sort -u | wc -l)" = 1 ] || fail "inode numbers differ"
start_as "$TMPDIR/btrfs/one/same_place"
first=$WL_PID
start_as "$TMPDIR/btrfs/two/same_place"
python3 "$E2E/compare_maps.py" "$VMAPROF" "$first" "$WL_PID" || fail "maps on btrfs"
record_both "$first" "$WL_PID" same_place
