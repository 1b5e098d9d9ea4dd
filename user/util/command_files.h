/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a command will map when it starts, found out before it does. */
#ifndef VP_COMMAND_FILES_H
#define VP_COMMAND_FILES_H

#include "strings.h"

/*
 * Adds the paths of the command's executable (searched in PATH as execvp does), its dynamic
 * loader and the libraries that this says it will load (`LOADER --list`, as ldd asks). For a
 * script they are its interpreter's. What cannot be found out is left out: this is a hint.
 */
void vp_command_files(const char *command, struct vp_strings *files);

#endif
