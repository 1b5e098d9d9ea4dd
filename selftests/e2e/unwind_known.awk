# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# awk -f unwind_known.awk EXPECTED FOLDED: see unwind_bad in lib_unwind.sh.
#
# What may precede the expected chain is what the C library calls it with. Functions that are local
# in libc have names only if its debug symbols are installed.
BEGIN {
	local_libc = "libc\\.so\\.6\\+0x[0-9a-f]+"
	# before what is known of a file has been compiled, stacks end early: of the samples of one name
	max_incomplete = 0.08
	min_incomplete = 5
	root["main"] = "_start;__libc_start_main[^;]*;(__libc_start_call_main|" local_libc ");"
	root["thread"] = "((__)?clone3?(@@[^;]*)?|" local_libc ");(start_thread|" local_libc ");"
	# of makecontext
	root["other"] = "(__start_context;|" local_libc ";)?"
}

# an expected chain as a regular expression
function regex(chain,    kind) {
	kind = "other"
	if (chain ~ /^main;/)
		kind = "main"
	else if (chain ~ /^(alpha|beta|gamma)_main;/)
		kind = "thread"
	gsub(/\[vdso\]/, "([^;]*vdso[^;]*|clock_gettime)(;[^;]*vdso[^;]*)*", chain)
	gsub(/;signal;/, ";(__restore_rt|" local_libc ");", chain)
	sub(/;signal$/, ";(__restore_rt|" local_libc ")", chain)
	gsub(/;bsearch;/, ";(__GI_)?bsearch(@@[^;]*)?;", chain)
	gsub(/;labs@plt/, ";(labs@plt|nofp_calls\\+0x[0-9a-f]+)", chain)
	gsub(/;clock_nanosleep/, ";(__GI_)?(__)?clock_nanosleep(@@[^;]*)?", chain)
	gsub(/;(wait4|vfork|prctl|_exit)$/,
	     ";(__)?(GI_)?(__)?(wait4|vfork|prctl|_exit|waitpid|nofp_vfork\\+0x[0-9a-f]+)(@@[^;]*)?", chain)
	gsub(/;(read|madvise)$/, ";(__)?(GI_)?(__)?(libc_)?(read|madvise)(@@[^;]*)?", chain)
	gsub(/;clock_gettime/, ";(__GI_)?(__)?clock_gettime(@@[^;]*)?", chain)
	return "^" root[kind] chain "$"
}

FILENAME == ARGV[1] {
	split($0, field, "\t")
	name_cnt++
	names[name_cnt] = field[1]
	alternative_cnt[field[1]] = split(field[2], chains, "|")
	for (i = 1; i in chains; i++)
		expected[field[1], i] = regex(chains[i])
	delete chains
	next
}

{
	count = $NF
	sub(/ [0-9]+$/, "")
	name = $0
	sub(/;.*/, "", name)
	if (!(name in alternative_cnt))
		next
	stack = substr($0, length(name) + 2)
	while (match(stack, /(^|;)[^;]*_\[k\]$/))
		stack = substr(stack, 1, RSTART - 1)
	all[name] += count
	# parameters, and what gcc calls the cold part of a function
	gsub(/ \[clone [^]]*\]/, "", stack)
	gsub(/\((int|void|char|const|\*|&|,| )*\)/, "", stack)
	gsub(/\.cold(;|$)/, ";", stack)
	sub(/;$/, "", stack)
	if (!((name, stack) in known)) {
		known[name, stack] = 0
		for (i = 1; i <= alternative_cnt[name]; i++)
			if (stack ~ expected[name, i])
				known[name, stack] = 1
	}
	stacks[name, stack] += count
}

END {
	for (key in stacks) {
		split(key, part, SUBSEP)
		if (known[part[1], part[2]])
			good[part[1]] += stacks[key]
	}
	for (key in stacks) {
		split(key, part, SUBSEP)
		name = part[1]
		if (known[name, part[2]])
			continue
		if (is_inner_part(name, part[2])) {
			incomplete[name] += stacks[key]
		} else if (stacks[key] > most[name]) {
			most[name] = stacks[key]
			worst[name] = part[2]
		}
	}
	for (n = 1; n <= name_cnt; n++) {
		name = names[n]
		if (!all[name])
			print name ": no samples"
		else if (most[name])
			printf "%s: of %d samples %d are exact and %d are wrong: %s\n", name, all[name], good[name],
				most[name], shortened(worst[name])
		else if (incomplete[name] > min_incomplete && incomplete[name] > max_incomplete * all[name])
			printf "%s: of %d samples %d are exact and %d incomplete\n", name, all[name], good[name],
				incomplete[name]
	}
}

# whether it is a good stack of that name without some of the outer frames, or a task at its end,
# without any
function is_inner_part(name, stack,    key, part) {
	if (stack == "")
		return 1
	for (key in stacks) {
		split(key, part, SUBSEP)
		if (part[1] == name && known[key] &&
		    substr(part[2], length(part[2]) - length(stack)) == ";" stack)
			return 1
	}
	return 0
}

function shortened(s) {
	return length(s) > 600 ? substr(s, 1, 300) " … " substr(s, length(s) - 300) : s
}
