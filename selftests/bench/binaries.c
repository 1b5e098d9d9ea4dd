// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A thousand distinct binaries under --symbol-memory=32M: libstdc++ a thousand times, each with other
 * names (the first letters say which copy it is) and without what no look-up reads. All are
 * loaded, and then asked for ten names each, file after file as a report does, and once more in
 * the other direction. The limit must hold, and every name be right.
 */
#include "bench.h"

#include "symbolize/symbolizer.h"

#include <fcntl.h>
#include <gelf.h>
#include <malloc.h>
#include <sys/stat.h>

#define LIBRARY	  "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"
#define FILE_CNT  1000
#define NAME_CNT  10
#define LIMIT	  (32ULL << 20)
#define MB	  1e6
#define TAG_BYTES 4

struct library {
	char *bytes;
	size_t size;
	size_t head; /* bytes up to the end of its symbols' names */
	uint64_t sections;
	size_t names; /* where those begin */
	uint64_t offset[NAME_CNT];
	uint32_t name[NAME_CNT];
};

static bool read_library(struct library *l)
{
	struct stat st;
	int fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		return false;
	l->size = (size_t)st.st_size;
	l->bytes = malloc(l->size);
	if (!l->bytes || read(fd, l->bytes, l->size) != (ssize_t)l->size)
		bench_die("%s: %s", LIBRARY, strerror(errno));
	close(fd);
	return true;
}

static bool find_symbols(Elf *elf, GElf_Shdr *symbols, GElf_Shdr *names)
{
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
		if (gelf_getshdr(s, symbols) && symbols->sh_type == SHT_DYNSYM)
			return gelf_getshdr(elf_getscn(elf, symbols->sh_link), names);
	}
	return false;
}

static bool is_alone(const Elf64_Sym *all, size_t cnt, size_t i)
{
	for (size_t j = 0; j < cnt; j++) {
		if (j != i && all[j].st_value <= all[i].st_value &&
		    all[i].st_value - all[j].st_value <= all[j].st_size)
			return false;
	}
	return true;
}

/* Functions from all over the table that no other symbol covers. In .text, offset = address. */
static void choose_functions(struct library *l, const GElf_Shdr *symbols)
{
	const Elf64_Sym *all = (const Elf64_Sym *)(const void *)(l->bytes + symbols->sh_offset);
	size_t cnt = symbols->sh_size / sizeof(*all), found = 0;

	for (size_t i = 0; i < cnt && found < NAME_CNT; i++) {
		const char *name = l->bytes + l->names + all[i].st_name;

		if (i * NAME_CNT < found * cnt || ELF64_ST_TYPE(all[i].st_info) != STT_FUNC ||
		    !all[i].st_size || strlen(name) <= TAG_BYTES || !is_alone(all, cnt, i))
			continue;
		l->offset[found] = all[i].st_value;
		l->name[found++] = all[i].st_name;
	}
	if (found < NAME_CNT)
		bench_die("%s: too few functions", LIBRARY);
}

static void look_into(struct library *l)
{
	GElf_Shdr symbols, names;
	GElf_Ehdr header;

	elf_version(EV_CURRENT);
	Elf *elf = elf_memory(l->bytes, l->size);
	if (!elf || !gelf_getehdr(elf, &header) || !find_symbols(elf, &symbols, &names))
		bench_die("%s: not as expected", LIBRARY);
	l->names = names.sh_offset;
	l->head = names.sh_offset + names.sh_size;
	l->sections = header.e_shoff;
	if (l->head < symbols.sh_offset + symbols.sh_size)
		l->head = symbols.sh_offset + symbols.sh_size;
	choose_functions(l, &symbols);
	elf_end(elf);
}

/* "aaab" for 1. */
static void tag_names(struct library *l, unsigned int number)
{
	char tag[TAG_BYTES];

	for (int i = TAG_BYTES; i-- > 0; number /= 26)
		tag[i] = (char)('a' + number % 26);
	for (size_t i = 0; i < NAME_CNT; i++)
		memcpy(l->bytes + l->names + l->name[i], tag, TAG_BYTES);
}

static const char *path_of(unsigned int number)
{
	static char path[128];
	const char *dir = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%s/vmaprof-bench-lib%u.so", dir ? dir : "/tmp", number);
	return path;
}

/* What is between names and sections is a hole. */
static void make_copy(struct library *l, unsigned int number)
{
	int fd = open(path_of(number), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t tail = l->size - l->sections;

	tag_names(l, number);
	if (fd < 0 || write(fd, l->bytes, l->head) != (ssize_t)l->head ||
	    pwrite(fd, l->bytes + l->sections, tail, (off_t)l->sections) != (ssize_t)tail)
		bench_die("%s: %s", path_of(number), strerror(errno));
	close(fd);
}

struct peak {
	double private_mb, counted_mb;
};

static void note_peak(struct vp_symbolizer *s, struct peak *p)
{
	struct vp_symbolizer_stats st;
	double mb = bench_private_kb() * 1024 / MB, counted;

	vp_symbolizer_get_stats(s, &st);
	counted = (double)(st.table_bytes + st.fixed_bytes + st.name_bytes) / MB;
	p->private_mb = mb > p->private_mb ? mb : p->private_mb;
	p->counted_mb = counted > p->counted_mb ? counted : p->counted_mb;
}

/* How many names are not that copy's. */
static size_t ask(struct vp_symbolizer *s, struct library *l, unsigned int number)
{
	struct vp_symbol sym;
	size_t wrong = 0;

	tag_names(l, number);
	for (size_t i = 0; i < NAME_CNT; i++)
		wrong += vp_symbolizer_file(s, number, l->offset[i], &sym) ||
			 strcmp(sym.name, l->bytes + l->names + l->name[i]) != 0;
	return wrong;
}

static double seconds_since(uint64_t start)
{
	return (double)(bench_cpu_ns() - start) / 1e9;
}

static void measure(struct library *l)
{
	const struct vp_symbolizer_opts opts = {.max_bytes = LIMIT};
	struct vp_symbolizer *s;
	struct vp_symbolizer_stats st;
	struct peak peak = {0};
	size_t wrong = 0;

	if (vp_symbolizer_new(&s, &opts))
		bench_die("out of memory");
	malloc_trim(0);
	const double before = bench_private_kb() * 1024 / MB;
	uint64_t start = bench_cpu_ns();
	for (unsigned int i = 1; i <= FILE_CNT; i++) {
		vp_symbolizer_load_path(s, i, path_of(i));
		note_peak(s, &peak);
	}
	const double load = seconds_since(start);
	start = bench_cpu_ns();
	for (unsigned int i = 1; i <= FILE_CNT; i++) {
		wrong += ask(s, l, i);
		note_peak(s, &peak);
	}
	const double asked = seconds_since(start);
	for (unsigned int i = FILE_CNT; i > 0; i--) {
		wrong += ask(s, l, i);
		note_peak(s, &peak);
	}
	vp_symbolizer_get_stats(s, &st);
	bench_target("binaries.counted", "most that was counted against the limit", peak.counted_mb,
		     "MB", "<=", (double)LIMIT / MB);
	bench_row("binaries.private", "private memory at its peak", peak.private_mb - before, "MB");
	bench_target("binaries.wrong", "of 20,000 names: wrong or missing", (double)wrong, "", "=",
		     0);
	bench_row("binaries.load", "reading a file, CPU time", load * 1e3 / FILE_CNT, "ms");
	bench_row("binaries.ask", "ten names of an evicted one, CPU time", asked * 1e3 / FILE_CNT,
		  "ms");
	bench_row("binaries.evicted", "tables evicted", (double)st.evicted_cnt, "");
	bench_row("binaries.reread", "… and read again", (double)st.reread_cnt, "");
	vp_symbolizer_free(s);
}

int main(void)
{
	struct library l = {0};

	bench_group("A thousand distinct binaries under --symbol-memory=32M");
	if (!read_library(&l)) {
		bench_skip("binaries", LIBRARY, "not on this machine");
		return 0;
	}
	look_into(&l);
	for (unsigned int i = 1; i <= FILE_CNT; i++)
		make_copy(&l, i);
	measure(&l);
	for (unsigned int i = 1; i <= FILE_CNT; i++)
		unlink(path_of(i));
	free(l.bytes);
	return 0;
}
