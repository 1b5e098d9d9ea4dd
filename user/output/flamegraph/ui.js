// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Controls, keys, tool tip, table, and the state in the address (#…), which survives a reload
// and can be sent to somebody who has the file.
"use strict";

const Ui = (() => {
	const HOT_ROWS = 50;
	const FILTER_ROWS = 2000;
	const ZOOM_MS = 140;
	const CRUMBS = 7;
	const KIND_NAMES = {
		user: "user", kernel: "kernel", jit: "JIT", inlined: "inlined", unknown: "unknown", group: "",
	};

	const el = (id) => document.getElementById(id);
	const number = new Intl.NumberFormat("en-US");
	const count = (n) => number.format(n);
	const percent = (part, whole) => (whole ? (100 * part) / whole : 0).toFixed(2) + " %";
	const noMotion = window.matchMedia("(prefers-reduced-motion: reduce)");

	let profile, view, g; // g: see Draw.create
	const state = {
		mode: "all", filter: null, zoom: 0, query: "", regex: false, icicle: false, byName: false,
		hot: false, hotBy: "self",
	};
	let frameAsked = false;
	let animation = 0;

	// ---- state in the address

	function readHash() {
		const h = new URLSearchParams(location.hash.slice(1));
		const mode = h.get("split");
		state.mode = mode === "process" || mode === "thread" ? mode : "all";
		state.filter = h.get("show");
		state.zoom = parseInt(h.get("zoom"), 10) || 0;
		state.query = h.get("search") || "";
		state.regex = h.has("regex");
		state.icicle = h.has("icicle");
		state.byName = h.has("byname");
		state.hot = h.has("hot");
		state.hotBy = h.get("hot") === "total" ? "total" : "self";
	}

	function hashOfState() {
		const h = new URLSearchParams();
		if (state.mode !== "all")
			h.set("split", state.mode);
		if (state.filter !== null)
			h.set("show", state.filter);
		if (state.zoom)
			h.set("zoom", state.zoom);
		if (state.query)
			h.set("search", state.query);
		for (const [key, on] of [["regex", state.regex], ["icicle", state.icicle], ["byname", state.byName]])
			if (on)
				h.set(key, "1");
		if (state.hot)
			h.set("hot", state.hotBy);
		return "#" + h.toString();
	}

	// steps: the Back button returns to the state before.
	function saveState(steps) {
		const hash = hashOfState();
		if (hash === (location.hash || "#"))
			return;
		try {
			history[steps ? "pushState" : "replaceState"](null, "", hash);
		} catch (e) {
			// Some browsers forbid it for files: the state is then not kept.
		}
	}

	// ---- drawing

	function askFrame() {
		if (frameAsked)
			return;
		frameAsked = true;
		requestAnimationFrame(() => {
			frameAsked = false;
			if (!state.hot)
				Draw.draw(g);
		});
	}

	function resize() {
		if (state.hot)
			return;
		Draw.resize(g);
		Draw.draw(g); // now: resizing cleared the canvas, and a frame later it would have flickered
	}

	function showRange(x, w) {
		g.x = x;
		g.w = w;
		askFrame();
	}

	function animateTo(x, w) {
		const from = {x: g.x, w: g.w}, start = performance.now(), mine = ++animation;
		const step = (now) => {
			if (mine !== animation)
				return;
			const t = Math.min(1, Math.max(0, (now - start) / ZOOM_MS));
			const ease = 1 - (1 - t) * (1 - t);
			showRange(from.x + (x - from.x) * ease, from.w + (w - from.w) * ease);
			if (t < 1)
				requestAnimationFrame(step);
		};
		requestAnimationFrame(step);
	}

	// ---- the view

	function rebuild() {
		view = Model.view(profile, state.mode, state.filter);
		state.filter = view.filter;
		Model.layout(view, state.byName);
		g.view = view;
		g.icicle = state.icicle;
		g.hover = g.picked = -1;
		Draw.forgetColours();
		if (state.zoom < 0 || state.zoom >= view.cnt)
			state.zoom = 0;
		fillFilter();
		applyZoom(false);
		applySearch();
		describe();
	}

	function applyZoom(smooth) {
		const z = state.zoom;
		g.zoom = z;
		Draw.resize(g);
		Draw.resize(g); // the pane shrinks or grows with its rows: once more for its new height
		Draw.scrollToZoom(g);
		if (smooth && !noMotion.matches) {
			animateTo(view.x[z], view.total[z]);
		} else {
			animation++;
			showRange(view.x[z], view.total[z]);
		}
		el("reset").disabled = z === 0;
		showCrumbs();
		showFound();
		fillHot();
	}

	function zoomTo(n) {
		if (n < 0)
			return;
		hideTip();
		state.zoom = n;
		applyZoom(true);
		saveState(true);
	}

	function showCrumbs() {
		let path = Model.pathOf(view, state.zoom);
		const crumbs = el("crumbs");
		const gap = path.length > CRUMBS;
		if (gap)
			path = path.slice(0, 2).concat(path.slice(2 - CRUMBS));
		crumbs.replaceChildren();
		path.forEach((n, i) => {
			if (i)
				crumbs.append(gap && i === 2 ? "› … ›" : "›");
			const b = document.createElement("button");
			b.textContent = Draw.shortName(view, n);
			b.title = Model.nameOf(view, n);
			if (b.textContent.length < 12)
				b.style.flexShrink = 0;
			if (n === state.zoom)
				b.setAttribute("aria-current", "true");
			b.addEventListener("click", () => zoomTo(n));
			crumbs.append(b);
		});
	}

	function fillFilter() {
		const filter = el("filter");
		const what = {all: "all commands", process: "all processes", thread: "all threads"}[state.mode];
		filter.replaceChildren(new Option(`${what} (${count(view.groups.length)})`, ""));
		for (const group of view.groups.slice(0, FILTER_ROWS))
			filter.add(new Option(`${group.name} – ${percent(group.total, profile.samples)}`, "=" + group.key));
		filter.value = state.filter === null ? "" : "=" + state.filter;
	}

	function describe() {
		const names = Model.hottest(view, 0, 5, "self").rows
			.map((r) => `${profile.names[r.label]} ${percent(r.self, view.total[0])}`);
		el("summary").textContent = `Flame graph of ${count(view.total[0])} samples in ` +
			`${count(view.groups.length)} roots. Hottest by self: ${names.join(", ")}.`;
	}

	// ---- search

	function applySearch() {
		let test = null;
		el("search").classList.remove("wrong");
		g.error = "";
		try {
			test = Model.matcher(state.query, state.regex);
		} catch (e) {
			g.error = "not a regular expression";
			el("search").classList.add("wrong");
		}
		Draw.setFound(g, test && Model.search(view, test));
		showFound();
		askFrame();
	}

	function showFound() {
		const found = el("found");
		found.classList.toggle("wrong", Boolean(g.error));
		if (g.error || !g.found) {
			found.textContent = g.error || "";
			return;
		}
		const matched = Model.matchedSamples(view, g.found, state.zoom);
		const whole = view.total[state.zoom];
		found.textContent = percent(matched, whole) + " matched" + (state.zoom ? " (of zoomed)" : "");
		found.title = `${count(matched)} of ${count(whole)} samples have a matching frame`;
	}

	// Enter in the search: the largest match, then the next largest, …
	function pickNextMatch() {
		if (!g.found || state.hot)
			return;
		const list = Model.outermostMatches(view, g.found, state.zoom);
		const next = (list.indexOf(g.picked) + 1) % (list.length || 1);
		pick(list[next]);
	}

	function setSearch(query, isRegex) {
		state.query = query;
		state.regex = isRegex;
		showControls();
		applySearch();
		saveState(false);
	}

	// ---- numbers of a frame

	function seconds(n) {
		return profile.freq ? `≈ ${(n / profile.freq).toFixed(2)} s CPU` : "";
	}

	function whereText(n) {
		const kind = KIND_NAMES[Model.kindOf(view, n)], where = Model.whereOf(view, n);
		return [where, kind].filter(Boolean).join(" · ");
	}

	// Of all the frames of that function in the profile, not of the one at this place alone.
	function lineText(n) {
		const lines = Model.linesText(profile, view.label[n]);
		return lines && `at ${lines}`;
	}

	function frameText(n) {
		return `${count(view.total[n])} samples, ${percent(view.total[n], view.total[0])}` +
			(state.zoom ? ` (${percent(view.total[n], view.total[state.zoom])} of the zoomed part)` : "") +
			`, self ${percent(view.self[n], view.total[0])}`;
	}

	function row(...cells) {
		const tr = document.createElement("tr");
		for (const text of cells) {
			const td = document.createElement("td");
			td.textContent = text;
			tr.append(td);
		}
		return tr;
	}

	function fillTip(n) {
		const name = document.createElement("b"), where = document.createElement("div");
		const lines = document.createElement("div");
		const table = document.createElement("table");
		const within = state.zoom && view.depth[n] >= view.depth[state.zoom];
		const share = (x) => (within ? [percent(x, view.total[state.zoom])] : []);
		name.textContent = Model.nameOf(view, n);
		where.className = "where";
		where.textContent = whereText(n);
		lines.className = "where";
		lines.textContent = lineText(n);
		table.append(row("", "samples", "of all", ...(within ? ["of zoomed"] : []), ""));
		for (const [what, x] of [["total", view.total[n]], ["self", view.self[n]]])
			table.append(row(what, count(x), percent(x, view.total[0]), ...share(x), seconds(x)));
		el("tip").replaceChildren(name, where, lines, table);
	}

	function placeTip(x, y) {
		const tip = el("tip");
		const right = x + 14 + tip.offsetWidth > window.innerWidth;
		const below = y + 18 + tip.offsetHeight > window.innerHeight;
		tip.style.left = Math.max(4, right ? x - 10 - tip.offsetWidth : x + 14) + "px";
		tip.style.top = Math.max(4, below ? y - 12 - tip.offsetHeight : y + 18) + "px";
	}

	function showTip(n, x, y) {
		if (n !== g.hover || el("tip").hidden)
			fillTip(n);
		el("tip").hidden = false;
		placeTip(x, y);
	}

	function hideTip() {
		el("tip").hidden = true;
		if (g.hover >= 0) {
			g.hover = -1;
			askFrame();
		}
	}

	function showInfo(n) {
		const name = document.createElement("b");
		name.textContent = Draw.shortName(view, n);
		name.title = Model.nameOf(view, n);
		const line = Model.hottestLine(profile, view.label[n]);
		el("info-text").replaceChildren(name, ` ${line ? line + " · " : ""}${whereText(n)} · ${frameText(n)}`);
	}

	function pick(n) {
		if (n === undefined || n < 0)
			return;
		g.picked = n;
		el("copy").hidden = false;
		Draw.scrollTo(g, n);
		showInfo(n);
		el("spoken").textContent = `${Model.nameOf(view, n)}, ${whereText(n)}, ${frameText(n)}`;
		askFrame();
	}

	async function copyName(n) {
		const name = Model.nameOf(view, n);
		try {
			await navigator.clipboard.writeText(name);
		} catch (e) {
			copyOldWay(name);
		}
		el("info-text").textContent = `Copied: ${name}`;
	}

	function copyOldWay(text) {
		const area = document.createElement("textarea");
		area.value = text;
		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
	}

	// ---- the table

	function swatch(kind) {
		const i = document.createElement("i");
		i.style.background = Draw.kindColour(kind);
		return i;
	}

	function numberCell(n, whole) {
		const td = document.createElement("td"), small = document.createElement("small");
		td.className = "num";
		small.textContent = count(n);
		td.append(percent(n, whole), small);
		return td;
	}

	function hotRow(hot, whole) {
		const tr = document.createElement("tr"), b = document.createElement("button");
		const kind = profile.kinds[hot.label];
		const cells = ["name", "soft", "kind"].map((name) => {
			const td = document.createElement("td");
			td.className = name;
			return td;
		});
		b.textContent = profile.names[hot.label];
		b.title = "Show where it is in the flame graph";
		b.addEventListener("click", () => {
			showTab(false);
			setSearch(`"${profile.names[hot.label]}"`, false);
		});
		cells[0].append(b);
		cells[1].textContent = [profile.modules[hot.label], Model.hottestLine(profile, hot.label)].filter(Boolean).join(" · ");
		cells[1].title = Model.linesText(profile, hot.label);
		cells[2].append(swatch(kind), KIND_NAMES[kind]);
		tr.append(numberCell(hot.self, whole), numberCell(hot.total, whole), ...cells);
		return tr;
	}

	function fillHot() {
		if (!state.hot)
			return;
		const whole = view.total[state.zoom];
		const hot = Model.hottest(view, state.zoom, HOT_ROWS, state.hotBy);
		const part = state.zoom ? `below ${Model.nameOf(view, state.zoom)}` : "of what is shown";
		el("hot-caption").textContent = `${count(hot.rows.length)} of ${count(hot.cnt)} functions, ` +
			`percent of the ${count(whole)} samples ${part}. Total counts a recursive function once per sample.`;
		el("hot-rows").replaceChildren(...hot.rows.map((h) => hotRow(h, whole)));
		for (const by of ["self", "total"])
			el("by-" + by).parentNode.setAttribute("aria-sort", by === state.hotBy ? "descending" : "none");
	}

	function showTab(hot) {
		state.hot = hot;
		hideTip();
		showControls();
		fillHot();
		if (!hot)
			applyZoom(false);
		saveState(false);
	}

	// ---- controls

	function showControls() {
		el("mode").value = state.mode;
		el("order").setAttribute("aria-pressed", state.byName);
		el("flip").setAttribute("aria-pressed", state.icicle);
		el("regex").setAttribute("aria-pressed", state.regex);
		if (el("search").value !== state.query)
			el("search").value = state.query;
		el("tab-graph").setAttribute("aria-selected", !state.hot);
		el("tab-hot").setAttribute("aria-selected", state.hot);
		el("graph").hidden = state.hot;
		el("hot").hidden = !state.hot;
		for (const b of document.querySelectorAll(".graph-only"))
			b.hidden = state.hot;
	}

	function showLegend() {
		const used = Model.KINDS.filter((k) => profile.kinds.includes(k));
		el("legend").replaceChildren(...used.map((kind) => {
			const li = document.createElement("li");
			li.append(swatch(kind), KIND_NAMES[kind]);
			if (kind === "inlined")
				li.style.fontStyle = "italic";
			return li;
		}));
	}

	// Every control that changes what is shown ends here.
	function changeView(change) {
		Object.assign(state, change);
		showControls();
		rebuild();
		saveState(true);
	}

	function escape() {
		if (!el("tip").hidden && g.hover >= 0)
			hideTip();
		if (document.activeElement === el("search") && state.query)
			setSearch("", state.regex);
		else if (state.zoom)
			zoomTo(0);
		else if (state.query)
			setSearch("", state.regex);
		g.picked = -1;
		el("copy").hidden = true;
		askFrame();
	}

	// ---- keys

	function widest(n) {
		const kids = view.kids;
		let best = -1;
		for (let i = kids.first[n]; i < kids.first[n + 1]; i++)
			if (best < 0 || view.total[kids.list[i]] > view.total[best])
				best = kids.list[i];
		return best;
	}

	function beside(n, step) {
		const row = view.rows[view.depth[n]];
		const next = row[Model.firstAfter(view, row, view.x[n]) + step];
		const shown = next !== undefined && view.x[next] < g.x + g.w && view.x[next] + view.total[next] > g.x;
		return shown ? next : n;
	}

	function paneKey(key) {
		const at = g.picked >= 0 ? g.picked : state.zoom;
		const up = state.icicle ? "ArrowDown" : "ArrowUp", down = state.icicle ? "ArrowUp" : "ArrowDown";
		if (g.picked < 0 && key.startsWith("Arrow"))
			pick(at);
		else if (key === up)
			pick(widest(at));
		else if (key === down)
			pick(view.parent[at]);
		else if (key === "ArrowLeft")
			pick(beside(at, -1));
		else if (key === "ArrowRight")
			pick(beside(at, 1));
		else if (key === "Enter" || key === " ")
			zoomTo(at);
		else if (key === "Backspace")
			zoomTo(view.parent[state.zoom]);
		else if (key === "c")
			copyName(at);
		else
			return false;
		return true;
	}

	function onKey(event) {
		const typing = ["INPUT", "SELECT"].includes(event.target.tagName);
		if (event.ctrlKey || event.metaKey || event.altKey)
			return;
		if (event.key === "Escape") {
			escape();
		} else if (event.target === el("search") && event.key === "Enter") {
			pickNextMatch();
		} else if (typing) {
			return;
		} else if (event.key === "/") {
			el("search").focus();
			el("search").select();
		} else if (event.key === "i" && !state.hot) {
			changeView({icicle: !state.icicle});
		} else if (event.target !== el("pane") || !paneKey(event.key)) {
			return;
		}
		event.preventDefault();
	}

	// ---- mouse

	function onMove(event) {
		const n = Draw.nodeAt(g, event.clientX, event.clientY);
		if (n < 0) {
			hideTip();
			return;
		}
		showTip(n, event.clientX, event.clientY);
		if (n !== g.hover) {
			g.hover = n;
			askFrame();
		}
	}

	function onClick(event) {
		const n = Draw.nodeAt(g, event.clientX, event.clientY);
		if (n < 0)
			return;
		g.picked = n;
		el("copy").hidden = false;
		showInfo(n);
		if (event.ctrlKey || event.metaKey)
			copyName(n);
		else
			zoomTo(n);
	}

	function listen() {
		const on = (id, event, f) => el(id).addEventListener(event, f);
		on("canvas", "mousemove", onMove);
		on("canvas", "mouseleave", hideTip);
		on("canvas", "click", onClick);
		on("pane", "scroll", () => { hideTip(); askFrame(); });
		on("mode", "change", (e) => changeView({mode: e.target.value, filter: null, zoom: 0}));
		on("filter", "change", (e) => changeView({filter: e.target.value ? e.target.value.slice(1) : null, zoom: 0}));
		on("order", "click", () => changeView({byName: !state.byName}));
		on("flip", "click", () => changeView({icicle: !state.icicle}));
		on("reset", "click", () => zoomTo(0));
		on("search", "input", (e) => setSearch(e.target.value, state.regex));
		on("regex", "click", () => setSearch(state.query, !state.regex));
		on("copy", "click", () => copyName(g.picked));
		on("tab-graph", "click", () => showTab(false));
		on("tab-hot", "click", () => showTab(true));
		for (const by of ["self", "total"])
			on("by-" + by, "click", () => { state.hotBy = by; fillHot(); saveState(false); });
		document.addEventListener("keydown", onKey);
		window.addEventListener("popstate", restore);
		Draw.darkQuery.addEventListener("change", () => { Draw.forgetColours(); showLegend(); fillHot(); askFrame(); });
		new ResizeObserver(resize).observe(el("pane"));
		new ResizeObserver(resize).observe(el("graph"));
	}

	function restore() {
		readHash();
		showControls();
		rebuild();
	}

	function start() {
		profile = Model.load(el("data").textContent);
		if (!profile.samples)
			return;
		el("app").hidden = false;
		g = Draw.create(el("pane"), el("space"), el("canvas"));
		showLegend();
		restore();
		listen();
	}

	start();
	return {
		state, zoomTo, setSearch, changeView, showTab,
		get view() { return view; },
		get graph() { return g; },
	};
})();
