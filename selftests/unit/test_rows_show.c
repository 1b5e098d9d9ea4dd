/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows as text and JSON. */
#include "made_cfi.h"
#include "unwind/show_rows.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

TestSuite(rows_show, .timeout = 10);

static const struct elf_segment segment = {MADE_TEXT_OFFSET, MADE_TEXT, MADE_TEXT_SIZE};

static struct vp_rows *some_rows(void)
{
	struct made_cfi m = {.is_eh = true};
	size_t cie = made_cie(&m);
	struct vp_rows *rows;

	MADE_FDE(&m, cie, 0, 0x10, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16,
		 DW_CFA_offset | 6, 2, DW_CFA_undefined, 3);
	MADE_FDE(&m, cie, 0x20, 0x10, DW_CFA_def_cfa_expression, 5, DW_OP_breg6, 0x78, DW_OP_deref,
		 DW_OP_plus_uconst, 8, DW_CFA_expression, 12, 2, DW_OP_breg6, 0x70);
	MADE_FDE(&m, cie, 0x40, 0x10, DW_CFA_register, 16, 5, DW_CFA_advance_loc | 1,
		 DW_CFA_undefined, 16);
	cr_assert(zero(int, made_compile(&(struct made_image){.eh = &m}, &rows)));
	made_cfi_free(&m);
	return rows;
}

static char *show(size_t segment_cnt, const char *name)
{
	struct vp_rows *rows = some_rows();
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (name)
		vp_show_rows_text(f, rows, &segment, segment_cnt, name);
	else
		vp_show_rows_json(f, rows, &segment, segment_cnt);
	fclose(f);
	vp_rows_free(rows);
	return text;
}

Test(rows_show, text_is_a_header_and_a_line_a_row)
{
	char *text = show(1, "a name");

	cr_expect(eq(
		str, text,
		"# a name: 8 rows, 6 rules from 3 FDEs (0 damaged, 0 of .debug_frame); "
		"0 rows not expressible; in the kernel 3 KiB, 384.00 bytes a row\n"
		"#     offset            address  CFA          rbp    rbx    r12    r13    r14    "
		"r15    ra\n"
		"        1000             401000  rsp+8        u      u      u      u      u      "
		"u      c-8\n"
		"        1001             401001  rsp+16       c-16   lost   u      u      u      "
		"u      c-8\n"
		"        1010             401010  none\n"
		"        1020             401020  *(rbp-8)+8   u      u      rbp-16 u      u      "
		"u      c-8\n"
		"        1030             401030  none\n"
		"        1040             401040  rsp+8        u      u      u      u      u      "
		"u      rdi\n"
		"        1041             401041  end\n"
		"        1050             401050  none\n"));
	free(text);
}

Test(rows_show, offsets_outside_segments_have_no_address)
{
	char *text = show(0, "a name");

	cr_expect(strstr(text, "\n        1000                  -  rsp+8 ") != NULL);
	free(text);
}

Test(rows_show, names_are_printed_safely)
{
	char *text = show(1, "a\033[31m\nname");

	cr_expect(zero(int, strncmp(text, "# a?[31m?name: ", 15)));
	free(text);
}

Test(rows_show, json_is_an_object_a_line)
{
	char *text = show(1, NULL);
	static const char first[] = "{\"offset\":\"0x1000\",\"end\":\"0x1001\",\"address\":"
				    "\"0x401000\",\"rule\":1,\"cfa\":\"rsp+8\",\"rbp\":\"u\",";

	cr_expect(zero(int, strncmp(text, first, sizeof(first) - 1)));
	cr_expect(strstr(text, "\n{\"offset\":\"0x1041\",\"end\":\"0x1050\","
			       "\"address\":\"0x401041\",\"rule\":5,\"cfa\":\"end\","
			       "\"signal\":false}\n") != NULL);
	free(text);
}
