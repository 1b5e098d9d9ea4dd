/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands. Each takes its own name as argv[0] and returns vmaprof's exit code. */
#ifndef VP_CMD_H
#define VP_CMD_H

int cmd_record(int argc, char **argv);
int cmd_maps(int argc, char **argv);
int cmd_find(int argc, char **argv);
int cmd_sym(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_show_rows(int argc, char **argv);

/* Set by main: the build's version, and the whole command line, for the outputs' headers. */
extern const char *vp_version;
extern int vp_argc;
extern char **vp_argv;

#endif
