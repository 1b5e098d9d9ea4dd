/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From (file, file offset) and kernel addresses to names. Tables are read once per file, as
 * soon as a sample needs them (the process may be gone a moment later). The only files that stay
 * open are, at most 64 of them, those of large tables, whose names are read as they are asked for,
 * and those that are kept because someone opens them later.
 */
#ifndef VP_SYMBOLIZER_H
#define VP_SYMBOLIZER_H

#include "../../include/vp_xmap.h"
#include "../util/err.h"

#include <stddef.h>
#include <stdint.h>

struct vp_symbolizer;
struct debug_files;
struct debug_finder;

/* Where a name came from; vp_sym_source_text() for programs. Append only. */
enum vp_sym_source {
	VP_SYM_NONE,
	VP_SYM_SYMTAB,
	VP_SYM_DYNSYM,
	VP_SYM_KALLSYMS,
	VP_SYM_VDSO,
	VP_SYM_DEBUGDATA, /* .gnu_debugdata */
	VP_SYM_GOPCLNTAB, /* .gopclntab of a stripped Go program */
	VP_SYM_PLT,	  /* a stub: NAME@plt */
};
#define VP_SYM_SOURCE_CNT (VP_SYM_PLT + 1)

/* Why there is no name; vp_sym_reason_text() says it to a person. */
enum vp_sym_reason {
	VP_SYM_OK,
	VP_SYM_NOT_LOADED,  /* the file has not been read (yet) */
	VP_SYM_CANNOT_OPEN, /* gone, or not allowed */
	VP_SYM_OTHER_FILE,  /* what the name leads to now is not what is mapped */
	VP_SYM_NOT_ELF,	    /* not an ELF file, or a damaged one */
	VP_SYM_NO_SYMBOLS,  /* stripped */
	VP_SYM_NO_SEGMENT,  /* the offset lies in no executable segment */
	VP_SYM_GAP,	    /* no symbol covers the address */
	VP_SYM_HIDDEN,	    /* kernel addresses are hidden (kptr_restrict) */
	VP_SYM_OVER_LIMIT,  /* the memory limit was reached */
	VP_SYM_GONE,	    /* its file was changed or removed before all of it was read */
};
#define VP_SYM_REASON_CNT (VP_SYM_GONE + 1)

struct vp_symbol {
	/*
	 * Demangled, without version (name@@V1), else the file's bytes: no encoding is promised,
	 * writers escape. NULL if none. Equal names are one pointer. Borrowed, valid as long as
	 * the symbolizer.
	 */
	const char *name;
	const char *module; /* kernel: "[kernel]" or a module's "[name]"; else NULL */
	uint64_t offset;    /* of the address in the symbol, bytes */
	enum vp_sym_source source;
	enum vp_sym_reason reason;
};

/* A mapping through which the file can be opened. */
struct vp_mapped_file {
	uint32_t tgid;
	uint64_t start, end;			 /* the VMA: /proc/TGID/map_files/START-END */
	const char *name;			 /* fallback: below /proc/TGID/root, then below / */
	struct vp_file_key key;			 /* what it must be */
	uint32_t user_dev_major, user_dev_minor; /* device and inode as stat(2) shows them */
	uint64_t user_ino;
};

/* As the kernel has it; a longer id counts as none. */
#define VP_BUILD_ID_MAX 20

/* What was learned of a file. */
struct vp_file_info {
	enum vp_sym_reason reason; /* VP_SYM_OK or why nothing can be named */
	uint8_t build_id[VP_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: none */
	size_t symbol_cnt;
	int has_debug; /* there was debug information, its own or in other files; if keep_files */
	size_t symtab_cnt; /* … of a .symtab, its own or its debug file's: there are no better ones */
	uint64_t bytes; /* memory its table takes; 0 while it is evicted */
};

struct vp_symbolizer_opts {
	const char *kallsyms_path; /* NULL: /proc/kallsyms */
	/*
	 * Of all files' tables and of names handed out (not of the kernel's table); 0: 256 MiB.
	 * Beyond it tables are evicted, the one not asked for the longest first and those whose
	 * file cannot be opened again last, and read again when they are asked for. Names stay.
	 */
	uint64_t max_bytes;
	/*
	 * Names of large tables are held in memory, too, instead of the files they are in being
	 * held open.
	 */
	int names_in_memory;
	/*
	 * When tables take that much, those that follow have such names packed: a quarter of the
	 * memory for twice the time to read them. 0: an eighth of max_bytes.
	 */
	uint64_t pack_bytes;
	int demangle;
	/*
	 * For vp_symbolizer_open and vp_symbolizer_open_debug: what is loaded, and the files that its
	 * debug information is in, are kept open, up to 256 of them or a quarter of what this process
	 * may open. Those that no name leads to below our root (deleted, replaced, of another mount
	 * namespace) take the place of others, which are lost only if they are deleted later.
	 */
	int keep_files;
	const char *host_root; /* whose /usr/lib/debug has debug files; NULL: "/" */
	/* Where debug files are got from that are nowhere here; a debug_fetch_fn. NULL: nowhere. */
	int (*fetch)(void *ctx, const uint8_t *build_id, size_t len);
	void *fetch_ctx; /* borrowed until vp_symbolizer_free */
};

/* NULL opts: defaults with demangling. -ENOMEM. Free with vp_symbolizer_free (NULL is fine). */
int vp_symbolizer_new(struct vp_symbolizer **out, const struct vp_symbolizer_opts *opts);
void vp_symbolizer_free(struct vp_symbolizer *s);

/*
 * Opens the file, reads what it needs and closes it. Thread-safe against itself and the
 * look-ups. A second call for a known file_id returns at once. 0, also when nothing can be
 * named (vp_symbolizer_file_info tells); -ENOMEM. Never blocks on FIFOs or devices; a
 * hostile file costs bounded time and memory.
 */
int vp_symbolizer_load(struct vp_symbolizer *s, uint32_t file_id, const struct vp_mapped_file *f);

/* The same for one that is open already: fd, taken, or what mapped_file_open() has failed with. */
int vp_symbolizer_load_opened(struct vp_symbolizer *s, uint32_t file_id,
			      const struct vp_mapped_file *f, int fd);

/* The same for a file that no process maps, by its path. */
int vp_symbolizer_load_path(struct vp_symbolizer *s, uint32_t file_id, const char *path);

/*
 * Reads a file again that lacks a .symtab, if opts.fetch has its debug file by now. Not while the
 * same file is being loaded.
 */
void vp_symbolizer_read_fetched(struct vp_symbolizer *s, uint32_t file_id);

/* -ENOENT if the file was never loaded. */
int vp_symbolizer_file_info(struct vp_symbolizer *s, uint32_t file_id, struct vp_file_info *out);

/*
 * The very file that was loaded, for reading; the caller closes it. Its file offset is not the
 * caller's alone: to be read by pread. -ESTALE: its name leads to another file now, or it was
 * written to; -ENOENT: it was never loaded, or nothing leads to it any more; or another errno.
 */
int vp_symbolizer_open(struct vp_symbolizer *s, uint32_t file_id);

/*
 * The files its debug information is in besides itself, as far as they were kept; the caller closes
 * them, and looks for the others. They too are to be read by pread.
 */
void vp_symbolizer_open_debug(struct vp_symbolizer *s, uint32_t file_id, struct debug_files *out);

/* What finds the debug files of its files; the symbolizer's. */
struct debug_finder *vp_symbolizer_finder(struct vp_symbolizer *s);

/*
 * Name of a file offset (pc - start + pgoff). The caller subtracts 1 from a return address.
 * Always fills out; returns 0 if named, else -ENOENT with out->reason.
 */
int vp_symbolizer_file(struct vp_symbolizer *s, uint32_t file_id, uint64_t offset,
		       struct vp_symbol *out);

/*
 * Has the names of many file offsets ready for vp_symbolizer_file(), in less time than that takes one
 * by one: those that are packed or in their file are read in the order that they have there.
 */
void vp_symbolizer_expect(struct vp_symbolizer *s, uint32_t file_id, const uint64_t *offsets,
			  size_t cnt);

/* Link-time address, as addr2line takes, to file offset. -ENOENT: in no executable segment. */
int vp_symbolizer_offset_of(struct vp_symbolizer *s, uint32_t file_id, uint64_t vaddr,
			    uint64_t *offset);

/*
 * As vp_symbolizer_file, for an offset in the vdso (one image for all 64-bit processes: our
 * own).
 */
int vp_symbolizer_vdso(struct vp_symbolizer *s, uint64_t offset, struct vp_symbol *out);

/* As vp_symbolizer_file, for a kernel address; kallsyms is read at the first call. */
int vp_symbolizer_kernel(struct vp_symbolizer *s, uint64_t addr, struct vp_symbol *out);

/*
 * Reads kallsyms, and reads it again if modules or BPF programs may have come or gone since. Names
 * handed out stay valid. 0 or -ENOMEM (what was known stays).
 */
int vp_symbolizer_kernel_refresh(struct vp_symbolizer *s);

/*
 * Bounds of the kernel's text for perf.data's kernel MMAP record: _text/_stext and _etext.
 * -ENOENT if addresses are hidden.
 */
int vp_symbolizer_kernel_bounds(struct vp_symbolizer *s, uint64_t *stext, uint64_t *etext);

struct vp_symbolizer_stats {
	uint64_t file_cnt[VP_SYM_REASON_CNT]; /* files read, by what came of it; [VP_SYM_OK] */
	/* These three together are within the limit. */
	uint64_t table_bytes; /* of files' tables */
	uint64_t fixed_bytes; /* of what else is known of files */
	uint64_t name_bytes;  /* of names handed out */
	uint64_t name_cnt;
	uint64_t evicted_cnt; /* tables that made room for others */
	uint64_t reread_cnt;  /* of those, read again */
	/* Files that lost their names to the limit: no room, or evicted and gone since. */
	uint64_t lost_file_cnt;
	uint64_t lost_name_cnt;	  /* look-ups without a name for want of room */
	uint64_t kept_fd_cnt;	  /* descriptors of files that are kept open */
	uint64_t unreachable_cnt; /* files that no name leads to and that are not kept */
	uint64_t unkept_cnt;	  /* other files that are not, for want of descriptors */
};

void vp_symbolizer_get_stats(struct vp_symbolizer *s, struct vp_symbolizer_stats *out);

/* One word, e.g. "symtab", as `vmaprof sym --json` has it. Static. */
const char *vp_sym_source_text(enum vp_sym_source source);

/* A short phrase for a person, e.g. "stripped: no symbols". Static. */
const char *vp_sym_reason_text(enum vp_sym_reason reason);

#endif
