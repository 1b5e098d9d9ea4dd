// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Runs inside a report (html_browser.sh puts it at the end of the page, which says what KIND it
// is) and leaves "PASS" or what was wrong in #result.
"use strict";

(() => {
	const wrong = window.pageErrors; // collected from the page's first script on
	const facts = [];

	function same(what, got, want) {
		if (JSON.stringify(got) !== JSON.stringify(want))
			wrong.push(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
	}

	const el = (id) => document.getElementById(id);
	const text = (id) => el(id).textContent;
	const v = () => Ui.view;
	const find = (name) => {
		for (let i = 0; i < v().cnt; i++)
			if (Model.nameOf(v(), i) === name)
				return i;
		return -1;
	};
	const totals = () => v().groups.map((g) => [g.name, g.total]);
	const press = (key, at) => at.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));

	function mouse(type, n, options) {
		const box = Draw.boxOf(Ui.graph, n);
		el("canvas").dispatchEvent(new MouseEvent(type, {
			bubbles: true, clientX: (box.left + box.right) / 2, clientY: box.top + 5, ...options,
		}));
	}

	function settle() { // the end of the zoom's animation
		Ui.graph.x = v().x[Ui.state.zoom];
		Ui.graph.w = v().total[Ui.state.zoom];
	}

	function splits() {
		same("commands", totals(), [["web", 70], ["db", 30]]);
		Ui.changeView({mode: "process", filter: null, zoom: 0});
		same("processes", totals(), [["web (10)", 70], ["db (20)", 30]]);
		Ui.changeView({mode: "thread", filter: null, zoom: 0});
		same("threads", totals(), [["web (10)", 50], ["db (20)", 30], ["web (11)", 20]]);
		same("filter choices", el("filter").options.length, 4);
		Ui.changeView({filter: "11 web"});
		same("one thread", v().total[0], 20);
		same("filter shown", el("filter").value, "=11 web");
		same("address", location.hash, "#split=thread&show=11+web");
		Ui.changeView({mode: "all", filter: null, zoom: 0});
		same("all again", v().total[0], 100);
	}

	function searches() {
		Ui.setSearch("parse", false);
		same("a sample counts once", text("found"), "53.00 % matched");
		Ui.setSearch("^(send|lookup)$", true);
		same("expression", text("found"), "45.00 % matched");
		Ui.setSearch("(", true);
		same("wrong expression", text("found"), "not a regular expression");
		Ui.setSearch("(", false);
		same("plain text", text("found"), "0.00 % matched");
		Ui.setSearch('"ma"', false);
		same("exact, none", text("found"), "0.00 % matched");
		Ui.setSearch('"main"', false);
		same("exact", text("found"), "98.00 % matched");
		same("search in the address", location.hash, "#search=%22main%22");
		Ui.setSearch("", false);
		same("no search", text("found"), "");
	}

	function nextMatches() {
		Ui.setSearch("main", false);
		const got = [1, 2, 3].map(() => {
			press("Enter", el("search"));
			return v().total[Ui.graph.picked];
		});
		same("matches by size", got, [70, 28, 70]);
		Ui.setSearch("", false);
	}

	function addresses() {
		location.hash = "#split=process&show=20&zoom=2&search=%5Eparse%24&regex=1&icicle=1";
		window.dispatchEvent(new PopStateEvent("popstate"));
		same("state of an address", [v().mode, v().total[0], Model.nameOf(v(), Ui.state.zoom), text("found"), Ui.graph.icicle],
			["process", 30, "main", "10.71 % matched (of zoomed)", true]);
		location.hash = "#split=nonsense&show=nobody&zoom=99999&search=";
		window.dispatchEvent(new PopStateEvent("popstate"));
		same("a wrong address shows everything", [v().mode, v().total[0], Ui.state.zoom, text("found")], ["all", 100, 0, ""]);
	}

	function zooms() {
		mouse("mousemove", find("web"));
		same("tip", el("tip").innerText.includes("70.00 %"), true);
		mouse("click", find("web"));
		settle();
		same("zoomed by click", Model.nameOf(v(), Ui.state.zoom), "web");
		Ui.setSearch("parse", false);
		same("percent of zoomed", text("found"), "71.43 % matched (of zoomed)");
		same("crumbs", el("crumbs").innerText.replace(/\s+/g, ""), "all›web");
		mouse("mousemove", find("do_write"));
		same("tip of zoomed", el("tip").innerText.includes("28.57 %"), true);
		same("zoom in the address", location.hash, `#zoom=${Ui.state.zoom}&search=parse`);
		press("Escape", document.body);
		settle();
		same("reset by Escape", [Ui.state.zoom, Ui.state.query], [0, "parse"]);
		press("Escape", document.body);
		same("then the search", Ui.state.query, "");
	}

	function keys() {
		press("/", document.body);
		same("search focused", document.activeElement, el("search"));
		el("pane").focus();
		for (const key of ["ArrowUp", "ArrowUp", "ArrowRight"])
			press(key, el("pane"));
		same("picked by arrows", text("spoken").split(",")[0], "db");
		press("Enter", el("pane"));
		settle();
		same("zoomed by Enter", Model.nameOf(v(), Ui.state.zoom), "db");
		press("i", el("pane"));
		same("icicle keeps the zoom", [Ui.graph.icicle, Model.nameOf(v(), Ui.state.zoom)], [true, "db"]);
		press("Backspace", el("pane"));
		settle();
		press("i", el("pane"));
		same("back out", [Ui.graph.icicle, Ui.state.zoom], [false, 0]);
	}

	function table() {
		Ui.showTab(true);
		const rows = () => [...el("hot-rows").rows].map((r) => [...r.cells].slice(0, 3).map((c) => c.innerText.replace(/\s+/g, " ")));
		same("hottest by self", rows().slice(0, 2), [["53.00 %53", "53.00 %53", "parse"], ["25.00 %25", "25.00 %25", "lookup"]]);
		el("by-total").click();
		same("hottest by total", rows()[0], ["0.00 %0", "98.00 %98", "main"]);
		el("hot-rows").querySelector("button").click();
		same("a row searches", [Ui.state.hot, Ui.state.query, text("found")], [false, '"main"', "98.00 % matched"]);
		Ui.setSearch("", false);
	}

	function sourceLines() {
		mouse("mousemove", find("send"));
		same("line", el("tip").innerText.includes("at /src/send.h:3\n"), true);
		mouse("mousemove", find("parse"));
		same("lines", el("tip").innerText.includes("at /src/parse.c:12 (67 %), :14 (23 %), /src/parse.h:? (10 %)\n"), true);
		mouse("mousemove", find("main"));
		same("no line", el("tip").innerText.includes(" at "), false);
		Ui.showTab(true);
		const cells = [...el("hot-rows").rows].map((r) => r.cells[3].innerText);
		same("in the table", [cells.includes("app · parse.c:12"), cells.includes("app · send.h:3")], [true, true]);
		Ui.showTab(false);
		same("marked as inlined", el("legend").innerText.includes("inlined"), true);
	}

	// Rows must be sorted, without overlaps, and within their parents.
	function places() {
		for (const row of v().rows) {
			let end = 0;
			for (const n of row) {
				const up = v().parent[n];
				if (v().x[n] < end || (n && (v().x[n] < v().x[up] || v().x[n] + v().total[n] > v().x[up] + v().total[up])))
					return wrong.push(`node ${n} is out of place`);
				end = v().x[n] + v().total[n];
			}
		}
		return 0;
	}

	function painted() {
		const c = el("canvas");
		const pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let n = 0;
		for (let i = 3; i < pixels.length; i += 4)
			n += pixels[i] > 0;
		return n / (c.width * c.height);
	}

	/* How long it takes is for a reader of the result: the machine may have other things to do. */
	function timed(what, f, times) {
		const start = performance.now();
		for (let i = 0; i < times; i++)
			f();
		facts.push(`${what} ${((performance.now() - start) / times).toFixed(1)} ms`);
	}

	/* However many frames there are: no more is drawn than there are pixels in the rows in sight. */
	function draws(what, times) {
		const canvas = CanvasRenderingContext2D.prototype, fill = canvas.fillRect;
		let rects = 0;
		canvas.fillRect = function (...args) {
			rects++;
			fill.apply(this, args);
		};
		timed(what, () => Draw.draw(Ui.graph), times);
		canvas.fillRect = fill;
		const inSight = el("canvas").width * (Math.ceil(el("canvas").height / Draw.ROW) + 1);
		facts.push(`${what} ${rects / times} of ${inSight} rectangles`);
		same(`${what}: as much as is in sight`, rects > 0 && rects / times <= inSight, true);
	}

	function big() {
		facts.push(`${v().cnt} frames shown ${(performance.now() - window.pageStart).toFixed(0)} ms after the page's first line`);
		const samples = JSON.parse(text("data")).samples;
		same("stacks", v().profile.stackThread.length, 10000);
		timed("load", () => Model.load(text("data")), 3);
		draws("draw", 10);
		same("painted", painted() > 0.5, true);
		timed("search", () => Ui.setSearch("socket", false), 3);
		timed("view", () => Model.view(v().profile, "thread", null), 3);
		timed("layout", () => Model.layout(v(), false), 3);
		timed("hottest", () => Model.hottest(v(), 0, 50, "self"), 3);
		for (const mode of ["all", "process", "thread"]) {
			timed(`split ${mode}`, () => Ui.changeView({mode, filter: null, zoom: 0}), 1);
			same(`total ${mode}`, v().total[0], samples);
			same(`self ${mode}`, v().self.reduce((a, b) => a + b), samples);
			places();
		}
		Ui.changeView({byName: true});
		places();
		Ui.showTab(true);
		same("fifty rows", el("hot-rows").rows.length, 50);
	}

	function deep() {
		same("rows", v().rows.length, 1152);
		same("space", el("space").offsetHeight, 1152 * Draw.ROW);
		same("opens at its roots", el("pane").scrollTop > 20000, true);
		for (const top of [0, 11111, 99999]) {
			el("pane").scrollTop = top;
			draws("draw deep", 3);
			same("painted", painted() > 0.01, true);
		}
		Ui.zoomTo(700);
		Ui.zoomTo(0);
	}

	function hostile() {
		same("nothing ran", window.owned, undefined);
		same("nothing was made", document.querySelectorAll("img, svg, textarea, #app script").length, 0);
		same("names are whole", find("<\/script><script>window.owned=1<\/script>") > 0, true);
		same("overrides are shown", find("\ufffdgnp.exe") > 0, true);
		for (const mode of ["process", "thread", "all"])
			Ui.changeView({mode, filter: null, zoom: 0});
		for (let n = 0; n < v().cnt; n++) {
			Ui.zoomTo(n);
			settle();
			mouse("mousemove", n);
		}
		Ui.setSearch("__proto__", false);
		Ui.showTab(true);
		same("title", document.title.startsWith("<\/title><script>"), true);
		same("still nothing", document.querySelectorAll("img, svg, textarea, #app script").length, 0);
	}

	function empty() {
		same("says so", el("empty").textContent.startsWith("No samples."), true);
		same("no graph", el("app").hidden, true);
	}

	const checks = {
		known: () => [splits, searches, nextMatches, addresses, zooms, keys, table, sourceLines, places].forEach((f) => f()),
		big, deep, hostile, empty,
	};
	const box = document.createElement("pre");
	try {
		checks[document.documentElement.dataset.kind]();
	} catch (e) {
		wrong.push(String(e.stack));
	}
	same("requests", performance.getEntriesByType("resource").map((r) => r.name), []);
	box.id = "result";
	box.textContent = "\n" + (wrong.length ? "FAIL\n" + wrong.join("\n") : "PASS") + "\n" + facts.join("\n") + "\n";
	document.body.append(box);
})();
