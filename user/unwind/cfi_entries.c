/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Formats: DWARF 5, 6.4.1 for .debug_frame; LSB 4.1, 10.6.1 for .eh_frame.
 *
 * Two walks over the section: first the CIEs, then the FDEs, which may only name a CIE that the
 * first walk met. So no byte belongs to two CIEs and all their programs together are no longer
 * than the section, whatever the FDEs say.
 */
#include "cfi_entries.h"
#include "util/array.h"

#include <dwarf.h>
#include <stdlib.h>

#define LENGTH_64BIT	0xffffffffU
#define LENGTH_RESERVED 0xfffffff0U

/* One entry between its length and its end. */
struct entry {
	uint32_t offset;      /* of its length, in the section */
	const uint8_t *id_at; /* where the CIE's offset is */
	uint64_t id;	      /* CIE: 0 (.eh_frame) or all ones; FDE: which CIE */
	bool is_cie;
	struct cfi_cursor body; /* behind the id */
};

struct walk {
	const struct cfi_section *section;
	struct cfi_cursor at;
};

int cfi_space_init(struct cfi_space *space, const struct elf_file *f)
{
	uint64_t end = 0;

	*space = (struct cfi_space){.base = UINT64_MAX};
	if (f->exec_cnt > CFI_SEGMENTS_MAX)
		return VP_ROWS_TOO_LARGE;
	for (size_t i = 0; i < f->exec_cnt; i++) {
		const struct elf_segment *s = &f->exec[i];

		if (s->offset < space->base)
			space->base = s->offset;
		if (s->offset + s->filesz > end)
			end = s->offset + s->filesz;
		space->segments[space->segment_cnt++] = *s;
	}
	if (!space->segment_cnt)
		return VP_ROWS_NO_CFI;
	if (end - space->base >= VP_ROWS_NO_KEY)
		return VP_ROWS_TOO_LARGE;
	space->span = (uint32_t)(end - space->base);
	return VP_ROWS_OK;
}

/* Fills key and len from vaddr and a length. False: not in an executable segment. */
static bool find_key(const struct cfi_space *space, uint64_t len, struct cfi_fde *fde)
{
	for (size_t i = 0; i < space->segment_cnt; i++) {
		const struct elf_segment *s = &space->segments[i];
		uint64_t into = fde->vaddr - s->vaddr;

		if (fde->vaddr < s->vaddr || into >= s->filesz)
			continue;
		if (len > s->filesz - into)
			len = s->filesz - into;
		fde->key = (uint32_t)(s->offset - space->base + into);
		fde->len = (uint32_t)len;
		return true;
	}
	return false;
}

/* 1: an entry; 0: no more. What follows a length that makes no sense cannot be found. */
static int next_entry(struct walk *w, struct entry *e)
{
	const struct cfi_section *s = w->section;
	struct cfi_cursor *c = &w->at;
	bool is_64bit = false;
	uint64_t len = 0;

	/* Zeros: the end, or in the middle what a linker left of an object's end marker. */
	while (!len) {
		if (cfi_left(c) < 4)
			return 0;
		e->offset = (uint32_t)(c->p - s->bytes);
		len = cfi_u32(c);
		if (!len && s->is_open)
			return 0;
	}
	if (len == LENGTH_64BIT) {
		is_64bit = true;
		len = cfi_u64(c);
	} else if (len >= LENGTH_RESERVED) {
		return 0;
	}
	if (c->bad || len > cfi_left(c))
		return 0;
	e->id_at = c->p;
	e->body = (struct cfi_cursor){.p = c->p, .end = c->p + len};
	e->id = is_64bit ? cfi_u64(&e->body) : cfi_u32(&e->body);
	e->is_cie = e->id == (s->is_eh ? 0 : is_64bit ? UINT64_MAX : UINT32_MAX);
	cfi_skip(c, len);
	return 1;
}

static void walk_start(struct walk *w, const struct cfi_section *s)
{
	*w = (struct walk){.section = s, .at = {.p = s->bytes, .end = s->bytes + s->size}};
}

/* The bytes that augmentation letters stand for. 0 or -1. */
static int parse_augmentation_data(struct cfi_cie *cie, const char *letters, struct cfi_cursor *c)
{
	uint64_t ignored;
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = cfi_u8(c);
			break;
		case 'L':
			cfi_u8(c);
			break;
		case 'P':
			encoding = cfi_u8(c);
			if (cfi_encoded(c, encoding, &ignored))
				return -1;
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		case 'B': /* signed return addresses: not on this architecture, no bytes */
			break;
		default:
			/* The length says where it ends, but the letters behind are lost. */
			return c->bad ? -1 : 0;
		}
	}
	return c->bad ? -1 : 0;
}

/* The string was checked to end. Without 'z' nobody knows what is in the rest. */
static int parse_augmentation(struct cfi_cie *cie, const char *letters, struct cfi_cursor *c)
{
	struct cfi_cursor data;
	uint64_t len;

	if (!*letters)
		return 0;
	if (*letters != 'z')
		return -1;
	cie->has_augmentation = true;
	len = cfi_uleb(c);
	data = (struct cfi_cursor){.p = c->p, .end = c->p};
	cfi_skip(c, len);
	data.end = c->p;
	return c->bad ? -1 : parse_augmentation_data(cie, letters + 1, &data);
}

/* 0 or -1: a version that is not known. Only 64-bit addresses without segments are. */
static int parse_version(struct cfi_cursor *c, bool is_eh, uint8_t version)
{
	uint8_t address_size, segment_size;

	if (version == 1 || version == 3)
		return 0;
	if (version != 4 || is_eh)
		return -1;
	address_size = cfi_u8(c);
	segment_size = cfi_u8(c);
	return address_size == 8 && segment_size == 0 ? 0 : -1;
}

static int parse_cie(struct cfi_cie *cie, const struct cfi_section *s, struct cfi_cursor c)
{
	uint8_t version = cfi_u8(&c);
	const char *letters = (const char *)c.p;
	size_t max = cfi_left(&c), len = strnlen(letters, max);
	uint64_t ra;

	if (len == max)
		return -1;
	cfi_skip(&c, len + 1);
	if (parse_version(&c, s->is_eh, version))
		return -1;
	cie->code_align = cfi_uleb(&c);
	cie->data_align = cfi_sleb(&c);
	ra = version == 1 ? cfi_u8(&c) : cfi_uleb(&c);
	if (c.bad || ra != ARCH_REG_RA || parse_augmentation(cie, letters, &c))
		return -1;
	return cfi_run_initial(cie, c);
}

static int read_cies(struct cfi_entries *e, const struct cfi_section *s)
{
	struct entry entry;
	struct walk w;

	walk_start(&w, s);
	while (next_entry(&w, &entry)) {
		struct cfi_cie *cie;

		if (!entry.is_cie)
			continue;
		if (e->cie_cnt == CFI_CIES_MAX)
			return VP_ROWS_TOO_LARGE;
		if (vp_array_room((void **)&e->cies, &e->cie_cap, e->cie_cnt, 1, sizeof(*cie)))
			return -ENOMEM;
		cie = &e->cies[e->cie_cnt++];
		*cie = (struct cfi_cie){.offset = entry.offset, .encoding = DW_EH_PE_absptr};
		cie->bad = entry.body.bad || parse_cie(cie, s, entry.body) != 0;
	}
	return 0;
}

static int compare_cie(const void *key, const void *cie)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct cfi_cie *)cie)->offset;

	return (a > b) - (a < b);
}

/* hint: the index of the last one found, which usually is it again. NULL: there is none. */
static const struct cfi_cie *find_cie(const struct cfi_entries *e, uint64_t offset, size_t hint)
{
	if (hint < e->cie_cnt && e->cies[hint].offset == offset)
		return &e->cies[hint];
	if (!e->cie_cnt)
		return NULL;
	return bsearch(&offset, e->cies, e->cie_cnt, sizeof(*e->cies), compare_cie);
}

/* In .eh_frame an FDE says how far before this word its CIE is, in .debug_frame where it is. */
static uint64_t cie_offset(const struct cfi_section *s, const struct entry *entry)
{
	return s->is_eh ? (uint64_t)(entry->id_at - s->bytes) - entry->id : entry->id;
}

/*
 * 1: an FDE of code; 0: of something that is none (discarded by the linker, or in another kind
 * of segment); -1: damaged.
 */
static int parse_fde(const struct cfi_entries *e, const struct cfi_cie *cie, struct cfi_cursor c,
		     const struct cfi_space *space, struct cfi_fde *fde)
{
	uint64_t len;

	if (cie->bad || cfi_pointer(&c, cie->encoding, &e->pointers, &fde->vaddr) ||
	    cfi_encoded(&c, cie->encoding, &len))
		return -1;
	if (cie->has_augmentation)
		cfi_skip(&c, cfi_uleb(&c));
	if (c.bad)
		return -1;
	fde->program = (uint32_t)(c.p - e->pointers.bytes);
	fde->program_len = (uint32_t)cfi_left(&c);
	/* Address 0 is what relocations against discarded code become. */
	return fde->vaddr && len && find_key(space, len, fde);
}

static int add_fde(struct cfi_entries *e, const struct cfi_fde *fde)
{
	if (e->fde_cnt == CFI_FDES_MAX)
		return VP_ROWS_TOO_LARGE;
	if (e->fde_cnt == e->fde_cap &&
	    vp_array_room((void **)&e->fdes, &e->fde_cap, e->fde_cnt, 1, sizeof(*fde)))
		return -ENOMEM;
	e->fdes[e->fde_cnt++] = *fde;
	return 0;
}

static int read_fdes(struct cfi_entries *e, const struct cfi_section *s,
		     const struct cfi_space *space)
{
	const struct cfi_cie *cie;
	struct entry entry;
	struct walk w;
	size_t hint = 0;
	int err = 0;

	walk_start(&w, s);
	while (!err && next_entry(&w, &entry)) {
		struct cfi_fde fde;
		int is_code = -1;

		if (entry.is_cie)
			continue;
		e->seen_cnt++;
		cie = find_cie(e, cie_offset(s, &entry), hint);
		if (cie) {
			hint = (size_t)(cie - e->cies);
			fde.cie = (uint32_t)hint;
			is_code = parse_fde(e, cie, entry.body, space, &fde);
		}
		if (is_code < 0)
			e->bad_cnt++;
		else if (is_code)
			err = add_fde(e, &fde);
	}
	return err;
}

#define DIGIT_BITS 11
#define DIGIT_CNT  (1U << DIGIT_BITS)
#define PASS_CNT   3

/* One pass of a radix sort by the key's digit at `shift`. Stable. */
static void sort_pass(const struct cfi_fde *from, struct cfi_fde *to, size_t cnt, int shift)
{
	uint32_t start[DIGIT_CNT + 1] = {0};

	for (size_t i = 0; i < cnt; i++)
		start[(from[i].key >> shift & (DIGIT_CNT - 1)) + 1]++;
	for (size_t d = 1; d <= DIGIT_CNT; d++)
		start[d] += start[d - 1];
	for (size_t i = 0; i < cnt; i++)
		to[start[from[i].key >> shift & (DIGIT_CNT - 1)]++] = from[i];
}

static bool is_sorted(const struct cfi_entries *e)
{
	for (size_t i = 1; i < e->fde_cnt; i++) {
		if (e->fdes[i - 1].key > e->fdes[i].key)
			return false;
	}
	return true;
}

static int sort_fdes(struct cfi_entries *e)
{
	struct cfi_fde *spare;

	if (is_sorted(e))
		return 0;
	spare = malloc(e->fde_cnt * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	for (int pass = 0; pass < PASS_CNT; pass++) {
		struct cfi_fde *sorted = spare;

		sort_pass(e->fdes, sorted, e->fde_cnt, pass * DIGIT_BITS);
		spare = e->fdes;
		e->fdes = sorted;
		e->fde_cap = e->fde_cnt;
	}
	free(spare);
	return 0;
}

int cfi_entries_read(struct cfi_entries *e, const struct cfi_section *s,
		     const struct cfi_space *space)
{
	int err;

	*e = (struct cfi_entries){.pointers = {.bytes = s->bytes, .vaddr = s->vaddr}};
	err = read_cies(e, s);
	if (!err)
		err = read_fdes(e, s, space);
	if (!err)
		err = sort_fdes(e);
	return err;
}

void cfi_entries_free(struct cfi_entries *e)
{
	free(e->cies);
	free(e->fdes);
	*e = (struct cfi_entries){0};
}
