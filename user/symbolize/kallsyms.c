/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES (256U << 20)
#define READ_BYTES     (1U << 20)
#define MODULES_MAX    4096

/*
 * kallsyms has no sizes: a symbol reaches to the next one's address. The last one of a
 * module, and each BPF program, is not believed to be longer than this.
 */
#define LAST_MAX_BYTES (64U << 10)

/* Modules are within this distance of the kernel's text: calls must reach. */
#define REACH_BYTES (1ULL << 31)

struct parser {
	struct symtab_entry *entries;
	size_t entry_cnt, entry_cap;
	struct kallsyms_module *modules;
	size_t module_cnt, module_cap;
	size_t module; /* of the last line: lines of a module follow each other */
	size_t line_cnt, address_cnt, name_cnt;
	uint64_t text, stext, etext, lowest;
};

/* One line: "ffffffff81000000 T _stext\t[module]", cut into strings in place. */
struct line {
	uint64_t addr;
	char type;
	char *name;
	char *module; /* with brackets; NULL: the kernel proper */
};

/* A file of /proc has no size to ask for. */
static int read_all(int fd, char **text, size_t *len)
{
	size_t cap = 0;

	for (;;) {
		if (cap - *len < 2) {
			cap = cap ? cap * 2 : READ_BYTES;
			char *more = cap <= FILE_MAX_BYTES ? realloc(*text, cap) : NULL;

			if (!more)
				return cap > FILE_MAX_BYTES ? -EFBIG : -ENOMEM;
			*text = more;
		}
		ssize_t n = read(fd, *text + *len, cap - *len - 1);
		if (n < 0)
			return -errno;
		if (!n)
			break;
		*len += (size_t)n;
	}
	(*text)[*len] = '\0';
	return 0;
}

/* text (caller frees) has a NUL behind its len bytes. */
static int read_text(const char *path, char **text, size_t *len)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	*text = NULL;
	*len = 0;
	if (fd < 0)
		return -errno;

	int err = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -EINVAL : read_all(fd, text, len);
	close(fd);
	if (err) {
		free(*text);
		*text = NULL;
	}
	return err;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* strtoull is a quarter of the time of reading kallsyms, and skips blanks and signs. */
static char *parse_hex(char *s, uint64_t *out)
{
	int digit, n = 0;

	for (*out = 0; (digit = hex_value(*s)) >= 0 && n < 16; s++, n++)
		*out = *out << 4 | (unsigned int)digit;
	return n && *s == ' ' ? s : NULL;
}

/* s is one line, NUL-terminated. 0 if it is one of kallsyms. */
static int parse_line(char *s, struct line *out)
{
	s = parse_hex(s, &out->addr);
	if (!s || !s[1] || s[2] != ' ')
		return -EINVAL;
	out->type = s[1];
	out->name = s + 3;
	out->module = NULL;

	char *end = out->name + strcspn(out->name, " \t\r");
	if (end == out->name)
		return -EINVAL;
	if (*end) {
		*end++ = '\0';
		end += strspn(end, " \t");
		end[strcspn(end, " \t\r")] = '\0';
		out->module = *end == '[' ? end : NULL;
	}
	return 0;
}

static int find_module(struct parser *p, const char *name)
{
	if (!name)
		name = "[kernel]";
	if (p->module < p->module_cnt && !strcmp(p->modules[p->module].name, name))
		return 0;
	for (p->module = 0; p->module < p->module_cnt; p->module++) {
		if (!strcmp(p->modules[p->module].name, name))
			return 0;
	}
	if (p->module_cnt == MODULES_MAX)
		return -EFBIG;
	if (p->module_cnt == p->module_cap) {
		size_t cap = p->module_cap ? p->module_cap * 2 : 16;
		struct kallsyms_module *m = realloc(p->modules, cap * sizeof(*m));

		if (!m)
			return -ENOMEM;
		p->modules = m;
		p->module_cap = cap;
	}
	p->modules[p->module_cnt] = (struct kallsyms_module){.name = strdup(name)};
	if (!p->modules[p->module_cnt].name)
		return -ENOMEM;
	p->module = p->module_cnt++;
	return 0;
}

/* Padding in front of functions has a symbol where the kernel is built for call thunks. */
static int is_padding(const char *name)
{
	return !strncmp(name, "__pfx_", 6) || !strncmp(name, "__cfi_", 6);
}

static int is_end_mark(const char *name)
{
	return !strcmp(name, "_etext") || !strcmp(name, "_einittext");
}

/* A place in the kernel's image; names an address only if no function does. */
static int is_start_mark(const struct line *l)
{
	return !strcmp(l->name, "_text") || !strcmp(l->name, "_stext") ||
	       !strcmp(l->name, "_sinittext");
}

static int is_function(const struct line *l)
{
	return strchr("tTwW", l->type) && !is_padding(l->name) && !is_end_mark(l->name);
}

static uint8_t line_binding(const struct line *l)
{
	if (l->type == 'w' || l->type == 'W')
		return SYMTAB_WEAK;
	return l->type == 'T' && !is_start_mark(l) ? SYMTAB_GLOBAL : SYMTAB_LOCAL;
}

static void note_bounds(struct parser *p, const struct line *l)
{
	if (l->module || l->name[0] != '_')
		return;
	if (!strcmp(l->name, "_text"))
		p->text = l->addr;
	else if (!strcmp(l->name, "_stext"))
		p->stext = l->addr;
	else if (!strcmp(l->name, "_etext"))
		p->etext = l->addr;
}

static int put_entry(struct parser *p, const struct line *l, const char *text)
{
	int function = is_function(l);

	if (p->entry_cnt == p->entry_cap) {
		size_t cap = p->entry_cap ? p->entry_cap * 2 : 1U << 16;
		struct symtab_entry *e = realloc(p->entries, cap * sizeof(*e));

		if (!e)
			return -ENOMEM;
		p->entries = e;
		p->entry_cap = cap;
	}
	p->entries[p->entry_cnt++] = (struct symtab_entry){
		.start = l->addr,
		.end = l->addr,
		.name = (uint32_t)(l->name - text),
		.binding = line_binding(l),
		.type = is_start_mark(l) ? SYMTAB_NOTYPE : SYMTAB_FUNC,
		.boundary = !function,
		.tag = (uint16_t)p->module,
	};
	if (function) {
		struct kallsyms_module *m = &p->modules[p->module];

		p->name_cnt++;
		m->last = l->addr > m->last ? l->addr : m->last;
		p->lowest = l->addr < p->lowest ? l->addr : p->lowest;
	}
	return 0;
}

static int add_line(struct parser *p, char *s, const char *text)
{
	struct line l;

	if (parse_line(s, &l))
		return 0;
	p->line_cnt++;
	/* Absolute symbols are numbers, and per-CPU ones offsets: both may look like addresses. */
	if (!l.addr || l.type == 'A' || l.type == 'a')
		return 0;
	p->address_cnt++;
	note_bounds(p, &l);

	int err = find_module(p, l.module);
	return err ? err : put_entry(p, &l, text);
}

static int parse_text(struct parser *p, char *text, size_t len)
{
	for (char *s = text, *end = text + len; s < end;) {
		char *eol = memchr(s, '\n', (size_t)(end - s));

		eol = eol ? eol : end;
		*eol = '\0';
		int err = add_line(p, s, text);
		if (err)
			return err;
		s = eol + 1;
	}
	return 0;
}

/* See LAST_MAX_BYTES. */
static uint64_t entry_limit(const struct parser *p, const struct symtab_entry *e)
{
	const struct kallsyms_module *m = &p->modules[e->tag];
	uint64_t last = e->boundary || !strcmp(m->name, "[bpf]") ? e->start : m->last;

	return last > UINT64_MAX - LAST_MAX_BYTES ? UINT64_MAX : last + LAST_MAX_BYTES;
}

static uint64_t table_base(const struct parser *p)
{
	uint64_t text = p->stext ? p->stext : p->text;

	if (!text)
		return p->lowest;
	return text > REACH_BYTES ? text - REACH_BYTES : 0;
}

static int build_table(struct parser *p, const char *text, size_t len, struct symtab **out)
{
	struct symtab_builder *b = symtab_builder_new(table_base(p));
	int err = b ? 0 : -ENOMEM;

	if (b)
		symtab_builder_strings(b, &(struct symtab_strings){
						  .base = text,
						  .size = len,
						  .source = VP_SYM_KALLSYMS,
					  });
	for (size_t i = 0; !err && i < p->entry_cnt; i++) {
		p->entries[i].limit = entry_limit(p, &p->entries[i]);
		err = symtab_builder_add(b, &p->entries[i]);
	}
	if (!err)
		err = symtab_builder_finish(b, out);
	symtab_builder_free(b);
	return err;
}

static enum vp_sym_reason text_reason(const struct parser *p)
{
	if (p->line_cnt && !p->address_cnt)
		return VP_SYM_HIDDEN;
	return p->name_cnt ? VP_SYM_OK : VP_SYM_NO_SYMBOLS;
}

static int read_symbols(struct kallsyms *k, char *text, size_t len)
{
	struct parser p = {.lowest = UINT64_MAX};
	int err = parse_text(&p, text, len);

	k->reason = text_reason(&p);
	k->stext = p.text ? p.text : p.stext;
	k->etext = p.etext;
	k->modules = p.modules;
	k->module_cnt = p.module_cnt;
	if (!err && k->reason == VP_SYM_OK)
		err = build_table(&p, text, len, &k->table);
	free(p.entries);
	return err;
}

int kallsyms_read(struct kallsyms **out, const char *path)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	char *text = NULL;
	size_t len;

	if (!k)
		return -ENOMEM;

	int err = read_text(path, &text, &len);
	if (!err)
		err = read_symbols(k, text, len);
	free(text);
	if (err == -ENOMEM) {
		kallsyms_free(k);
		return err;
	}
	if (err)
		k->reason = err == -EFBIG ? VP_SYM_OVER_LIMIT : VP_SYM_CANNOT_OPEN;
	*out = k;
	return 0;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	symtab_free(k->table);
	for (size_t i = 0; i < k->module_cnt; i++)
		free(k->modules[i].name);
	free(k->modules);
	free(k);
}
