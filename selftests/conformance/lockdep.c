// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What lockdep thinks of all that the other cases did. The last of the cases. */
#include "case.h"
#include "facts.h"

static void finds_nothing(void)
{
	enum fact_lockdep before = fact_lockdep_at_start(), now = fact_lockdep();

	if (before == LOCKDEP_ABSENT)
		ct_skip("no lockdep in this kernel (CONFIG_PROVE_LOCKING)");
	if (before == LOCKDEP_OFF)
		ct_skip("lockdep had something to complain of before, and is off since (dmesg)");
	ct_expect(now == LOCKDEP_ON, "lockdep complains (dmesg)");
}

static const struct ct_case cases[] = {
	CT_CASE("lockdep/", finds_nothing, "nothing to complain of in the cases that ran before",
		.numbers = "23"),
};

CT_GROUP(lockdep_cases, cases);
