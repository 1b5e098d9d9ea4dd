/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* perf.data, judged by perf itself: what it prints and that it complains about nothing. */
#include "perfdata_session.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* perf starts in a second or so, when the machine is busy with other tests in several. */
#define NEED_PERF()                                                                                \
	do {                                                                                       \
		if (!pds_have_perf())                                                              \
			cr_skip("perf is not installed");                                          \
	} while (0)

/* Functions for perf to find in this very file; long enough for leaf + 1 to be inside. */
__attribute__((noinline)) void vp_perfdata_test_leaf(void);
__attribute__((noinline)) void vp_perfdata_test_caller(void);

void vp_perfdata_test_leaf(void)
{
	__asm__ volatile("nop; nop; nop; nop");
}

void vp_perfdata_test_caller(void)
{
	vp_perfdata_test_leaf();
	__asm__ volatile("nop; nop; nop; nop");
}

#define LEAF   ((uintptr_t)vp_perfdata_test_leaf + 1)
#define CALLER ((uintptr_t)vp_perfdata_test_caller + 2)

static const char *own_path(void)
{
	static char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	cr_assert(gt(long, len, 0));
	path[len] = 0;
	return path;
}

/* The mapping of this file, to be mapped under another name or by another process. */
static void own_text(uint64_t *start, uint64_t *len, uint64_t *pgoff)
{
	char line[4400];
	uint64_t end;
	FILE *f = fopen("/proc/self/maps", "r");

	*start = *len = *pgoff = 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx r-xp %lx", start, &end, pgoff) == 3 && *start <= LEAF &&
		    LEAF < end) {
			*len = end - *start;
			break;
		}
	}
	fclose(f);
	cr_assert(gt(u64, *len, 0));
}

static void map_own_text(struct pds *s, uint16_t flags, const char *name)
{
	uint64_t start, len, pgoff;

	own_text(&start, &len, &pgoff);
	pds_map(s, flags, start, len, pgoff, name);
}

static void expect(const char *text, const char *needle, int cnt)
{
	cr_expect(eq(int, pds_count(text, needle), cnt), "\"%s\" in:\n%.4000s", needle, text);
}

Test(perfdata, perf_names_the_frames_of_mapped_files, .timeout = 120)
{
	struct pds s;
	uint64_t user[] = {LEAF, CALLER, (uintptr_t)l64a + 3};
	char want[4300], *text;

	NEED_PERF();
	pds_open(&s);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_sample(&s, 0, 0, NULL, 0, user, 3);
	s.now_ns = 2500000001;
	pds_sample(&s, 0, 0, NULL, 0, user, 3);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, "worker 4200000/4200000 [001]     1.000000000:       1000 cpu-clock: \n", 1);
	expect(text, "worker 4200000/4200000 [001]     2.500000001:       1000 cpu-clock: \n", 1);
	snprintf(want, sizeof(want), " vp_perfdata_test_leaf+0x1 (%s)\n", own_path());
	expect(text, want, 2);
	snprintf(want, sizeof(want), " vp_perfdata_test_caller+0x2 (%s)\n", own_path());
	expect(text, want, 2);
	expect(text, " l64a+0x3 (", 2);
	expect(text, "libc.so.6)\n", 2);
	expect(text, "[unknown]", 0);
	free(text);
	pds_remove(&s);
}

Test(perfdata, report_counts_samples_and_periods, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open_kernel(&s, 0xffffffff81000000, 0xffffffff82000000);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	for (int i = 0; i < 3; i++)
		pds_sample_at(&s, LEAF);
	pds_sample_at(&s, CALLER);
	pds_close(&s);
	text = pds_perf(&s, "report --stdio --no-children --no-inline -g none");
	expect(text, "# Samples: 4  of event 'cpu-clock'\n", 1);
	expect(text, "# Event count (approx.): 4000\n", 1);
	expect(text, "75.00%", 1);
	expect(text, "[.] vp_perfdata_test_leaf", 1);
	expect(text, "25.00%", 1);
	free(text);
	pds_remove(&s);
}

/* 0 if addresses are hidden. */
static uint64_t kernel_symbol(const char *name)
{
	char line[512], sym[256];
	uint64_t addr = 0, got;
	FILE *f = fopen("/proc/kallsyms", "r");

	while (f && !addr && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %*c %255s", &got, sym) == 2 && !strcmp(sym, name))
			addr = got;
	}
	if (f)
		fclose(f);
	return addr;
}

/* The build id in /sys/kernel/notes, which is an ELF note section; 0 if there is none. */
static int kernel_build_id(uint8_t *id)
{
	char notes[4096];
	ElfW(Nhdr) n;
	FILE *f = fopen("/sys/kernel/notes", "r");
	size_t len = f ? fread(notes, 1, sizeof(notes), f) : 0;

	if (f)
		fclose(f);
	for (size_t pos = 0; pos + sizeof(n) <= len;) {
		memcpy(&n, notes + pos, sizeof(n));
		pos += sizeof(n) + ((n.n_namesz + 3) & ~3u);
		if (n.n_type == NT_GNU_BUILD_ID && n.n_descsz == 20 && pos + 20 <= len) {
			memcpy(id, notes + pos, 20);
			return 1;
		}
		pos += (n.n_descsz + 3) & ~3u;
	}
	return 0;
}

Test(perfdata, kernel_frames_come_before_user_frames_and_are_named, .timeout = 120)
{
	struct pds s;
	uint64_t stext = kernel_symbol("_stext"), etext = kernel_symbol("_etext");
	uint64_t kern[] = {kernel_symbol("schedule"), kernel_symbol("do_sys_open")};
	uint64_t user[] = {LEAF};
	uint8_t id[20];
	char *text, *at;

	NEED_PERF();
	if (!stext || !etext || !kern[0] || !kern[1])
		cr_skip("/proc/kallsyms has no addresses for us");
	kern[0] += 4;
	kern[1] += 4;
	pds_open_kernel(&s, stext, etext);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_sample(&s, 0, VP_SAMPLE_F_KERNEL_MODE, kern, 2, user, 1);
	if (kernel_build_id(id))
		vp_perfdata_add_build_id(s.w, "[kernel.kallsyms]", id, 20, 1);
	pds_close(&s);
	text = pds_script(&s);
	at = strstr(text, " schedule+0x4 ([kernel.kallsyms])\n");
	cr_assert(ne(ptr, at, NULL), "%s", text);
	at = strstr(at, " do_sys_open+0x4 ([kernel.kallsyms])\n");
	cr_assert(ne(ptr, at, NULL), "%s", text);
	cr_assert(ne(ptr, strstr(at, " vp_perfdata_test_leaf+0x1 ("), NULL), "%s", text);
	free(text);
	text = pds_perf(&s, "report --stdio --no-children --no-inline -g none");
	expect(text, "[k] schedule", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, a_module_is_a_dso_of_its_own, .timeout = 120)
{
	struct pds s;
	uint64_t pc = 0xffffffffc0001010;
	char *text;

	NEED_PERF();
	pds_open_kernel(&s, 0xffffffff81000000, 0xffffffff82000000);
	vp_perfdata_kernel_module(s.w, "vp_none", 0xffffffffc0001000, 0x2000);
	pds_sample(&s, 0, VP_SAMPLE_F_KERNEL_MODE, &pc, 1, NULL, 0);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, "([vp_none])", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, kernel_and_guest_samples_without_frames_still_count, .timeout = 120)
{
	struct pds s;
	uint64_t user[] = {LEAF};
	char *text;

	NEED_PERF();
	pds_open_kernel(&s, 0xffffffff81000000, 0xffffffff82000000);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_sample(&s, 0, VP_SAMPLE_F_KERNEL_MODE, NULL, 0, user, 1);
	pds_sample(&s, 0, VP_SAMPLE_F_KERNEL_MODE, NULL, 0, NULL, 0);
	pds_sample(&s, 0, VP_SAMPLE_F_GUEST | VP_SAMPLE_F_KERNEL_MODE, NULL, 0, NULL, 0);
	pds_sample(&s, 0, VP_SAMPLE_F_GUEST, NULL, 0, NULL, 0);
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_GUEST_KERNEL), 2));
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_GUEST_USER), 1));
	text = pds_perf(&s, "report --stdio --no-children --no-inline -g none");
	expect(text, "# Samples: 4  of event", 1);
	expect(text, "[k] 0000000000000000", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, an_address_outside_all_mappings_is_unknown, .timeout = 120)
{
	struct pds s;
	uint64_t user[] = {LEAF, 0x1234};
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_sample(&s, 0, 0, NULL, 0, user, 2);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, "            1234 [unknown] ([unknown])\n", 1);
	expect(text, " vp_perfdata_test_leaf+0x1 (", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, a_thousand_frames_survive, .timeout = 120)
{
	struct pds s;
	uint64_t user[VP_MAX_USER_FRAMES], kern[VP_MAX_KERN_FRAMES];
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	for (int i = 0; i < VP_MAX_USER_FRAMES; i++)
		user[i] = LEAF + i % 2;
	for (int i = 0; i < VP_MAX_KERN_FRAMES; i++)
		kern[i] = 0xffffffff81000000;
	pds_sample(&s, 0, 0, NULL, 0, user, 1000);
	pds_sample(&s, 0, VP_SAMPLE_F_KERNEL_MODE, kern, VP_MAX_KERN_FRAMES, user,
		   VP_MAX_USER_FRAMES);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, " vp_perfdata_test_leaf+0x", 1000 + VP_MAX_USER_FRAMES);
	expect(text, "ffffffff81000000", VP_MAX_KERN_FRAMES);
	free(text);
	pds_remove(&s);
}

Test(perfdata, jit_frames_are_named_by_a_perf_map, .timeout = 120)
{
	struct pds s;
	char map[64], *text;
	FILE *f;

	NEED_PERF();
	pds_open(&s);
	s.proc.tgid = PDS_TGID + (uint32_t)getpid(); /* the map's name must be ours alone */
	snprintf(map, sizeof(map), "/tmp/perf-%u.map", s.proc.tgid);
	f = fopen(map, "w");
	fprintf(f, "7000000100 40 Lcompiled;method\n");
	fclose(f);
	pds_map(&s, 0, 0x7000000000, 0x1000, 0, "//anon");
	pds_sample_at(&s, 0x7000000110);
	pds_close(&s);
	text = pds_script(&s);
	unlink(map);
	expect(text, " Lcompiled;method+0x10 (/tmp/perf-", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, the_vdso_is_mapped_from_its_beginning, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_map(&s, 0, 0x7000000000, 0x1000, 0x5000, "[vdso]");
	pds_sample_at(&s, 0x7000000ff0);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, "([vdso])\n", 1);
	free(text);
	text = pds_perf(&s, "script --show-mmap-events -F comm,event");
	expect(text, "[0x7000000000(0x1000) @ 0 00:00 0 0]: r-xp [vdso]\n", 1);
	free(text);
	pds_remove(&s);
}

/* A link to this file under another name, so that perf still finds symbols there. */
static void sample_under_name(const char *file, int levels)
{
	struct pds s;
	char name[4096], want[4200], *text;
	size_t len;

	pds_open(&s);
	len = (size_t)snprintf(name, sizeof(name), "%s", s.dir);
	for (int i = 0; i < levels; i++) {
		len += (size_t)snprintf(name + len, sizeof(name) - len, "/%0200d", i);
		cr_assert(zero(int, mkdir(name, 0700)));
	}
	snprintf(name + len, sizeof(name) - len, "/%s", file);
	cr_assert(zero(int, symlink(own_path(), name)));
	map_own_text(&s, VP_MMAP2_F_FROM_WALK, name);
	pds_sample_at(&s, LEAF);
	pds_close(&s);
	text = pds_script(&s);
	snprintf(want, sizeof(want), " vp_perfdata_test_leaf+0x1 (%s)\n", name);
	expect(text, want, 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, names_with_spaces_newlines_and_utf8_are_kept, .timeout = 120)
{
	NEED_PERF();
	sample_under_name("sp ace\nnew line 火\xff.so", 0);
}

Test(perfdata, names_of_4000_bytes_are_kept, .timeout = 120)
{
	NEED_PERF();
	sample_under_name("x.so", 19);
}

Test(perfdata, a_file_without_samples_reads_fine, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open_kernel(&s, 0xffffffff81000000, 0xffffffff82000000);
	s.meta.first_ns = s.meta.last_ns = 0;
	pds_close(&s);
	text = pds_script(&s);
	cr_expect(eq(str, text, ""));
	free(text);
	text = pds_perf(&s, "report --header-only");
	expect(text, "# hostname : testhost\n", 1);
	expect(text, "time of first sample", 0);
	free(text);
	pds_remove(&s);
}

Test(perfdata, the_header_tells_of_the_recording, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_sample_at(&s, LEAF);
	pds_close(&s);
	text = pds_perf(&s, "report --header-only");
	expect(text, "# hostname : testhost\n", 1);
	expect(text, "# os release : 6.1.0-test\n", 1);
	expect(text, "# perf version : vmaprof 0.1\n", 1);
	expect(text, "# arch : x86_64\n", 1);
	expect(text, "# nrcpus online : 2\n", 1);
	expect(text, "# nrcpus avail : 4\n", 1);
	expect(text, "# cpudesc : A Processor @ 2 GHz\n", 1);
	expect(text, "# total memory : 1234567 kB\n", 1);
	expect(text, "# cmdline : vmaprof record -F 99 -o a file.data \n", 1);
	expect(text, "# time of first sample : 1.000000\n", 1);
	expect(text, "# time of last sample : 2.500000\n", 1);
	expect(text, "# event : name = cpu-clock, , id = { 1 }, type = 1, size = 128, ", 1);
	free(text);
	text = pds_perf(&s, "evlist -v");
	expect(text, "cpu-clock: type: 1, size: 128, { sample_period, sample_freq }: 99, ", 1);
	expect(text, "sample_id_all: 1", 1);
	expect(text, "clockid: 1", 2);
	free(text);
	pds_remove(&s);
}

/* The build id of the test binary itself. */
static int own_build_id(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *p = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		const char *end = p + info->dlpi_phdr[i].p_memsz;

		while (info->dlpi_phdr[i].p_type == PT_NOTE && p < end) {
			const ElfW(Nhdr) *n = (const void *)p;
			const char *desc = p + sizeof(*n) + ((n->n_namesz + 3) & ~3u);

			if (n->n_type == NT_GNU_BUILD_ID && n->n_descsz == 20)
				memcpy(out, desc, 20);
			p = desc + ((n->n_descsz + 3) & ~3u);
		}
	}
	return 1; /* the main program is the first */
}

Test(perfdata, build_ids_belong_to_the_mapped_names, .timeout = 120)
{
	struct pds s;
	uint8_t id[20] = {0}, short_id[8] = {0xab, 0xcd};
	char want[4300], *text;

	NEED_PERF();
	dl_iterate_phdr(own_build_id, id);
	pds_open(&s);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_sample_at(&s, LEAF);
	cr_expect(zero(int, vp_perfdata_add_build_id(s.w, own_path(), id, 20, 0)));
	cr_expect(zero(int, vp_perfdata_add_build_id(s.w, "/no/such file", short_id, 8, 0)));
	cr_expect(eq(int, vp_perfdata_add_build_id(s.w, "/x", id, 0, 0), -EINVAL));
	cr_expect(eq(int, vp_perfdata_add_build_id(s.w, "/x", id, 21, 0), -EINVAL));
	pds_close(&s);
	text = pds_perf(&s, "buildid-list");
	for (int i = 0; i < 20; i++)
		sprintf(want + 2 * i, "%02x", id[i]);
	snprintf(want + 40, sizeof(want) - 40, " %s\n", own_path());
	expect(text, want, 1);
	expect(text, "abcd000000000000 ", 1);
	expect(text, " /no/such file\n", 1);
	free(text);
	text = pds_script(&s); /* a build id that did not match would hide the symbol */
	expect(text, " vp_perfdata_test_leaf+0x1 (", 1);
	free(text);
	pds_remove(&s);
}

/* ---- order ---- */

Test(perfdata, a_walked_mapping_counts_before_samples_written_earlier, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_sample_at(&s, LEAF);
	s.now_ns += 1000000;
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, " vp_perfdata_test_leaf+0x1 (", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, a_mapping_found_by_a_sample_counts_before_it, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	s.now_ns += 1000;
	pds_map_self(&s, 0);
	s.now_ns -= 1000; /* the interrupt was before the mapping's record */
	pds_sample_at(&s, LEAF);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, "1.000000000:", 1);
	expect(text, " vp_perfdata_test_leaf+0x1 (", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, late_samples_keep_their_time_and_comm, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	s.now_ns = 600000000000;
	pds_sample(&s, PDS_TGID + 1, 0, NULL, 0, (uint64_t[]){LEAF}, 1);
	s.now_ns = 5000000000;
	pds_sample(&s, PDS_TGID + 1, 0, NULL, 0, (uint64_t[]){LEAF}, 1);
	s.now_ns = 3000000000;
	strcpy(s.comm, "earlier");
	pds_sample(&s, PDS_TGID + 1, 0, NULL, 0, (uint64_t[]){LEAF}, 1);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, "earlier 4200000/4200001 [001]     3.000000000: ", 1);
	expect(text, "worker 4200000/4200001 [001]     5.000000000: ", 1);
	expect(text, "worker 4200000/4200001 [001]   600.000000000: ", 1);
	free(text);
	pds_remove(&s);
}

/* ---- comms ---- */

Test(perfdata, comms_follow_the_thread_and_are_written_once, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	for (int i = 0; i < 10; i++)
		pds_sample_at(&s, LEAF);
	s.now_ns += 1000;
	strcpy(s.comm, "renamed comm 15");
	for (int i = 0; i < 10; i++)
		pds_sample_at(&s, LEAF);
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_COMM, 0), 2));
	text = pds_perf(&s, "script --ns --no-inline -F comm,time -G");
	expect(text, "worker     1.000000000: \n", 10);
	expect(text, "renamed comm 15     1.000001000: \n", 10);
	free(text);
	pds_remove(&s);
}

Test(perfdata, a_thread_is_renamed_when_it_was_and_not_at_its_next_sample, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_sample_at(&s, LEAF);
	s.now_ns += 2000;
	strcpy(s.comm, "renamed");
	pds_comm(&s, PDS_TGID);
	s.now_ns += 2000;
	pds_sample_at(&s, LEAF);
	pds_comm(&s, PDS_TGID); /* which the file says already */
	pds_comm(&s, PDS_TGID + 1);
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_COMM, 0), 3));
	text = pds_perf(&s, "script --ns --no-inline --show-task-events -F comm,tid,time,event");
	expect(text, "1.000002000: PERF_RECORD_COMM: renamed:4200000/4200000\n", 1);
	expect(text, "1.000004000: PERF_RECORD_COMM: renamed:4200000/4200001\n", 1);
	expect(text, "1.000004000: PERF_RECORD_COMM: renamed:4200000/4200000\n", 0);
	free(text);
	pds_remove(&s);
}

Test(perfdata, a_thread_sampled_first_names_its_process_until_the_leader_is_seen, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	strcpy(s.comm, "pool-1");
	pds_sample(&s, PDS_TGID + 1, 0, NULL, 0, (uint64_t[]){LEAF}, 1);
	strcpy(s.comm, "leader");
	s.now_ns += 1000;
	pds_sample(&s, 0, 0, NULL, 0, (uint64_t[]){LEAF}, 1);
	pds_close(&s);
	text = pds_perf(&s, "script --no-inline --show-task-events -F comm,pid,tid,event");
	expect(text, "PERF_RECORD_COMM: pool-1:4200000/4200001\n", 1);
	expect(text, "PERF_RECORD_COMM: pool-1:4200000/4200000\n", 1);
	expect(text, "PERF_RECORD_COMM: leader:4200000/4200000\n", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, the_idle_task_has_one_comm_on_all_cpus)
{
	struct pds s;

	pds_open(&s);
	s.proc = (struct vp_proc_id){0};
	for (int i = 0; i < 10; i++) {
		sprintf(s.comm, "swapper/%d", i % 2);
		pds_sample(&s, 0, VP_SAMPLE_F_KERNEL_MODE, NULL, 0, NULL, 0);
	}
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_COMM, 0), 1));
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL), 10));
	pds_remove(&s);
}

/* ---- processes ---- */

static struct vp_proc_id other_proc(uint32_t n)
{
	return (struct vp_proc_id){.start_ns = 900 + n, .tgid = PDS_TGID + n, .exec_id = 1};
}

Test(perfdata, a_forked_child_has_its_parents_mappings_and_comm, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_fork(&s, other_proc(10), PDS_TGID + 10);
	s.proc = other_proc(10);
	s.now_ns += 1000;
	pds_sample_at(&s, LEAF);
	pds_exit(&s, PDS_TGID + 10);
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_COMM, 0), 1));
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_FORK, 0), 1));
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_EXIT, 0), 1));
	text = pds_script(&s);
	expect(text, "worker 4200010/4200010 [001]     1.000001000: ", 1);
	expect(text, " vp_perfdata_test_leaf+0x1 (", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, inherited_mappings_are_written_again_and_pass_on, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_exit(&s, PDS_TGID); /* a daemon's parent may be gone by then */
	pds_inherit(&s, other_proc(10), s.proc);
	pds_inherit(&s, other_proc(11), other_proc(10));
	s.proc = other_proc(11);
	pds_sample_at(&s, LEAF);
	pds_close(&s);
	cr_expect(zero(u64, (unsigned long)pds_records(&s, PERF_RECORD_FORK, 0)));
	text = pds_script(&s);
	expect(text, "worker 4200011/4200011 ", 1);
	expect(text, " vp_perfdata_test_leaf+0x1 (", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, data_mappings_are_written_but_not_inherited)
{
	struct pds s;

	pds_open(&s);
	pds_map(&s, 0, 0x10000, 0x1000, 0, "/code");
	s.prot = 3;
	pds_map(&s, 0, 0x20000, 0x1000, 0, "/data");
	pds_inherit(&s, other_proc(10), s.proc);
	s.proc = other_proc(10);
	pds_sample_at(&s, 0x10000);
	pds_sample_at(&s, 0x20000);
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_MMAP2, 0), 3));
	pds_remove(&s);
}

Test(perfdata, inherited_mappings_that_no_sample_is_in_are_not_written_again)
{
	struct pds s;

	pds_open(&s);
	pds_map(&s, 0, 0x10000, 0x1000, 0, "/a");
	pds_map(&s, 0, 0x20000, 0x1000, 0, "/b");
	for (uint32_t i = 10; i < 30; i++)
		pds_inherit(&s, other_proc(i), s.proc);
	s.proc = other_proc(20);
	pds_sample_at(&s, 0x10000);
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_MMAP2, 0), 3));
	pds_remove(&s);
}

Test(perfdata, inherited_mappings_give_way_to_the_childs_own)
{
	struct pds s;
	struct vp_proc_id parent;

	pds_open(&s);
	parent = s.proc;
	pds_map(&s, 0, 0x10000, 0x1000, 0, "/a");
	pds_map(&s, 0, 0x20000, 0x1000, 0, "/b");
	s.proc = other_proc(10);
	pds_map(&s, 0, 0x20000, 0x2000, 0, "/c");
	pds_inherit(&s, s.proc, parent);
	pds_sample_at(&s, 0x10000);
	pds_sample_at(&s, 0x10000);
	pds_sample_at(&s, 0x20000);
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_MMAP2, 0), 4));
	pds_remove(&s);
}

Test(perfdata, a_walked_mapping_of_a_young_process_outlives_its_fork, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_fork(&s, other_proc(10), PDS_TGID + 10);
	s.proc = other_proc(10);
	s.now_ns += 1000;
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_sample_at(&s, LEAF);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, " vp_perfdata_test_leaf+0x1 (", 1);
	free(text);
	pds_remove(&s);
}

Test(perfdata, exec_renames_and_forgets_the_old_image, .timeout = 120)
{
	struct pds s;
	struct vp_proc_id before;
	char *text;

	NEED_PERF();
	pds_open(&s);
	before = s.proc;
	map_own_text(&s, 0, "/old");
	s.now_ns += 1000;
	s.proc.exec_id++; /* the new image is mapped before exec is over */
	map_own_text(&s, 0, own_path());
	s.proc.exec_id--;
	s.now_ns += 1000;
	pds_exec(&s, "new image");
	pds_inherit(&s, other_proc(10), before);
	pds_inherit(&s, other_proc(11), s.proc);
	s.now_ns += 1000;
	pds_sample_at(&s, LEAF);
	s.proc = other_proc(11);
	pds_sample_at(&s, LEAF);
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_MMAP2, 0), 3));
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC), 1));
	text = pds_script(&s);
	expect(text, "new image 4200000/4200000 [001]     1.000003000: ", 1);
	expect(text, " vp_perfdata_test_leaf+0x1 (", 2);
	free(text);
	pds_remove(&s);
}

Test(perfdata, threads_share_the_mappings_of_their_process, .timeout = 120)
{
	struct pds s;
	char *text;

	NEED_PERF();
	pds_open(&s);
	pds_map_self(&s, VP_MMAP2_F_FROM_WALK);
	pds_fork(&s, s.proc, PDS_TGID + 1);
	strcpy(s.comm, "thread");
	for (uint32_t tid = PDS_TGID + 1; tid <= PDS_TGID + 3; tid++)
		pds_sample(&s, tid, 0, NULL, 0, (uint64_t[]){LEAF}, 1);
	pds_exit(&s, PDS_TGID + 1);
	pds_close(&s);
	text = pds_script(&s);
	expect(text, "thread 4200000/4200001 ", 1);
	expect(text, "thread 4200000/4200003 ", 1);
	expect(text, " vp_perfdata_test_leaf+0x1 (", 3);
	free(text);
	pds_remove(&s);
}

/* ---- failure and size ---- */

Test(perfdata, a_full_disk_is_an_error_and_stays_one)
{
	static const struct vp_meta meta = {.event = "cpu-clock"};
	struct pds s = {.meta = meta, .proc = {.tgid = 1}};
	struct vp_rec_exit rec = {.proc.tgid = 1, .tid = 1};
	struct vp_perfdata *w;
	FILE *f = fopen("/dev/full", "w");
	int err = 0;

	cr_assert(zero(int, vp_perfdata_new(&w, f, &s.meta, 0, 0)));
	for (int i = 0; i < 10000 && !err; i++)
		err = vp_perfdata_exit(w, &rec);
	cr_expect(eq(int, err, -EIO));
	cr_expect(eq(int, vp_perfdata_exit(w, &rec), -EIO));
	cr_expect(eq(int, vp_perfdata_finish(w, &s.meta), -EIO));
	vp_perfdata_free(w);
	fclose(f);
}

Test(perfdata, a_disk_that_is_full_only_at_the_end_is_an_error)
{
	static const struct vp_meta meta = {.event = "cpu-clock"};
	struct vp_perfdata *w;
	FILE *f = fopen("/dev/full", "w");

	cr_assert(zero(int, vp_perfdata_new(&w, f, &meta, 0, 0)));
	cr_expect(eq(int, vp_perfdata_finish(w, &meta), -EIO));
	vp_perfdata_free(w);
	fclose(f);
}

Test(perfdata, a_pipe_is_refused)
{
	static const struct vp_meta meta = {.event = "cpu-clock"};
	struct vp_perfdata *w = NULL;
	int fd[2];
	FILE *f;

	cr_assert(zero(int, pipe(fd)));
	f = fdopen(fd[1], "w");
	cr_expect(eq(int, vp_perfdata_new(&w, f, &meta, 0, 0), -ESPIPE));
	fclose(f);
	close(fd[0]);
}

Test(perfdata, records_that_lie_about_their_size_are_refused)
{
	struct {
		struct vp_rec_mmap2 rec;
		char name[16];
	} m = {.rec.perf.size = sizeof(m.rec.perf)};
	struct vp_rec_sample deep = {.user_cnt = VP_MAX_USER_FRAMES + 1};
	struct pds s;

	pds_open(&s);
	cr_expect(eq(int, vp_perfdata_mmap2(s.w, &m.rec), -EINVAL));
	memset(m.name, 'x', sizeof(m.name));
	m.rec.perf.size = sizeof(m.rec.perf) + sizeof(m.name);
	cr_expect(eq(int, vp_perfdata_mmap2(s.w, &m.rec), -EINVAL));
	cr_expect(eq(int, vp_perfdata_sample(s.w, &deep, NULL, NULL), -EINVAL));
	pds_close(&s);
	pds_remove(&s);
}

static long resident_kb(void)
{
	long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	cr_assert(eq(int, fscanf(f, "%ld %ld", &total, &resident), 2));
	fclose(f);
	return resident * (getpagesize() / 1024);
}

Test(perfdata, memory_does_not_grow_with_samples, .timeout = 60)
{
	struct {
		struct vp_rec_sample rec;
		struct vp_frame frames[30];
	} r = {.rec = {.proc = {.tgid = PDS_TGID}, .user_cnt = 30, .comm = "worker"}};
	struct pds s;
	long before = 0;

	pds_open(&s);
	for (uint32_t i = 0; i < 100000; i++) {
		if (i == 2000) /* all threads were seen */
			before = resident_kb();
		r.rec.hdr.ts_ns = 1000000000 + i;
		r.rec.tid = PDS_TGID + i % 1000;
		cr_assert(zero(int, vp_perfdata_sample(s.w, &r.rec, NULL, r.frames)));
	}
	cr_expect(lt(long, resident_kb() - before, 2048));
	pds_close(&s);
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_SAMPLE, 0), 100000));
	cr_expect(eq(int, pds_records(&s, PERF_RECORD_COMM, 0), 1000));
	pds_remove(&s);
}
