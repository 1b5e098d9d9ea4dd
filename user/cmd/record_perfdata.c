/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "record_perfdata.h"

#include "../util/args.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NOTES_PATH    "/sys/kernel/notes"
#define MODULES_PATH  "/proc/modules"
#define NOTE_BUILD_ID 3 /* NT_GNU_BUILD_ID */

/* "ext4 1142784 1 - Live 0xffffffffc0a5b000": name, size, …, sixth the address. */
static int add_module(struct vp_perfdata *w, char *line)
{
	char *word[6], *rest = line;
	uint64_t start, len;

	for (int i = 0; i < 6; i++) {
		word[i] = strsep(&rest, " \n");
		if (!word[i])
			return 0;
	}
	if (vp_parse_u64(word[1], 10, &len) || vp_parse_u64(word[5], 16, &start) || !start)
		return 0;
	return vp_perfdata_kernel_module(w, word[0], start, len);
}

static int add_modules(struct vp_perfdata *w)
{
	FILE *f = fopen(MODULES_PATH, "re");
	char line[512];
	int err = 0;

	while (!err && f && fgets(line, sizeof(line), f))
		err = add_module(w, line);
	if (f)
		fclose(f);
	return err;
}

static int add_file_build_ids(struct vp_perfdata *w, const struct vp_files *files,
			      struct vp_symbolizer *s)
{
	int err = 0;

	for (uint32_t id = 0; id < files->cnt && !err; id++) {
		const struct vp_file *f = vp_files_get(files, id);
		struct vp_file_info info;

		if (!f || !f->requested || vp_symbolizer_file_info(s, id, &info))
			continue;
		if (info.build_id_len)
			err = vp_perfdata_add_build_id(w, f->name, info.build_id, info.build_id_len,
						       0);
	}
	return err;
}

struct note {
	uint32_t name_bytes;
	uint32_t desc_bytes;
	uint32_t type;
};

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* The note with owner "GNU" and the build id's type; NULL if there is none in n bytes. */
static const uint8_t *find_build_id(const uint8_t *notes, size_t n, uint8_t *len)
{
	size_t pos = 0;

	while (pos + sizeof(struct note) <= n) {
		struct note note;
		size_t name = pos + sizeof(note), desc;

		memcpy(&note, notes + pos, sizeof(note));
		if (note.name_bytes > n || note.desc_bytes > n)
			return NULL;
		desc = name + padded(note.name_bytes);
		if (desc + note.desc_bytes > n)
			return NULL;
		if (note.type == NOTE_BUILD_ID && note.name_bytes == sizeof("GNU") &&
		    !memcmp(notes + name, "GNU", sizeof("GNU")) && note.desc_bytes > 0 &&
		    note.desc_bytes <= VP_BUILD_ID_MAX) {
			*len = (uint8_t)note.desc_bytes;
			return notes + desc;
		}
		pos = desc + padded(note.desc_bytes);
	}
	return NULL;
}

static int add_kernel_build_id(struct vp_perfdata *w)
{
	int fd = open(NOTES_PATH, O_RDONLY | O_CLOEXEC);
	uint8_t notes[4096], len;
	const uint8_t *id;
	ssize_t n = fd < 0 ? 0 : read(fd, notes, sizeof(notes));

	if (fd >= 0)
		close(fd);
	id = n > 0 ? find_build_id(notes, (size_t)n, &len) : NULL;
	return id ? vp_perfdata_add_build_id(w, "[kernel.kallsyms]", id, len, 1) : 0;
}

int vp_record_perfdata_finish(struct vp_perfdata *w, const struct vp_meta *meta,
			      const struct vp_files *files, struct vp_symbolizer *s)
{
	uint64_t stext = 0, etext = 0;
	int err;

	/* Only now: reading kallsyms takes as long as everything else before the first sample. */
	vp_symbolizer_kernel_bounds(s, &stext, &etext);
	err = vp_perfdata_kernel(w, stext, etext);
	if (!err)
		err = add_modules(w);
	if (!err)
		err = add_file_build_ids(w, files, s);
	if (!err)
		err = add_kernel_build_id(w);
	return err ? err : vp_perfdata_finish(w, meta);
}
