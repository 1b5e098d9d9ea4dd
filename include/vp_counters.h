/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters that the BPF programs keep, per CPU, in the map `counters`: one __u64 each.
 * Each is written by atomic adds only (a sample can interrupt a tracepoint program on the
 * same CPU) and summed over the CPUs by user/kernel/counters.c, whose table of names must follow.
 */
#ifndef VP_COUNTERS_H
#define VP_COUNTERS_H

#define VP_CNT_SAMPLES		 0 /* samples delivered */
#define VP_CNT_LOST_SAMPLE	 1 /* samples lost: ring full */
#define VP_CNT_LOST_MMAP2	 2 /* mappings whose record was lost: ring full */
#define VP_CNT_LOST_EVENT	 3 /* exec, fork, exit or inherit records lost: ring full */
#define VP_CNT_PROC_FULL	 4 /* processes without a table: no room */
#define VP_CNT_XMAP_FULL	 5 /* mappings beyond a process's table: kept in the shared cache */
#define VP_CNT_FILE_FULL	 6 /* files beyond the table of identities */
#define VP_CNT_TABLE_BUSY	 7 /* mappings not entered: no table, or it was being changed */
#define VP_CNT_FIND_OK		 8 /* bpf_find_vma in samples: answered */
#define VP_CNT_FIND_NONE	 9 /* … nothing mapped there */
#define VP_CNT_FIND_BUSY	 10 /* … could not be asked */
#define VP_CNT_FRAMES		 11 /* user frames delivered */
#define VP_CNT_FRAMES_UNRESOLVED 12 /* … whose mapping was unknown and could not be asked */
#define VP_CNT_NAME_CUT		 13 /* file names longer than VP_PATH_MAX */
#define VP_CNT_WALK_DEDUPE_FULL	 14 /* leaderless processes beyond the walk's set */
#define VP_CNT_TARGET_FULL	 15 /* child processes that could not be followed: no room */
#define VP_CNT_KERN_STACK_FAILED 16 /* samples without a kernel stack: bpf_get_stack failed */
#define VP_CNT_LOST_USER_STACK	 17 /* deferred user stacks lost: ring full */
#define VP_CNT_DEFER_FAILED	 18 /* user stacks that could not be deferred: no room, or refused */
#define VP_CNT_TASK_NS		 19 /* deferred mode: time spent on user stacks in tasks */
#define VP_CNT_TREE_OK		 20 /* mappings found in the mm's tree, without bpf_find_vma */
#define VP_CNT_LIVE_BUSY	 21 /* new mappings not looked at: the CPU was busy with another */
#define VP_CNT_CNT		 22

#endif
