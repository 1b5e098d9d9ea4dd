/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the cases of bpf_d_path and their programs. */
#ifndef DPATH_H
#define DPATH_H

#define DPATH_ROOM 4096

#endif
