/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "perfdata_session.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <ftw.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK(call) cr_assert(eq(int, (call), 0), "%s", #call)

static char *const argv_of_run[] = {"vmaprof", "record", "-F", "99", "-o", "a file.data"};

int pds_have_perf(void)
{
	return system("perf --version >/dev/null 2>&1") == 0;
}

static const struct vp_meta meta_of_run = {
	.version = "vmaprof 0.1",
	.hostname = "testhost",
	.release = "6.1.0-test",
	.arch = "x86_64",
	.cpu_desc = "A Processor @ 2 GHz",
	.target = "all processes",
	.event = "cpu-clock",
	.argc = 6,
	.argv = argv_of_run,
	.cpus_online = 2,
	.cpus_available = 4,
	.total_mem_kb = 1234567,
	.freq_hz = 99,
	.perf_type = PERF_TYPE_SOFTWARE,
	.perf_config = PERF_COUNT_SW_CPU_CLOCK,
	.first_ns = 1000000000,
	.last_ns = 2500000000,
};

void pds_open_kernel(struct pds *s, uint64_t stext, uint64_t etext)
{
	*s = (struct pds){
		.meta = meta_of_run,
		.proc = {.start_ns = 500, .tgid = PDS_TGID, .exec_id = 1},
		.now_ns = 1000000000,
		.comm = "worker",
		.prot = 5,
	};
	strcpy(s->dir, "/tmp/vp-perfdata-XXXXXX");
	cr_assert(ne(ptr, mkdtemp(s->dir), NULL));
	snprintf(s->file, sizeof(s->file), "%s/perf.data", s->dir);
	s->f = fopen(s->file, "w");
	cr_assert(ne(ptr, s->f, NULL));
	OK(vp_perfdata_new(&s->w, s->f, &s->meta, stext, etext));
}

void pds_open(struct pds *s)
{
	pds_open_kernel(s, 0, 0);
}

void pds_close(struct pds *s)
{
	OK(vp_perfdata_finish(s->w, &s->meta));
	vp_perfdata_free(s->w);
	s->w = NULL;
	OK(fclose(s->f));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void pds_remove(struct pds *s)
{
	nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- records ---- */

static struct vp_rec_hdr header(const struct pds *s, uint16_t kind, uint16_t flags, size_t size)
{
	return (struct vp_rec_hdr){
		.kind = kind, .flags = flags, .size = (uint32_t)size, .cpu = 1, .ts_ns = s->now_ns};
}

void pds_map(struct pds *s, uint16_t flags, uint64_t start, uint64_t len, uint64_t pgoff,
	     const char *name)
{
	size_t name_bytes = (strlen(name) + 8) & ~(size_t)7;
	size_t size = sizeof(struct vp_rec_mmap2) + name_bytes;
	struct vp_rec_mmap2 *rec = calloc(1, size);

	rec->hdr = header(s, VP_REC_MMAP2, flags, size);
	rec->proc = s->proc;
	rec->verdict = VP_VERDICT_FILE;
	rec->name_bytes = (uint16_t)name_bytes;
	memcpy(rec->comm, s->comm, sizeof(rec->comm));
	rec->perf = (struct vp_perf_mmap2){
		.type = VP_PERF_RECORD_MMAP2,
		.misc = VP_PERF_MISC_USER,
		.size = (uint16_t)(sizeof(rec->perf) + name_bytes),
		.pid = s->proc.tgid,
		.tid = s->proc.tgid,
		.addr = start,
		.len = len,
		.pgoff = pgoff,
		.maj = name[0] == '/' && name[1] != '/' ? 8 : 0,
		.ino = name[0] == '/' && name[1] != '/' ? 77 : 0,
		.prot = s->prot,
		.flags = 2,
	};
	strcpy((char *)(rec + 1), name);
	OK(vp_perfdata_mmap2(s->w, rec));
	free(rec);
}

void pds_map_self(struct pds *s, uint16_t flags)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4400], prot[8], name[4200];
	uint64_t start, end, pgoff;

	while (fgets(line, sizeof(line), maps)) {
		name[0] = 0;
		cr_assert(ge(int,
			     sscanf(line,
				    "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4199[^\n]",
				    &start, &end, prot, &pgoff, name),
			     4));
		if (prot[2] == 'x')
			pds_map(s, flags, start, end - start, pgoff, name[0] ? name : "//anon");
	}
	fclose(maps);
}

void pds_sample(struct pds *s, uint32_t tid, uint16_t flags, const uint64_t *kern,
		uint32_t kern_cnt, const uint64_t *user, uint32_t user_cnt)
{
	struct vp_rec_sample rec = {
		.hdr = header(s, VP_REC_SAMPLE, flags, sizeof(rec)),
		.proc = s->proc,
		.tid = tid ? tid : s->proc.tgid,
		.kern_cnt = (uint16_t)kern_cnt,
		.user_cnt = (uint16_t)user_cnt,
		.period = 1000,
	};
	struct vp_frame *frames = calloc(user_cnt + 1, sizeof(*frames));

	memcpy(rec.comm, s->comm, sizeof(rec.comm));
	for (uint32_t i = 0; i < user_cnt; i++)
		frames[i] = (struct vp_frame){.pc = user[i], .verdict = VP_VERDICT_FILE};
	OK(vp_perfdata_sample(s->w, &rec, kern, frames));
	free(frames);
}

void pds_sample_at(struct pds *s, uint64_t pc)
{
	pds_sample(s, 0, 0, NULL, 0, &pc, 1);
}

void pds_fork(struct pds *s, struct vp_proc_id child, uint32_t child_tid)
{
	struct vp_rec_fork rec = {
		.hdr = header(s, VP_REC_FORK, 0, sizeof(rec)),
		.child = child,
		.child_tid = child_tid,
		.parent_tgid = s->proc.tgid,
		.parent_tid = s->proc.tgid,
	};

	OK(vp_perfdata_fork(s->w, &rec));
}

void pds_inherit(struct pds *s, struct vp_proc_id proc, struct vp_proc_id from)
{
	struct vp_rec_inherit rec = {
		.hdr = header(s, VP_REC_INHERIT, 0, sizeof(rec)), .proc = proc, .from = from};

	OK(vp_perfdata_inherit(s->w, &rec));
}

void pds_exec(struct pds *s, const char *comm)
{
	struct vp_rec_exec rec = {.hdr = header(s, VP_REC_EXEC, 0, sizeof(rec)),
				  .tid = s->proc.tgid};

	s->proc.exec_id++;
	rec.proc = s->proc;
	snprintf(s->comm, sizeof(s->comm), "%s", comm);
	memcpy(rec.comm, s->comm, sizeof(rec.comm));
	OK(vp_perfdata_exec(s->w, &rec));
}

void pds_exit(struct pds *s, uint32_t tid)
{
	struct vp_rec_exit rec = {.hdr = header(s, VP_REC_EXIT, 0, sizeof(rec)),
				  .proc = s->proc,
				  .tid = tid,
				  .parent_tgid = 1};

	OK(vp_perfdata_exit(s->w, &rec));
}

void pds_comm(struct pds *s, uint32_t tid)
{
	struct vp_rec_comm rec = {
		.hdr = header(s, VP_REC_COMM, 0, sizeof(rec)), .proc = s->proc, .tid = tid};

	memcpy(rec.comm, s->comm, sizeof(rec.comm));
	OK(vp_perfdata_comm(s->w, &rec));
}

/* ---- what perf makes of it ---- */

static char *read_all(const char *path)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = fopen(path, "r");

	if (getdelim(&text, &len, '\0', f) < 0) {
		free(text);
		text = strdup("");
	}
	fclose(f);
	return text;
}

char *pds_perf(struct pds *s, const char *args)
{
	char cmd[1024], err_file[128], out_file[128];
	char *said;
	int rc;

	snprintf(out_file, sizeof(out_file), "%s/out", s->dir);
	snprintf(err_file, sizeof(err_file), "%s/err", s->dir);
	snprintf(cmd, sizeof(cmd),
		 "HOME=%s PERF_CONFIG=/dev/null LC_ALL=C perf %s -i %s >%s 2>%s </dev/null", s->dir,
		 args, s->file, out_file, err_file);
	rc = system(cmd);
	said = read_all(err_file);
	cr_assert(eq(str, said, ""), "perf %s", args);
	cr_assert(zero(int, rc), "perf %s", args);
	free(said);
	return read_all(out_file);
}

char *pds_script(struct pds *s)
{
	return pds_perf(s, "script --ns --no-inline --max-stack 1200 "
			   "-F comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso");
}

int pds_count(const char *text, const char *needle)
{
	int cnt = 0;

	while ((text = strstr(text, needle))) {
		text += strlen(needle);
		cnt++;
	}
	return cnt;
}

int pds_records(struct pds *s, uint32_t type, uint16_t misc_bits)
{
	struct perf_event_header h;
	uint64_t data[2], pos;
	FILE *f = fopen(s->file, "r");
	int cnt = 0;

	/* the data section's offset and size, in the file's header */
	cr_assert(zero(int, fseek(f, 40, SEEK_SET)));
	cr_assert(eq(sz, fread(data, 8, 2, f), 2));
	for (pos = data[0]; pos < data[0] + data[1]; pos += h.size) {
		cr_assert(zero(int, fseek(f, (long)pos, SEEK_SET)));
		cr_assert(eq(sz, fread(&h, sizeof(h), 1, f), 1));
		cr_assert(ge(u32, h.size, sizeof(h)));
		cr_assert(zero(u32, h.size % 8));
		cnt += h.type == type && (h.misc & misc_bits) == misc_bits;
	}
	cr_assert(eq(u64, pos, data[0] + data[1]), "records fill the data section");
	fclose(f);
	return cnt;
}
