#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Opens reports in a real browser: numbers, zoom, search, split, keys, hostile names, how much is drawn.
set -u

here=$(dirname "$(readlink -f "$0")")
root=$(dirname "$(dirname "$here")")
tmp=$(mktemp -d "${TMPDIR:-/tmp}/html.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
	echo "SKIP: no chromium (apt-get install chromium)"
	exit 77
fi

# from the root: html_asset.c includes files by their path from there
(cd "$root" && gcc -std=gnu11 -D_GNU_SOURCE -O1 -Iinclude -Iuser -o "$tmp/html_report" \
	selftests/e2e/html_report.c user/util/{html,json,utf8,err}.c \
	user/output/{outfile,html,html_data,html_asset}.c) || exit 1

# Puts the check into a report: it must know the page's nonce, as any script that runs there.
instrument() {
	local kind=$1 page=$tmp/$1.html nonce
	nonce=$(sed -n "s/.*script-src 'nonce-\([0-9a-f]*\)'.*/\1/p" "$page" | head -1)
	sed -i "0,/<html /s//<html data-kind=\"$kind\" /" "$page"
	sed -i "0,/<title>/s//<script nonce=\"$nonce\">window.pageErrors = []; window.pageStart = performance.now(); \
addEventListener('error', (e) => pageErrors.push(String(e.message))); \
addEventListener('unhandledrejection', (e) => pageErrors.push(String(e.reason))); \
document.addEventListener('securitypolicyviolation', (e) => pageErrors.push('CSP: ' + e.blockedURI));\
<\/script>\n<title>/" "$page"
	{
		echo "<script nonce=\"$nonce\">"
		cat "$here/html_browser.js"
		echo "</script>"
	} >>"$page"
}

browse() {
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
		--disable-background-networking --disable-component-update --disable-sync \
		--host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$tmp/profile" \
		--window-size=1200,800 --dump-dom "file://$tmp/$1.html" 2>"$tmp/$1.err"
}

failed=0
for kind in known big deep hostile empty; do
	"$tmp/html_report" "$kind" "$tmp/$kind.html" || exit 1
	size=$(stat -c %s "$tmp/$kind.html")
	instrument "$kind"
	browse "$kind" | sed -n '/<pre id="result">/,/<\/pre>/p' >"$tmp/result"
	echo "$kind ($size bytes): $(sed 's/<[^>]*>//g' "$tmp/result" | tr '\n' ' ')"
	if ! grep -q '^PASS' "$tmp/result"; then
		tail -5 "$tmp/$kind.err"
		failed=1
	fi
	if [ "$size" -gt 3000000 ]; then
		echo "$kind: larger than 3 MB"
		failed=1
	fi
done
exit $failed
