// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * onevma: a process with as few mappings as the kernel allows, one executable page (and
 * [vsyscall], which nothing can unmap). It prints READY from that page when all is unmapped,
 * and pauses there.
 */
#include "workload.h"

#include <stddef.h>
#include <sys/syscall.h>

/*
 * The code is copied to the page and must use nothing else: no stack, no data. Ranges that the
 * kernel refuses to unmap (sealed ones) are left.
 * rdi: table of {start, length} in the same page, ended by length 0; rsi: the READY text;
 * rdx: its length.
 */
__asm__(".pushsection .text\n"
	"onevma_start:\n"
	"	mov %rdi, %rbx\n"
	"	mov %rsi, %r12\n"
	"	mov %rdx, %r13\n"
	"1:	mov (%rbx), %rdi\n"
	"	mov 8(%rbx), %rsi\n"
	"	test %rsi, %rsi\n"
	"	jz 2f\n"
	"	mov $11, %eax\n" /* munmap */
	"	syscall\n"
	"	add $16, %rbx\n"
	"	jmp 1b\n"
	"2:	mov $1, %eax\n" /* write */
	"	mov $1, %edi\n"
	"	mov %r12, %rsi\n"
	"	mov %r13, %rdx\n"
	"	syscall\n"
	"3:	mov $34, %eax\n" /* pause */
	"	syscall\n"
	"	jmp 3b\n"
	"onevma_end:\n"
	"	.popsection\n");

extern const char onevma_start[], onevma_end[];

typedef void unmap_fn(void *table, const char *text, size_t bytes);

#define TABLE_AT 256
#define TEXT_AT	 3584

/* The kernel would kill a process whose registered rseq area is gone. */
static void unregister_rseq(void)
{
	extern const ptrdiff_t __rseq_offset __attribute__((weak));

	if (&__rseq_offset)
		syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, 32, 1,
			0x53053053);
}

/* Every mapping but the page itself; one entry each, so that one refusal costs one range. */
static void fill_table(uint64_t *table, const char *page)
{
	unsigned long start, end;
	char line[8192];
	FILE *f = fopen("/proc/self/maps", "r");
	int n = 0;

	if (!f)
		wl_die("open /proc/self/maps");
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", &start, &end) != 2 || start == (unsigned long)page ||
		    strstr(line, "[vsyscall]") || n > 180)
			continue;
		table[2 * n] = start;
		table[2 * n++ + 1] = end - start;
	}
	fclose(f);
	table[2 * n] = table[2 * n + 1] = 0;
}

int main(void)
{
	char *page;
	int bytes;

	wl_die_with_parent();
	unregister_rseq();
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		wl_die("mmap");
	memcpy(page, onevma_start, (size_t)(onevma_end - onevma_start));
	bytes = snprintf(page + TEXT_AT, 256, "READY pid=%d onevma\n", getpid());
	/* a neighbour of the same kind would be merged with it: read and execute only */
	if (mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
		wl_die("mprotect");
	fill_table((uint64_t *)(page + TABLE_AT), page);
	((unmap_fn *)page)(page + TABLE_AT, page + TEXT_AT, (size_t)bytes);
	return 0;
}
