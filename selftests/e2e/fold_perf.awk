# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Folds `perf script -G -F comm,ip,sym,dso` or the like: one line "comm;root;…;leaf" per sample.
# perf prints the leaf first, "\t  ADDRESS SYMBOL (MODULE)"; a kernel module gets the mark _[k], an
# inlined call, "(inlined)" in place of the module, _[i].
/^[^ \t]/ {
	flush()
	comm = $0
	sub(/[ \t:]+$/, "", comm)
	open_sample = 1
	next
}
/^[ \t]+[0-9a-f]+ / {
	line = $0
	sub(/^[ \t]+[0-9a-f]+ /, "", line)
	kernel = line ~ /\(\[(kernel|guest)[^)]*\)$/ || line ~ /\(\[[a-z_0-9]+\]\)$/ && line !~ /\(\[vdso\]\)$/
	inlined = line ~ / \(inlined\)$/
	sub(/ \([^()]*\)$/, "", line)
	sub(/\+0x[0-9a-f]+$/, "", line)
	gsub(/;/, ":", line)
	stack = ";" line (kernel ? "_[k]" : inlined ? "_[i]" : "") stack
	next
}
/^[ \t]*$/ { flush() }
END { flush() }

function flush() {
	if (open_sample)
		print comm stack " 1"
	open_sample = 0
	stack = ""
}
