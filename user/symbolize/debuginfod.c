/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "debuginfod.h"

#include "../util/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define LIBRARY	    "libdebuginfod.so.1"
#define SERVERS_ENV "DEBUGINFOD_URLS"

/* Of the library's header, which need not be there; its interface is versioned by name. */
typedef struct debuginfod_client client;
typedef int (*progress_fn)(client *c, long a, long b);

struct debuginfod {
	void *library;
	client *(*begin)(void);
	void (*end)(client *c);
	int (*find_debuginfo)(client *c, const unsigned char *id, int len, char **path);
	void (*set_progressfn)(client *c, progress_fn fn);
	uint64_t file_ns, total_ns;
	atomic_uint_fast64_t spent_ns;
};

/* Of the fetch that this thread is at, which is the one whose progress it is told of. */
static __thread uint64_t deadline_ns;

/* Not 0: give up. */
static int on_progress(client *c, long a, long b)
{
	(void)c;
	(void)a;
	(void)b;
	return vp_now_ns() > deadline_ns;
}

static int load(struct debuginfod *d)
{
	d->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!d->library)
		return -ENOENT;
	*(void **)&d->begin = dlsym(d->library, "debuginfod_begin");
	*(void **)&d->end = dlsym(d->library, "debuginfod_end");
	*(void **)&d->find_debuginfo = dlsym(d->library, "debuginfod_find_debuginfo");
	*(void **)&d->set_progressfn = dlsym(d->library, "debuginfod_set_progressfn");
	return d->begin && d->end && d->find_debuginfo && d->set_progressfn ? 0 : -ENOENT;
}

int debuginfod_new(struct debuginfod **out, uint64_t file_ns, uint64_t total_ns)
{
	const char *servers = getenv(SERVERS_ENV);
	struct debuginfod *d;
	int err;

	if (!servers || !*servers)
		return -EDESTADDRREQ;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->file_ns = file_ns;
	d->total_ns = total_ns;
	err = load(d);
	if (err)
		debuginfod_free(d);
	else
		*out = d;
	return err;
}

/* The library stays loaded: what it uses leaves threads and handlers behind. */
void debuginfod_free(struct debuginfod *d)
{
	free(d);
}

static int find(struct debuginfod *d, const uint8_t *id, size_t len)
{
	client *c = d->begin();
	int fd;

	if (!c)
		return -ENOMEM;
	d->set_progressfn(c, on_progress);
	fd = d->find_debuginfo(c, id, (int)len, NULL);
	d->end(c);
	return fd;
}

int debuginfod_fetch(void *ctx, const uint8_t *build_id, size_t len)
{
	struct debuginfod *d = ctx;
	uint64_t begun_ns = vp_now_ns();
	int fd;

	if (atomic_load(&d->spent_ns) >= d->total_ns)
		return -ETIME;
	deadline_ns = begun_ns + d->file_ns;
	fd = find(d, build_id, len);
	atomic_fetch_add(&d->spent_ns, vp_now_ns() - begun_ns);
	return fd;
}
