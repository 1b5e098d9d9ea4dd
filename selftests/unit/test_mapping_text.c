/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Mappings as text, byte for byte as the kernel prints them, and as JSON. */
#include "model/mapping_text.h"
#include "procmaps.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE 4096UL

static struct vp_mmap2 m;

static void set_up(void)
{
	m.rec.proc.tgid = 42;
	strcpy(m.rec.comm, "made");
	m.rec.verdict = VP_VERDICT_FILE;
	m.rec.perf = (struct vp_perf_mmap2){.addr = 0x1000,
					    .len = 0x2000,
					    .pgoff = 0x3000,
					    .maj = 254,
					    .min = 1,
					    .ino = 7,
					    .ino_generation = 8,
					    .prot = PROT_READ | PROT_EXEC,
					    .flags = MAP_PRIVATE};
	strcpy(m.name, "/lib/x");
}

TestSuite(mapping_text, .init = set_up);

typedef void (*printer)(FILE *f, const struct vp_mmap2 *m);

/* Caller frees. */
static char *printed(printer print)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	cr_assert(f != NULL);
	print(f, &m);
	fclose(f);
	return text;
}

static void expect_printed(printer print, const char *want)
{
	char *got = printed(print);

	cr_expect(eq(str, got, (char *)want));
	free(got);
}

/* ---- as /proc/PID/maps ---------------------------------------------------------------------- */

/* A line of maps back into a record, the name unescaped. */
static void from_line(const char *line)
{
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	char prot[5], *out = m.name;
	int n = 0;

	cr_assert(eq(int,
		     sscanf(line,
			    "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32
			    " %" SCNu64 "%n",
			    &start, &end, prot, &pgoff, &maj, &min, &ino, &n),
		     7));
	m.rec.perf = (struct vp_perf_mmap2){
		.addr = start,
		.len = end - start,
		.pgoff = pgoff,
		.maj = maj,
		.min = min,
		.ino = ino,
		.prot = (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
			(prot[2] == 'x' ? PROT_EXEC : 0),
		.flags = prot[3] == 's' ? MAP_SHARED : MAP_PRIVATE,
	};
	line += n;
	line += strspn(line, " ");
	if (!*line)
		line = "//anon";
	while (*line) {
		if (!strncmp(line, "\\012", 4)) {
			*out++ = '\n';
			line += 4;
		} else {
			*out++ = *line++;
		}
	}
	*out = '\0';
}

static void map_unusual_names(const char *dir)
{
	static const char *const names[] = {"two\nlines\n", "sp ace", "\xff\xfe", "t\tab",
					    "back\\slash"};
	char path[300];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		fd = open(path, O_RDWR | O_CREAT, 0600);
		cr_assert(fd >= 0 && !ftruncate(fd, 2 * PAGE));
		cr_assert(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE) != MAP_FAILED);
		cr_assert(mmap(NULL, PAGE, PROT_NONE, MAP_SHARED, fd, 0) != MAP_FAILED);
		if (i % 2)
			unlink(path);
		close(fd);
	}
	cr_assert(mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	/* a short line: the name's column is farther away than from any other */
	mmap((void *)0x10000, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

Test(mapping_text, rows_are_those_of_the_kernel)
{
	char dir[] = "/tmp/vmaprof-mapping.XXXXXX", cmd[64], *text, *rest, *line;
	size_t rows = 0;

	cr_assert(mkdtemp(dir) != NULL);
	map_unusual_names(dir);
	text = procfs_text(getpid(), "maps");
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line) {
		char want[5000];

		snprintf(want, sizeof(want), "%s\n", line);
		from_line(line);
		expect_printed(vp_mapping_print_text, want);
		rows++;
	}
	cr_expect(gt(sz, rows, 20));
	free(text);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	cr_expect(zero(int, system(cmd)));
}

Test(mapping_text, names_stand_at_column_74_or_after_a_space)
{
	char *text = printed(vp_mapping_print_text);

	cr_expect(eq(str, text + 73, "/lib/x\n"));
	free(text);
	m.rec.perf.addr = 0xffffffff00000000;
	m.rec.perf.pgoff = 0xfffffffffffff000;
	m.rec.perf.maj = 4095;
	m.rec.perf.min = 0xfffff;
	m.rec.perf.ino = UINT64_MAX;
	expect_printed(vp_mapping_print_text,
		       "ffffffff00000000-ffffffff00002000 r-xp fffffffffffff000 fff:fffff "
		       "18446744073709551615  /lib/x\n");
}

Test(mapping_text, anonymous_memory_has_no_name)
{
	strcpy(m.name, "//anon");
	m.rec.perf.ino = m.rec.perf.maj = m.rec.perf.min = 0;
	m.rec.perf.pgoff = 0;
	expect_printed(vp_mapping_print_text, "00001000-00003000 r-xp 00000000 00:00 0 \n");
}

Test(mapping_text, rights_are_four_letters)
{
	char out[5];

	vp_mapping_prot(&m.rec.perf, out);
	cr_expect(eq(str, out, "r-xp"));
	m.rec.perf.prot = PROT_WRITE;
	m.rec.perf.flags = MAP_SHARED;
	vp_mapping_prot(&m.rec.perf, out);
	cr_expect(eq(str, out, "-w-s"));
	m.rec.perf.prot = 0;
	vp_mapping_prot(&m.rec.perf, out);
	cr_expect(eq(str, out, "---s"));
}

Test(mapping_text, a_process_is_a_line)
{
	expect_printed(vp_mapping_print_process, "# 42 made\n");
	strcpy(m.rec.comm, "a\nb");
	expect_printed(vp_mapping_print_process, "# 42 a\\012b\n");
}

/* ---- deleted -------------------------------------------------------------------------------- */

Test(mapping_text, deleted_is_cut_off_only_where_the_kernel_added_it)
{
	strcpy(m.name, "/lib/x (deleted)");
	vp_mapping_strip_deleted(&m);
	cr_expect(eq(str, m.name, "/lib/x (deleted)"));

	m.rec.hdr.flags = VP_MMAP2_F_DELETED;
	vp_mapping_strip_deleted(&m);
	cr_expect(eq(str, m.name, "/lib/x"));
	vp_mapping_strip_deleted(&m);
	cr_expect(eq(str, m.name, "/lib/x"));

	strcpy(m.name, "/x (deleted) (deleted)");
	vp_mapping_strip_deleted(&m);
	cr_expect(eq(str, m.name, "/x (deleted)"));

	strcpy(m.name, "(deleted)");
	vp_mapping_strip_deleted(&m);
	cr_expect(eq(str, m.name, "(deleted)"));
	strcpy(m.name, "");
	vp_mapping_strip_deleted(&m);
	cr_expect(eq(str, m.name, ""));
}

/* ---- JSON ----------------------------------------------------------------------------------- */

Test(mapping_text, json_is_as_documented)
{
	expect_printed(vp_mapping_print_json,
		       "{\"tgid\":42,\"tid\":42,\"start\":\"0x1000\",\"end\":\"0x3000\","
		       "\"pgoff\":12288,\"prot\":\"r-xp\",\"dev\":\"254:1\",\"ino\":7,"
		       "\"ino_generation\":8,\"kind\":\"FILE\",\"name\":\"/lib/x\","
		       "\"deleted\":false}\n");
}

Test(mapping_text, json_says_deleted_beside_the_name)
{
	char *text;

	m.rec.hdr.flags = VP_MMAP2_F_DELETED;
	strcpy(m.name, "/lib/x (deleted)");
	text = printed(vp_mapping_print_json);
	cr_expect(strstr(text, "\"name\":\"/lib/x\",\"deleted\":true}\n") != NULL, "%s", text);
	cr_expect(eq(str, m.name, "/lib/x (deleted)"));
	free(text);
}

Test(mapping_text, json_is_valid_whatever_the_name_is)
{
	char *text;

	strcpy(m.name, "/a\"b\\c\nd\xff\x01");
	text = printed(vp_mapping_print_json);
	cr_expect(strstr(text, "\"name\":\"/a\\\"b\\\\c\\nd\\ufffd\\u0001\",") != NULL, "%s", text);
	/* one line */
	cr_expect(eq(ptr, strchr(text, '\n'), text + strlen(text) - 1));
	free(text);
}

Test(mapping_text, json_names_all_kinds)
{
	for (uint16_t v = 0; v <= VP_VERDICT_CNT; v++) {
		char *text;

		m.rec.verdict = v;
		text = printed(vp_mapping_print_json);
		cr_expect(strstr(text, "\"kind\":\"\"") == NULL);
		cr_expect(eq(int, strstr(text, "\"kind\":\"?\"") != NULL,
			     v == 0 || v == VP_VERDICT_CNT));
		free(text);
	}
}
