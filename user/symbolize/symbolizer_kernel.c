/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of the kernel's code, by kallsyms, which is read when it is needed and again as code comes. */
#include "symbolizer_inner.h"

#include "kernel_code.h"

#include <errno.h>
#include <stdlib.h>

/* Modules' names are interned: they are handed out and must outlive the table. */
static const char **intern_modules(struct vp_symbolizer *s, const struct kallsyms *k)
{
	const char **modules = calloc(k->module_cnt + 1, sizeof(*modules));

	for (size_t i = 0; modules && i < k->module_cnt; i++) {
		modules[i] = string_set_intern(&s->strings, k->modules[i].name);
		if (!modules[i]) {
			free(modules);
			return NULL;
		}
	}
	return modules;
}

/* Takes k over. */
static int publish_kernel(struct vp_symbolizer *s, struct kallsyms *k)
{
	struct kallsyms *unused = k;

	pthread_rwlock_wrlock(&s->lock);
	const char **modules = intern_modules(s, k);
	if (modules) {
		unused = s->kernel;
		s->kernel = k;
		free(s->kernel_modules);
		s->kernel_modules = modules;
		s->kernel_serial = ++s->last_serial;
		ptr_map_fini(&s->kernel_names);
	}
	pthread_rwlock_unlock(&s->lock);
	kallsyms_free(unused);
	return modules ? 0 : -ENOMEM;
}

/* With kernel_mutex held; the stamp is of before: what changes meanwhile is read again. */
static int read_kernel(struct vp_symbolizer *s, uint64_t stamp)
{
	struct kallsyms *k;
	int err = kallsyms_read(&k, s->kallsyms_path);

	if (!err)
		err = publish_kernel(s, k);
	if (!err)
		s->kernel_code = stamp;
	return err;
}

int vp_symbolizer_kernel_refresh(struct vp_symbolizer *s)
{
	uint64_t stamp = s->is_copy ? 0 : kernel_code_stamp();
	int err = 0;

	pthread_mutex_lock(&s->kernel_mutex);
	if (!s->kernel || !stamp || stamp != s->kernel_code)
		err = read_kernel(s, stamp);
	pthread_mutex_unlock(&s->kernel_mutex);
	return err;
}

/* Returns with the lock held for reading; s->kernel may be NULL if memory is short. */
static void lock_kernel(struct vp_symbolizer *s)
{
	pthread_rwlock_rdlock(&s->lock);
	if (s->kernel)
		return;
	pthread_rwlock_unlock(&s->lock);

	pthread_mutex_lock(&s->kernel_mutex);
	if (!s->kernel) /* only written under this mutex */
		read_kernel(s, 0);
	pthread_mutex_unlock(&s->kernel_mutex);
	pthread_rwlock_rdlock(&s->lock);
}

static enum vp_sym_reason find_in_kernel(const struct kallsyms *k, uint64_t addr,
					 struct symtab_hit *hit)
{
	if (!k)
		return VP_SYM_NOT_LOADED; /* no memory */
	if (k->reason != VP_SYM_OK)
		return k->reason;
	return symtab_find(k->table, addr, hit) ? VP_SYM_GAP : VP_SYM_OK;
}

int vp_symbolizer_kernel(struct vp_symbolizer *s, uint64_t addr, struct vp_symbol *out)
{
	struct symtab_hit hit;

	*out = (struct vp_symbol){0};
	lock_kernel(s);
	out->reason = find_in_kernel(s->kernel, addr, &hit);
	if (out->reason != VP_SYM_OK) {
		pthread_rwlock_unlock(&s->lock);
		return -ENOENT;
	}

	const char *module = s->kernel_modules[hit.tag];
	const struct name_place at = {&s->kernel_names, s->kernel_serial, &s->kernel_serial, NULL};
	int err = registry_name_hit(s, &at, s->kernel->table, &hit, out);
	if (!err)
		out->module = module;
	return err;
}

int vp_symbolizer_kernel_bounds(struct vp_symbolizer *s, uint64_t *stext, uint64_t *etext)
{
	int err = -ENOENT;

	lock_kernel(s);
	if (s->kernel && s->kernel->stext && s->kernel->etext > s->kernel->stext) {
		*stext = s->kernel->stext;
		*etext = s->kernel->etext;
		err = 0;
	}
	pthread_rwlock_unlock(&s->lock);
	return err;
}
