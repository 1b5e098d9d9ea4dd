/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "show_rows.h"
#include "arch_x86.h"

#include "util/terminal.h"

#include <inttypes.h>
#include <stdbool.h>

/* The longest: "*(rsp-2147483648)-32768 ". */
#define CELL_BYTES 32

static const char *const slot_names[VP_SAVED_CNT] = ARCH_SLOT_NAMES;

struct row {
	uint64_t offset, end;
	uint64_t address;
	bool has_address;
	uint32_t rule_number;
	const struct vp_rule *rule;
};

static void cfa_cell(char *cell, const struct vp_rule *r)
{
	const char *reg = arch_reg_name(r->reg);

	switch (r->cfa) {
	case VP_CFA_NONE:
		snprintf(cell, CELL_BYTES, "none");
		break;
	case VP_CFA_END:
		snprintf(cell, CELL_BYTES, "end");
		break;
	case VP_CFA_DEREF:
		if (r->cfa_add)
			snprintf(cell, CELL_BYTES, "*(%s%+d)%+d", reg, r->cfa_off, r->cfa_add);
		else
			snprintf(cell, CELL_BYTES, "*(%s%+d)", reg, r->cfa_off);
		break;
	case VP_CFA_CLONE:
		snprintf(cell, CELL_BYTES, "%s%+d|end", reg, r->cfa_off);
		break;
	case VP_CFA_PLT:
		snprintf(cell, CELL_BYTES, "%s%+d,+8@%d", reg, r->cfa_off, r->cfa_add);
		break;
	default:
		snprintf(cell, CELL_BYTES, "%s%+d", reg, r->cfa_off);
	}
}

static void slot_cell(char *cell, const struct vp_rule *r, int slot)
{
	uint8_t base_flag = slot == VP_SAVED_RA ? VP_RULE_F_RA_BASE : VP_RULE_F_SAVED_BASE;
	int16_t saved = r->saved[slot];

	if (slot == VP_SAVED_RA && (r->flags & VP_RULE_F_RA_REG))
		snprintf(cell, CELL_BYTES, "%s", arch_reg_name(r->ra_reg));
	else if (saved == VP_SAVED_SAME)
		snprintf(cell, CELL_BYTES, "u");
	else if (saved == VP_SAVED_LOST)
		snprintf(cell, CELL_BYTES, "lost");
	else
		snprintf(cell, CELL_BYTES, "%s%+d",
			 r->flags & base_flag ? arch_reg_name(r->reg) : "c", saved * 8);
}

static bool has_registers(const struct vp_rule *r)
{
	return r->cfa != VP_CFA_NONE && r->cfa != VP_CFA_END;
}

static bool find_address(const struct elf_segment *s, size_t cnt, uint64_t offset,
			 uint64_t *address)
{
	for (size_t i = 0; i < cnt; i++) {
		if (offset >= s[i].offset && offset - s[i].offset < s[i].filesz) {
			*address = offset - s[i].offset + s[i].vaddr;
			return true;
		}
	}
	return false;
}

static struct row get_row(const struct vp_rows *rows, uint32_t i, const struct elf_segment *s,
			  size_t cnt)
{
	struct row row = {
		.offset = rows->base + rows->key[i],
		.end = rows->base + (i + 1 < rows->cnt ? rows->key[i + 1] : rows->span),
		.rule_number = rows->rule[i],
		.rule = &rows->rules[rows->rule[i]],
	};

	row.has_address = find_address(s, cnt, row.offset, &row.address);
	return row;
}

static void print_text(FILE *out, const struct row *row)
{
	char cell[CELL_BYTES];

	fprintf(out, "%12" PRIx64 " ", row->offset);
	if (row->has_address)
		fprintf(out, "%18" PRIx64 "  ", row->address);
	else
		fprintf(out, "%18s  ", "-");
	cfa_cell(cell, row->rule);
	if (!has_registers(row->rule)) {
		fprintf(out, "%s\n", cell);
		return;
	}
	fprintf(out, "%-12s", cell);
	for (int slot = 0; slot < VP_SAVED_CNT; slot++) {
		slot_cell(cell, row->rule, slot);
		fprintf(out, slot < VP_SAVED_CNT - 1 ? " %-6s" : " %s", cell);
	}
	fputs(row->rule->flags & VP_RULE_F_SIGNAL ? " signal\n" : "\n", out);
}

/* Every string here is of our own making: nothing to escape. */
static void print_json(FILE *out, const struct row *row)
{
	char cell[CELL_BYTES];

	fprintf(out,
		"{\"offset\":\"0x%" PRIx64 "\",\"end\":\"0x%" PRIx64 "\",\"address\":", row->offset,
		row->end);
	if (row->has_address)
		fprintf(out, "\"0x%" PRIx64 "\"", row->address);
	else
		fputs("null", out);
	cfa_cell(cell, row->rule);
	fprintf(out, ",\"rule\":%" PRIu32 ",\"cfa\":\"%s\"", row->rule_number, cell);
	for (int slot = 0; has_registers(row->rule) && slot < VP_SAVED_CNT; slot++) {
		slot_cell(cell, row->rule, slot);
		fprintf(out, ",\"%s\":\"%s\"", slot_names[slot], cell);
	}
	fprintf(out, ",\"signal\":%s}\n", row->rule->flags & VP_RULE_F_SIGNAL ? "true" : "false");
}

/* What the kernel's array takes, to the last unused slot. */
static double bytes_per_row(const struct vp_rows *rows, const struct vp_rows_desc *d)
{
	return (double)d->elem_cnt * VP_ROWS_ELEM_BYTES / rows->cnt;
}

static void print_header(FILE *out, const struct vp_rows *rows, const char *name)
{
	const struct vp_rows_stats *s = &rows->stats;
	struct vp_rows_desc d = vp_rows_layout(rows);

	fputs("# ", out);
	vp_print_safe(out, name);
	fprintf(out,
		": %" PRIu32 " rows, %" PRIu32 " rules from %" PRIu64 " FDEs (%" PRIu64
		" damaged, %" PRIu64 " of .debug_frame); %" PRIu64
		" rows not expressible; in the kernel %" PRIu32 " KiB, %.2f bytes a row\n",
		rows->cnt, rows->rule_cnt, s->fde_cnt, s->bad_fde_cnt, s->from_debug_cnt,
		s->odd_rule_cnt + s->rule_full_cnt, d.elem_cnt * (VP_ROWS_ELEM_BYTES / 1024),
		bytes_per_row(rows, &d));
	fprintf(out, "#%11s %18s  %-12s", "offset", "address", "CFA");
	for (int slot = 0; slot < VP_SAVED_CNT; slot++)
		fprintf(out, slot < VP_SAVED_CNT - 1 ? " %-6s" : " %s\n", slot_names[slot]);
}

void vp_show_rows_text(FILE *out, const struct vp_rows *rows, const struct elf_segment *segments,
		       size_t segment_cnt, const char *name)
{
	print_header(out, rows, name);
	for (uint32_t i = 0; i < rows->cnt && !ferror(out); i++) {
		struct row row = get_row(rows, i, segments, segment_cnt);

		print_text(out, &row);
	}
}

void vp_show_rows_json(FILE *out, const struct vp_rows *rows, const struct elf_segment *segments,
		       size_t segment_cnt)
{
	for (uint32_t i = 0; i < rows->cnt && !ferror(out); i++) {
		struct row row = get_row(rows, i, segments, segment_cnt);

		print_json(out, &row);
	}
}
