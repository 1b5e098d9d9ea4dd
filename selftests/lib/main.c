/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main of the test binaries. Criterion's own would run tests without any time limit, and exit
 * 0 when no test ran at all.
 *
 * Compiled once per binary, with VP_TEST_unit or VP_TEST_bpf defined.
 */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <criterion/options.h>

#include <stdio.h>
#include <unistd.h>

#include "target.h"

#ifdef VP_TEST_bpf
#define DEFAULT_TIMEOUT_S 30 /* loading programs takes time on a loaded machine */
#else
#define DEFAULT_TIMEOUT_S 10
#endif

/*
 * A test that declares no time limit, nor its suite, has none, so that one that hangs would hang
 * the run.
 */
ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
	FOREACH_SET(struct criterion_suite_set *suite, tests->suites) {
		FOREACH_SET(struct criterion_test *test, suite->tests) {
			const struct criterion_test_extra_data *of_suite = suite->suite.data;

			if (test->data->timeout == 0 && of_suite)
				test->data->timeout = of_suite->timeout;
			if (test->data->timeout == 0)
				test->data->timeout = DEFAULT_TIMEOUT_S;
			test->data->timeout *= test_patience();
		}
	}
}

static size_t run_cnt;

ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
	/* nb_tests counts those that the filter left out, too */
	run_cnt = stats->tests_passed + stats->tests_failed + stats->tests_crashed;
}

int main(int argc, char **argv)
{
	struct criterion_test_set *tests = criterion_initialize();
	int err = 0;

#ifdef VP_TEST_bpf
	/* maps, sysctls and the sampler's interrupts are the machine's: one test at a time */
	criterion_options.jobs = 1;
#endif
	/* parses -l, -h and --version too, and says with 0 that there is nothing to run */
	if (criterion_handle_args(argc, argv, true)) {
		err = !criterion_run_all_tests(tests);
		if (run_cnt == 0) {
			fprintf(stderr, "no test ran: does the filter match any?\n");
			err = 1;
		}
	}
	criterion_finalize(tests);

	/*
	 * Tests run in processes of their own. Leaving without exit handlers keeps LeakSanitizer
	 * from reporting what Criterion itself leaks here, and nothing else: suppressing
	 * libcriterion by name would hide the tests' own leaks, which are all below it.
	 */
	fflush(NULL);
	_exit(err);
}
