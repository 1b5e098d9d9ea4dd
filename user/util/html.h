/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text that goes into an HTML page. Names come from targets and may be written to attack the
 * reader of a report: whatever these write cannot leave the place it was written to.
 */
#ifndef VP_HTML_H
#define VP_HTML_H

#include <stdio.h>

/*
 * Writes s as the content of an element or of a quoted attribute. Control characters and
 * bytes that are not UTF-8 become U+FFFD. NULL writes nothing.
 */
void vp_html_text(FILE *f, const char *s);

/*
 * Writes s as a JSON string that is safe inside a <script> element: as vp_json_string, and
 * '<', '>', '&', U+2028 and U+2029 are written as \uXXXX. NULL writes null.
 */
void vp_html_json_string(FILE *f, const char *s);

#endif
