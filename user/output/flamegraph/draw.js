// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The canvas: draws the part of a view that can be seen. Only as large as the pane, and only
// visible rows and frames of at least half a pixel are looked at, so neither the depth of the
// stacks nor their number makes it slow.
"use strict";

const Draw = (() => {
	const ROW = 20; // CSS pixels
	const PAD = 5;
	const MIN_WIDTH = 0.5; // narrower frames become part of a sliver
	const MIN_TEXT = 24;
	const FONT = '12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';
	const ITALIC = "italic " + FONT;

	// Hue, saturation, lightness. The hues are those of Okabe and Ito, which people with any
	// kind of colour vision tell apart; inlined frames are in italics as well.
	const LIGHT = {
		user: [38, 90, 66], kernel: [203, 68, 66], jit: [163, 48, 58], inlined: [326, 50, 80],
		unknown: [0, 0, 74], group: [220, 16, 86],
		text: "#16191d", hit: "#c2185b", hitText: "#ffffff", spread: 9,
		outline: "#000000",
	};
	const DARK = {
		user: [33, 72, 34], kernel: [207, 55, 40], jit: [165, 60, 26], inlined: [322, 32, 43],
		unknown: [0, 0, 38], group: [218, 14, 28],
		text: "#f3f5f8", hit: "#ff5c9a", hitText: "#16090f", spread: 6,
		outline: "#ffffff",
	};

	const darkQuery = window.matchMedia("(prefers-color-scheme: dark)");
	const theme = () => (darkQuery.matches ? DARK : LIGHT);

	function hash(text) {
		let h = 0x811c9dc5;
		for (let i = 0; i < text.length; i++)
			h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
		return (h ^ (h >>> 15)) >>> 0;
	}

	const hsl = ([h, s, l]) => `hsl(${h} ${s}% ${l}%)`;

	// The same name has the same colour in every report: near its kind's own.
	function colourOf(kind, name) {
		const [h, s, l] = theme()[kind];
		if (kind === Model.GROUP)
			return hsl([h, s, l]);
		const n = hash(name);
		return hsl([h + ((n & 0xff) / 255 - 0.5) * 14, s, l + (((n >> 8) & 0xff) / 255 - 0.5) * theme().spread]);
	}

	const colours = new Map(); // by label; groups share one
	function frameColour(view, n) {
		const label = Math.max(view.label[n], -1);
		let c = colours.get(label);
		if (!c)
			colours.set(label, c = colourOf(label < 0 ? Model.GROUP : Model.kindOf(view, n), Model.nameOf(view, n)));
		return c;
	}

	// "std::vector<int, alloc<int> >::at(unsigned long) const" -> "std::vector<…>::at(…) const"
	function shorten(name) {
		if (name.includes("operator"))
			return name;
		let out = "", depth = 0;
		for (let i = 0; i < name.length; i++) {
			const c = name[i];
			const opens = c === "<" || c === "(";
			const closes = (c === ">" && name[i - 1] !== "-") || c === ")";
			if (closes && depth > 0 && --depth === 0 && name[i - 1] !== "(")
				out += "…";
			if (depth === 0)
				out += c;
			if (opens)
				depth++;
		}
		return depth === 0 ? out : name;
	}

	const shortNames = new Map();
	function shortName(view, n) {
		const name = Model.nameOf(view, n);
		if (view.label[n] < 0)
			return name; // "nginx (42)": the number is what matters
		let s = shortNames.get(name);
		if (s === undefined)
			shortNames.set(name, s = shorten(name));
		return s;
	}

	const isAscii = (s) => /^[\x20-\x7e…]*$/.test(s);
	const widthOf = (g, s) => (isAscii(s) ? s.length * g.charWidth : g.ctx.measureText(s).width);

	// As much of the name as fits into width, or "".
	function fit(g, n, width) {
		const name = Model.nameOf(g.view, n);
		if (widthOf(g, name) <= width)
			return name;
		const s = shortName(g.view, n);
		if (widthOf(g, s) <= width)
			return s;
		let len = Math.floor(width / g.charWidth) - 1;
		while (len > 1 && widthOf(g, s.slice(0, len) + "…") > width)
			len--;
		return len > 1 ? s.slice(0, len) + "…" : "";
	}

	function create(pane, space, canvas) {
		return {
			pane, space, canvas, ctx: canvas.getContext("2d"), width: 0, height: 0, charWidth: 7,
			view: null, zoom: 0, x: 0, w: 1, icicle: false, found: null, hitSums: null, hover: -1, picked: -1,
		};
	}

	const rowCount = (g) => g.view.deepest[g.zoom] + 1;
	const rowTop = (g, depth) => (g.icicle ? depth : rowCount(g) - 1 - depth) * ROW;
	const rowAt = (g, y) => {
		const row = Math.floor(y / ROW);
		return g.icicle ? row : rowCount(g) - 1 - row;
	};

	// Fits the scrolled space to the rows and the canvas to the pane and the screen's pixels.
	function resize(g) {
		const all = rowCount(g) * ROW;
		g.space.style.height = all + "px";
		g.width = g.space.clientWidth;
		g.height = Math.max(ROW, Math.min(g.pane.clientHeight, all));
		const ratio = window.devicePixelRatio || 1;
		const w = Math.max(1, Math.round(g.width * ratio)), h = Math.round(g.height * ratio);
		g.canvas.style.height = g.height + "px";
		if (g.canvas.width !== w || g.canvas.height !== h) {
			g.canvas.width = w;
			g.canvas.height = h;
		}
		g.ratio = ratio;
		g.ctx.font = FONT;
		g.charWidth = g.ctx.measureText("M".repeat(50)).width / 50;
	}

	// hitSums[depth][i]: matches left of row's node i, to ask whether a sliver holds any.
	function setFound(g, found) {
		g.found = found;
		g.hitSums = found && g.view.rows.map((row) => {
			const sums = new Int32Array(row.length + 1);
			for (let i = 0; i < row.length; i++)
				sums[i + 1] = sums[i] + found.hit[row[i]];
			return sums;
		});
	}

	const snap = (g, x) => Math.round(x * g.ratio) / g.ratio;

	function drawText(g, n, left, width, y, colour) {
		const text = fit(g, n, width - 2 * PAD);
		if (!text)
			return;
		const italic = Model.kindOf(g.view, n) === "inlined";
		if (italic)
			g.ctx.font = ITALIC;
		g.ctx.fillStyle = colour;
		g.ctx.fillText(text, left + PAD, y + ROW / 2 + 0.5);
		if (italic)
			g.ctx.font = FONT;
	}

	function outline(g, left, width, y, thick) {
		g.ctx.globalAlpha = 1;
		g.ctx.strokeStyle = theme().outline;
		g.ctx.lineWidth = thick;
		g.ctx.strokeRect(left + thick / 2, y + thick / 2, Math.max(1, width - 1 - thick), ROW - 1 - thick);
	}

	function drawFrame(g, n, depth, left, width, y) {
		const t = theme();
		const hit = g.found && g.found.hit[n];
		let alpha = depth < g.view.depth[g.zoom] ? 0.55 : 1;
		if (g.found && !hit)
			alpha *= 0.38;
		g.ctx.globalAlpha = alpha;
		g.ctx.fillStyle = hit ? t.hit : frameColour(g.view, n);
		g.ctx.fillRect(left, y, width > 4 ? width - 1 : width, ROW - 1);
		if (width >= MIN_TEXT) {
			g.ctx.globalAlpha = g.found && !hit ? 0.7 : Math.max(alpha, 0.8);
			drawText(g, n, left, width, y, hit ? t.hitText : t.text);
		}
		if (n === g.picked || n === g.hover)
			outline(g, left, width, y, n === g.picked ? 2 : 1);
	}

	function drawSliver(g, depth, from, to, left, y) {
		const sums = g.hitSums && g.hitSums[depth];
		const hit = sums && sums[to] > sums[from];
		g.ctx.globalAlpha = hit ? 1 : sums ? 0.2 : 0.6;
		g.ctx.fillStyle = hit ? theme().hit : frameColour(g.view, g.view.rows[depth][from]);
		g.ctx.fillRect(left, y, 1, ROW - 1);
	}

	function drawRow(g, depth, y) {
		const v = g.view, row = v.rows[depth];
		const scale = g.width / g.w, end = g.x + g.w;
		for (let i = Model.firstAfter(v, row, g.x); i < row.length; i++) {
			const n = row[i];
			if (v.x[n] >= end)
				break;
			const left = (Math.max(v.x[n], g.x) - g.x) * scale;
			const right = (Math.min(v.x[n] + v.total[n], end) - g.x) * scale;
			if (right - left < MIN_WIDTH) {
				const pixel = Math.floor(left);
				const next = Math.max(i + 1, Model.firstAfter(v, row, g.x + (pixel + 1) / scale));
				drawSliver(g, depth, i, next, pixel, y);
				i = next - 1;
				continue;
			}
			const l = snap(g, left);
			drawFrame(g, n, depth, l, Math.max(snap(g, right) - l, 1 / g.ratio), y);
		}
	}

	function draw(g) {
		const top = Math.max(0, Math.min(g.pane.scrollTop, rowCount(g) * ROW - g.height));
		g.ctx.setTransform(g.ratio, 0, 0, g.ratio, 0, 0);
		g.ctx.globalAlpha = 1;
		g.ctx.clearRect(0, 0, g.width, g.height);
		g.ctx.font = FONT;
		g.ctx.textBaseline = "middle";
		for (let r = Math.floor(top / ROW); r * ROW < top + g.height && r < rowCount(g); r++) {
			const depth = g.icicle ? r : rowCount(g) - 1 - r;
			drawRow(g, depth, r * ROW - top);
		}
		g.ctx.globalAlpha = 1;
	}

	// The node at a point of the window, or -1.
	function nodeAt(g, clientX, clientY) {
		const box = g.space.getBoundingClientRect();
		if (clientX < box.left || clientX >= box.right)
			return -1;
		const x = g.x + ((clientX - box.left) / g.width) * g.w;
		return Model.nodeAt(g.view, rowAt(g, clientY - box.top), x);
	}

	// Where a node is drawn, in pixels of the window.
	function boxOf(g, n) {
		const box = g.space.getBoundingClientRect();
		const scale = g.width / g.w;
		const left = (Math.max(g.view.x[n], g.x) - g.x) * scale;
		const right = (Math.min(g.view.x[n] + g.view.total[n], g.x + g.w) - g.x) * scale;
		return {left: box.left + left, right: box.left + right, top: box.top + rowTop(g, g.view.depth[n])};
	}

	function scrollTo(g, n) {
		const top = rowTop(g, g.view.depth[n]);
		if (top < g.pane.scrollTop)
			g.pane.scrollTop = top - ROW;
		else if (top + ROW > g.pane.scrollTop + g.height)
			g.pane.scrollTop = top + 2 * ROW - g.height;
	}

	// The zoomed frame with its nearest callers at the edge that the graph grows from.
	function scrollToZoom(g) {
		const near = rowTop(g, Math.max(0, g.view.depth[g.zoom] - 3));
		g.pane.scrollTop = g.icicle ? near : near + ROW - g.height;
	}

	return {
		ROW, darkQuery, create, resize, setFound, draw, nodeAt, boxOf, scrollTo, scrollToZoom, shortName,
		kindColour: (kind) => hsl(theme()[kind]),
		forgetColours: () => colours.clear(),
	};
})();
