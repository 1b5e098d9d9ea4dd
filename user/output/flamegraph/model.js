// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The profile and what can be asked of it. Nothing here touches the page.
"use strict";

const Model = (() => {
	const KINDS = ["user", "kernel", "jit", "inlined", "unknown"];
	const GROUP = "group"; // a command, process or thread at the root

	// Controls and bidirectional overrides would let a name pretend to be another.
	const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
	const printable = (s) => s.replace(UNPRINTABLE, "\ufffd");

	function ranks(names) {
		const order = names.map((_, i) => i);
		order.sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
		const rank = new Int32Array(names.length);
		order.forEach((label, i) => { rank[label] = i; });
		return rank;
	}

	// The stacks are a preorder walk of a trie (see html_data.h): node 0 is its root.
	function readStacks(p, ints) {
		const label = [-1], parent = [-1], path = [0];
		const thread = [], count = [], leaf = [];
		for (let i = 0; i < ints.length;) {
			thread.push(ints[i]);
			count.push(ints[i + 1]);
			path.length = ints[i + 2] + 1;
			const end = i + 4 + ints[i + 3];
			for (i += 4; i < end; i++) {
				parent.push(path[path.length - 1]);
				path.push(label.length);
				label.push(ints[i]);
			}
			leaf.push(path[path.length - 1]);
		}
		p.trieLabel = Int32Array.from(label);
		p.trieParent = Int32Array.from(parent);
		p.stackThread = Int32Array.from(thread);
		p.stackCount = Float64Array.from(count);
		p.stackLeaf = Int32Array.from(leaf);
	}

	// Of each label with lines: {file, line, share of its frames}, the most frequent first.
	function readLines(raw) {
		const files = (raw.files || []).map(printable);
		const lines = [];
		for (const [label, ints] of Object.entries(raw.lines || {})) {
			const list = lines[label] = [];
			for (let i = 1; i < ints.length; i += 3)
				list.push({file: files[ints[i]], line: ints[i + 1], share: ints[i + 2] / ints[0]});
		}
		return lines;
	}

	function load(json) {
		const raw = JSON.parse(json);
		const modules = raw.modules.map(printable);
		const comms = raw.comms.map((c) => printable(c) || "[no name]");
		const p = {
			samples: raw.samples,
			event: raw.event,
			freq: raw.freq,
			names: raw.names.map((n) => printable(n) || "[no name]"),
			modules: raw.module_of.map((m) => modules[m]),
			kinds: Array.from(raw.kinds, (k) => KINDS[k] || "unknown"),
			lines: readLines(raw),
			threads: [],
		};
		for (let i = 0; i < raw.threads.length; i += 3)
			p.threads.push({comm: comms[raw.threads[i]], tgid: raw.threads[i + 1], tid: raw.threads[i + 2], total: 0});
		p.rank = ranks(p.names);
		readStacks(p, raw.stacks);
		for (let i = 0; i < p.stackThread.length; i++)
			p.threads[p.stackThread[i]].total += p.stackCount[i];
		return p;
	}

	const SPLITS = {
		all: {
			key: (t) => t.comm,
			name: (t) => t.comm,
			where: () => "command",
		},
		process: {
			key: (t) => String(t.tgid),
			name: (t) => `${t.comm} (${t.tgid})`,
			where: (t) => `process ${t.tgid}`,
		},
		thread: {
			key: (t) => `${t.tid} ${t.comm}`,
			name: (t) => `${t.comm} (${t.tid})`,
			where: (t) => `thread ${t.tid} of process ${t.tgid}`,
		},
	};

	// A process is called what its first thread is called, whatever its other threads are.
	function betterName(a, b) {
		const aLeads = a.tid === a.tgid, bLeads = b.tid === b.tgid;
		return aLeads === bLeads ? b.total > a.total : bLeads;
	}

	// The roots of a split, hottest first, and the root of each thread.
	function groups(p, mode) {
		const split = SPLITS[mode];
		const byKey = new Map();
		for (const t of p.threads) {
			const key = split.key(t);
			let g = byKey.get(key);
			if (!g)
				byKey.set(key, g = {key, total: 0, thread: t});
			g.total += t.total;
			if (betterName(g.thread, t))
				g.thread = t;
		}
		const list = [...byKey.values()];
		for (const g of list) {
			g.name = split.name(g.thread);
			g.where = split.where(g.thread);
		}
		list.sort((a, b) => b.total - a.total || (a.key < b.key ? -1 : 1));
		list.forEach((g, i) => { g.index = i; });
		return {list, of: p.threads.map((t) => byKey.get(split.key(t)).index)};
	}

	// Stack numbers by group, keeping their order within one.
	function stacksByGroup(p, of, cnt) {
		const lists = Array.from({length: cnt}, () => []);
		for (let i = 0; i < p.stackThread.length; i++)
			lists[of[p.stackThread[i]]].push(i);
		return lists;
	}

	// A tree to show: node 0 is the root, parents have lower numbers than children.
	// label: of the profile; -2 - group for a group; -1 for the root.
	function view(p, mode, filterKey) {
		const g = groups(p, mode);
		const only = filterKey === null ? -1 : g.list.findIndex((x) => x.key === filterKey);
		const label = [-1], parent = [-1], self = [0];
		const nodeOf = new Int32Array(p.trieLabel.length); // of this group; 0: none yet
		const path = [], used = [];
		stacksByGroup(p, g.of, g.list.length).forEach((stacks, group) => {
			if (!stacks.length || (only >= 0 && only !== group))
				return;
			while (used.length)
				nodeOf[used.pop()] = 0;
			nodeOf[0] = label.length;
			label.push(-2 - group);
			parent.push(0);
			self.push(0);
			for (const s of stacks) {
				let at = p.stackLeaf[s];
				for (; !nodeOf[at]; at = p.trieParent[at])
					path.push(at);
				let node = nodeOf[at];
				while (path.length) {
					at = path.pop();
					parent.push(node);
					node = nodeOf[at] = label.length;
					used.push(at);
					label.push(p.trieLabel[at]);
					self.push(0);
				}
				self[node] += p.stackCount[s];
			}
		});
		const v = {
			profile: p, mode, groups: g.list, filter: only < 0 ? null : filterKey,
			cnt: label.length,
			label: Int32Array.from(label),
			parent: Int32Array.from(parent),
			self: Float64Array.from(self),
		};
		addTotals(v);
		return v;
	}

	function addTotals(v) {
		v.total = Float64Array.from(v.self);
		v.depth = new Int32Array(v.cnt);
		v.deepest = new Int32Array(v.cnt); // depth of the deepest node below
		for (let i = 1; i < v.cnt; i++)
			v.deepest[i] = v.depth[i] = v.depth[v.parent[i]] + 1;
		for (let i = v.cnt - 1; i > 0; i--) {
			const up = v.parent[i];
			v.total[up] += v.total[i];
			v.deepest[up] = Math.max(v.deepest[up], v.deepest[i]);
		}
	}

	function children(v) {
		const first = new Int32Array(v.cnt + 1);
		for (let i = 1; i < v.cnt; i++)
			first[v.parent[i] + 1]++;
		for (let i = 0; i < v.cnt; i++)
			first[i + 1] += first[i];
		const list = new Int32Array(Math.max(0, v.cnt - 1));
		const next = first.slice();
		for (let i = 1; i < v.cnt; i++)
			list[next[v.parent[i]]++] = i;
		return {first, list};
	}

	function siblingOrder(v, byName) {
		const rank = v.profile.rank, label = v.label;
		const name = (n) => (label[n] < 0 ? v.groups[-2 - label[n]].name : "");
		const cmpName = (a, b) => {
			if (label[a] >= 0)
				return rank[label[a]] - rank[label[b]];
			return name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : a - b;
		};
		if (byName)
			return cmpName;
		return (a, b) => v.total[b] - v.total[a] || cmpName(a, b);
	}

	// One array per depth, of the right size.
	function emptyRows(v) {
		const sizes = new Int32Array(v.deepest[0] + 1);
		for (let i = 0; i < v.cnt; i++)
			sizes[v.depth[i]]++;
		return Array.from(sizes, (n) => new Int32Array(n));
	}

	// Gives every node its place: x in samples, and rows[] of nodes from left to right.
	function layout(v, byName) {
		const {first, list} = children(v);
		const cmp = siblingOrder(v, byName);
		const used = new Int32Array(v.deepest[0] + 1);
		v.rows = emptyRows(v);
		v.x = new Float64Array(v.cnt);
		v.preorder = new Int32Array(v.cnt);
		const todo = [0];
		for (let at = 0; todo.length; at++) {
			const n = todo.pop();
			v.preorder[at] = n;
			v.rows[v.depth[n]][used[v.depth[n]]++] = n;
			const kids = list.subarray(first[n], first[n + 1]);
			if (kids.length > 1)
				kids.sort(cmp);
			let x = v.x[n] + v.total[n] - v.self[n]; // own samples are on the right
			for (let k = kids.length - 1; k >= 0; k--) {
				x -= v.total[kids[k]];
				v.x[kids[k]] = x;
				todo.push(kids[k]);
			}
		}
		v.kids = {first, list};
	}

	// Index in the row of the first node that ends after x (in samples).
	function firstAfter(v, row, x) {
		let lo = 0, hi = row.length;
		while (lo < hi) {
			const mid = (lo + hi) >> 1;
			if (v.x[row[mid]] + v.total[row[mid]] > x)
				hi = mid;
			else
				lo = mid + 1;
		}
		return lo;
	}

	function nodeAt(v, depth, x) {
		const row = v.rows[depth];
		if (!row)
			return -1;
		const n = row[firstAfter(v, row, x)];
		return n !== undefined && v.x[n] <= x ? n : -1;
	}

	const nameOf = (v, n) => {
		const l = v.label[n];
		if (l >= 0)
			return v.profile.names[l];
		if (l <= -2)
			return v.groups[-2 - l].name;
		return "all";
	};
	const kindOf = (v, n) => (v.label[n] >= 0 ? v.profile.kinds[v.label[n]] : GROUP);
	const whereOf = (v, n) => {
		const l = v.label[n];
		if (l >= 0)
			return v.profile.modules[l];
		return l <= -2 ? v.groups[-2 - l].where : "";
	};

	// "/src/a.c:7" or, of a function with several lines, "/src/a.c:7 (80 %), :8 (15 %), …"
	function linesText(p, label) {
		const lines = p.lines[label];
		if (!lines)
			return "";
		const one = (l) => (l.line ? ":" + l.line : ":?");
		if (lines.length === 1)
			return lines[0].file + (lines[0].line ? one(lines[0]) : "");
		let rest = 1;
		const parts = lines.map((l, i) => {
			rest -= l.share;
			return `${i && l.file === lines[i - 1].file ? "" : l.file}${one(l)} (${Math.round(100 * l.share)} %)`;
		});
		return parts.join(", ") + (rest > 1e-9 ? ", …" : "");
	}

	// "a.c:7": where the label's frames are most often.
	function hottestLine(p, label) {
		const l = p.lines[label] && p.lines[label][0];
		return l ? l.file.replace(/^.*\/(?=.)/, "") + (l.line ? ":" + l.line : "") : "";
	}

	function pathOf(v, n) {
		const path = [];
		for (; n >= 0; n = v.parent[n])
			path.push(n);
		return path.reverse();
	}

	// A test for names, or null for no search. Throws SyntaxError on a wrong expression.
	function matcher(query, isRegex) {
		if (query === "")
			return null;
		if (isRegex) {
			const re = new RegExp(query, "i");
			return (name) => re.test(name);
		}
		if (query.length > 2 && query.startsWith('"') && query.endsWith('"')) {
			const exact = query.slice(1, -1);
			return (name) => name === exact;
		}
		const lower = query.toLowerCase();
		return (name) => name.toLowerCase().includes(lower);
	}

	// Marks matching nodes. covered: the node's samples all have a match (at it or above).
	function search(v, test) {
		const hitLabel = v.profile.names.map(test);
		const hitGroup = v.groups.map((g) => test(g.name));
		const hit = new Uint8Array(v.cnt), covered = new Uint8Array(v.cnt);
		for (let i = 1; i < v.cnt; i++) {
			const l = v.label[i];
			hit[i] = (l >= 0 ? hitLabel[l] : hitGroup[-2 - l]) ? 1 : 0;
			covered[i] = hit[i] | covered[v.parent[i]];
		}
		return {hit, covered};
	}

	const isWithin = (v, n, zoom) => v.depth[n] >= v.depth[zoom] && v.x[n] >= v.x[zoom] &&
		v.x[n] + v.total[n] <= v.x[zoom] + v.total[zoom];

	// Matching nodes below zoom that have no match above them, largest first.
	function outermostMatches(v, found, zoom) {
		const list = [];
		for (let i = 1; i < v.cnt; i++)
			if (found.hit[i] && !found.covered[v.parent[i]] && isWithin(v, i, zoom))
				list.push(i);
		return list.sort((a, b) => v.total[b] - v.total[a] || a - b);
	}

	// Samples below zoom with a match: each counted once however many of its frames match.
	function matchedSamples(v, found, zoom) {
		if (found.covered[zoom])
			return v.total[zoom];
		return outermostMatches(v, found, zoom).reduce((sum, n) => sum + v.total[n], 0);
	}

	// Self and total samples of each label below zoom; recursion counts once per sample.
	function hottest(v, zoom, limit, by) {
		const cnt = v.profile.names.length;
		const self = new Float64Array(cnt), total = new Float64Array(cnt);
		const onPath = new Int32Array(cnt);
		const path = [];
		for (let at = 0; at < v.cnt; at++) {
			const n = v.preorder[at];
			while (path.length && v.depth[path[path.length - 1]] >= v.depth[n])
				onPath[v.label[path.pop()]]--;
			if (v.label[n] < 0 || !isWithin(v, n, zoom))
				continue;
			const l = v.label[n];
			self[l] += v.self[n];
			if (onPath[l]++ === 0)
				total[l] += v.total[n];
			path.push(n);
		}
		const list = [];
		for (let l = 0; l < cnt; l++)
			if (total[l])
				list.push({label: l, self: self[l], total: total[l]});
		const other = by === "self" ? "total" : "self";
		list.sort((a, b) => b[by] - a[by] || b[other] - a[other] || v.profile.rank[a.label] - v.profile.rank[b.label]);
		return {rows: list.slice(0, limit), cnt: list.length};
	}

	return {
		KINDS, GROUP, load, groups, view, layout, firstAfter, nodeAt, nameOf, kindOf, whereOf,
		linesText, hottestLine, pathOf, matcher, search, outermostMatches, matchedSamples, hottest, isWithin,
	};
})();
