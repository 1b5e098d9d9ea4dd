// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The shared maps and no program: loaded first, so that the others can reuse them. */
#include "vp_maps.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
