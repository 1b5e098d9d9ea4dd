# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the tests of unwinding share; source it after lib.sh.
#
# After unwind_start: UNWIND_PIDS, UNWIND_NAMES (of threads) and UNWIND_EXPECTED, a file with a line
# "NAME<tab>CHAIN[|CHAIN…]" for each name. The chains are those of the workload's READY line.

UNWIND_PIDS=()
UNWIND_NAMES=()
UNWIND_EXPECTED=$TMPDIR/expected

# Workloads whose stack stays as it is from the READY line on: "NAME WORKLOAD ARGUMENT…". The
# thread gets that name, because the file is started under it.
unwind_static=(
	"cet-full nofp_cet_full" "cet-none nofp_cet_none" "debug-frame nofp_debug_frame"
	"huge nofp_huge" "libc nofp_libc" "coro-one nofp_coro one"
	"depth-60 nofp_recurse 60" "depth-145 nofp_recurse 145" "depth-300 nofp_recurse 300"
	"depth-1000 nofp_recurse 1000"
	"catch nofp_except catch" "rethrow nofp_except rethrow"
	"sig-fault nofp_signal fault" "sig-alt nofp_signal alt" "sig-nested nofp_signal nested"
	"sig-async nofp_signal async" "sig-system nofp_signal system"
	"asm-r11 nofp_asm r11" "asm-scratch nofp_asm scratch" "asm-base nofp_asm base"
	"asm-register nofp_asm register" "asm-deref nofp_asm deref" "asm-saved nofp_asm saved"
	"asm-stack nofp_asm stack" "asm-fp nofp_asm fp" "asm-bare nofp_asm bare"
	"threads nofp_threads"
)
for unwind_file in "$WORKLOADS"/c.*.* "$WORKLOADS"/cc.*.*; do
	unwind_static+=("${unwind_file##*/} ${unwind_file##*/}")
done

# Those that call and return all the time, and those whose file has no name.
# shellcheck disable=SC2034  # for the tests
unwind_moving=(
	"calls nofp_calls" "vdso nofp_vdso" "coro nofp_coro" "vfork nofp_vfork"
	"sig-storm nofp_signal storm" "read nofp_kernel read" "fault nofp_kernel fault"
	"image-deleted nofp_image deleted" "image-memfd nofp_image memfd"
)

# expect NAME CHAIN: of one thread
unwind_expect() {
	UNWIND_NAMES+=("${1:0:15}")
	printf '%s\t%s\n' "${1:0:15}" "$2" >>"$UNWIND_EXPECTED"
}

# unwind_hold: what `start` has just started, until unwind_start is through. It becomes very nice:
# sixty that are only a little nice leave vmaprof a tenth of a CPU.
unwind_hold() {
	local threads
	mapfile -t threads < <(ls "/proc/$WL_PID/task")
	renice -n 19 -p "${threads[@]}" >/dev/null
	kill -STOP "$WL_PID"
	UNWIND_PIDS+=("$WL_PID")
}

# unwind_start "NAME WORKLOAD ARGUMENT…"… They are stopped until all have been started: sixty that
# spin would make that take long.
unwind_start() {
	local entry words chain
	mkdir -p "$TMPDIR/bin"
	for entry; do
		read -r -a words <<<"$entry"
		[ -x "$WORKLOADS/${words[1]}" ] || fail "workload ${words[1]} has not been built"
		ln -sf "$WORKLOADS/${words[1]}" "$TMPDIR/bin/${words[0]}"
		start_as "$TMPDIR/bin/${words[0]}" "${words[@]:2}"
		unwind_hold
		case $entry in
		*nofp_threads*)
			for chain in alpha beta gamma; do
				unwind_expect wl-$chain "${chain}_main;${chain}_spin"
			done
			;;
		*nofp_recurse*)
			unwind_expect "${words[0]}" \
				"main;$(printf 'recurse;%.0s' $(seq "${words[2]}"))bottom_spin"
			;;
		*)
			chain=${WL_READY#*chain=}
			[ "$chain" != "$WL_READY" ] || fail "$entry says no chain: $WL_READY"
			unwind_expect "${words[0]}" "$chain"
			;;
		esac
	done
	kill -CONT "${UNWIND_PIDS[@]}"
}

# unwind_bad FOLDED: what is wrong with the stacks of the expected names: no samples, a single stack
# that differs, or too many that lack outer frames. All frames are compared, from the outermost
# to the innermost, apart from the kernel's on top; see unwind_known.awk.
unwind_bad() {
	awk -f "$E2E/unwind_known.awk" "$UNWIND_EXPECTED" "$1"
}

# unwind_modes: the modes that this kernel has
unwind_modes() {
	echo inline
	"$VMAPROF" doctor --json | grep -q '"name": *"task_work[^}]*"present": *true' && echo deferred
}

# script_of DATA: all samples of a perf.data with addresses and names
script_of() {
	perf script -i "$1" --no-inline --max-stack 1100 -F comm,pid,tid,ip,sym,dso 2>"$TMPDIR/script.err" ||
		fail "perf script $1: $(head -n 5 "$TMPDIR/script.err")"
}

# ---- programs of the distribution ---------------------------------------------------------------

# unwind_program COMMAND ARGUMENT…: starts it; it need not say that it is ready.
unwind_program() {
	# shellcheck disable=SC2016  # for the inner shell
	start_as bash -c 'echo "READY pid=$$"; exec "$@"' bash "$@"
	UNWIND_PIDS+=("$WL_PID")
}

# Assembly (openssl), interpreters, and Rust; none of them ends.
unwind_start_programs() {
	local algorithm
	need openssl perl rg
	for algorithm in sha512 'evp aes-128-gcm' 'evp chacha20-poly1305' rsa2048 ecdhp256; do
		# shellcheck disable=SC2086  # two words
		unwind_program openssl speed -seconds 600 -bytes 8192 \
			${algorithm/#evp /-evp }
	done
	# Debian's own, not one that is earlier on the PATH
	unwind_program /usr/bin/python3 -S -E -c '
import json
def descend(n):
    if n:
        return descend(n - 1) + 1
    total = 0
    for i in range(3000):
        total += i * i % 7
    return total
class Item:
    def __init__(self, n):
        self.n = n
    def __lt__(self, other):
        return self.n < other.n
data = {"key %d" % i: [i, str(i), {"x": i}] for i in range(200)}
while True:
    descend(20)
    sorted([Item(i * 7919 % 1000) for i in range(400)])
    sorted(range(2000), key=lambda n: -n)
    json.dumps(data, indent=1)
'
	# shellcheck disable=SC2016  # Perl's
	unwind_program perl -e '
sub descend { my ($n) = @_; return $n ? 1 + descend($n - 1) : spin(); }
sub spin { my $t = 0; $t += $_ * $_ % 7 for 1 .. 3000; return $t }
while (1) {
	descend(20);
	my @s = sort { $b <=> $a || $a <=> $b } map { $_ * 7919 % 1000 } 1 .. 1000;
	my $text = "some words and 1234 numbers " x 200;
	$text =~ s/(\w+) (\d+)/uc($1) . $2/ge;
}
'
	unwind_program bash -c 'exec rg --no-mmap -c "(\\w+\\s+){3,}x\\d+y$" - \
		< <(exec yes "abc def ghi x12y jkl x1")'
}
