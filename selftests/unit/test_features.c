/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <string.h>

#include "kernel/features.h"

static struct vp_features *features;

static void setup(void)
{
	cr_assert(zero(int, vp_features_new(&features)));
}

static void teardown(void)
{
	vp_features_free(features);
}

TestSuite(features, .init = setup, .fini = teardown);

Test(features, each_has_a_name_and_says_what_is_lost_and_how_to_get_it)
{
	for (int i = 0; i < VP_FEAT_CNT; i++) {
		const struct vp_feature *f = vp_features_get(features, (enum vp_feature_id)i);

		cr_assert(ne(ptr, (void *)f->name, NULL), "feature %d", i);
		cr_expect(ne(str, (char *)f->since, ""), "%s", f->name);
		cr_expect(ne(str, (char *)f->without, ""), "%s", f->name);
		cr_expect(ne(str, (char *)f->hint, ""), "%s", f->name);
		cr_expect(ne(ptr, (void *)f->detail, NULL), "%s", f->name);
		cr_expect(not(f->present && f->err), "%s", f->name);
	}
}

Test(features, names_are_unique_identifiers)
{
	const char *names[VP_FEAT_CNT];

	for (int i = 0; i < VP_FEAT_CNT; i++) {
		names[i] = vp_features_get(features, (enum vp_feature_id)i)->name;
		cr_expect(eq(sz, strspn(names[i], "abcdefghijklmnopqrstuvwxyz0123456789_"),
			     strlen(names[i])),
			  "%s", names[i]);
		for (int j = 0; j < i; j++)
			cr_expect(ne(str, (char *)names[i], (char *)names[j]));
	}
}

Test(features, an_answer_is_kept)
{
	const struct vp_feature *first = vp_features_get(features, VP_FEAT_TASK_FILTER);
	bool present = first->present;

	cr_assert(eq(ptr, (void *)first, (void *)vp_features_get(features, VP_FEAT_TASK_FILTER)));
	cr_assert(eq(int, vp_features_have(features, VP_FEAT_TASK_FILTER), present));
}

Test(features, freeing_nothing_is_fine)
{
	vp_features_free(NULL);
}
