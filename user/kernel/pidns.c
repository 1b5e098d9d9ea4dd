/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "pidns.h"

#include <sys/stat.h>

#define PROC_PID_INIT_INO 0xEFFFFFFCU /* include/linux/proc_ns.h: ABI in effect since 3.8 */

uint32_t vp_pidns_inum(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino == PROC_PID_INIT_INO)
		return 0;
	return (uint32_t)st.st_ino;
}
