/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this kernel is, as far as the cases expect different things of it: from its BTF, never from its version. */
#ifndef FACTS_H
#define FACTS_H

#include <stdbool.h>

/* Has struct `type` a member of that name? */
bool fact_member(const char *type, const char *member);
/* Is that member of that type, by its name or its typedef's? */
bool fact_member_is(const char *type, const char *member, const char *name);
/* How many arguments has the function? -1: there is none of that name. */
int fact_arguments(const char *name);
/* Has the kernel a function (or kfunc) of that name? */
bool fact_function(const char *name);
/* CONFIG_PREEMPT_RT. */
bool fact_rt(void);
/* Are we in a virtual machine, whose loss hurts nobody? Said by who boots it: vmaprof.sacrificial on the command line. */
bool fact_sacrificial(void);
/* How many CPUs this process may run on: a taskset or a cgroup can leave fewer than there are. */
int fact_cpus(void);

/* CONFIG_PROVE_LOCKING, and whether it is still at work: it ends with its first complaint. */
enum fact_lockdep { LOCKDEP_ABSENT, LOCKDEP_OFF, LOCKDEP_ON };
enum fact_lockdep fact_lockdep(void);
/* As the first call found it. main() makes that before any case runs. */
enum fact_lockdep fact_lockdep_at_start(void);

#endif
