/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "spinner.h"

#include "../../include/vp_record.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

__asm__(".pushsection .text\n"
	".globl call_outermost\n"
	".type call_outermost, @function\n"
	"call_outermost:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	push %rbp\n"
	"	xor %ebp, %ebp\n"
	"	call *%rdi\n"
	"	pop %rbp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size call_outermost, . - call_outermost\n"
	".popsection\n");

volatile bool enough;
static volatile uint64_t turns;

__attribute__((noipa)) void spin_leaf(void)
{
	KEEP_FRAME();
	while (!enough)
		turns++;
}

__attribute__((noipa)) static void spin_middle(void)
{
	spin_leaf();
	NOT_THE_END();
}

__attribute__((noipa)) void spin_root(void)
{
	spin_middle();
	NOT_THE_END();
}

int spin_depth;

__attribute__((noipa)) static void spin_deep(int n)
{
	if (n > 0)
		spin_deep(n - 1);
	else
		spin_leaf();
	NOT_THE_END();
}

__attribute__((noipa)) void spin_at_depth(void)
{
	spin_deep(spin_depth);
	NOT_THE_END();
}

bool is_in(uint64_t pc, void (*fn)(void))
{
	return pc >= (uint64_t)fn && pc < (uint64_t)fn + FUNCTION_MAX;
}

bool is_spin_root_chain(const struct vp_frame *f, size_t cnt)
{
	return cnt == 4 && is_in(f[0].pc, spin_leaf) && is_in(f[1].pc, spin_middle) &&
	       is_in(f[2].pc, spin_root) && is_in(f[3].pc, (void (*)(void))call_outermost);
}

void spin(void *arg)
{
	prctl(PR_SET_NAME, "vp spinner");
	target_tell(0);
	call_outermost(arg);
}

void start_spinning(struct target *t, void (*fn)(void))
{
	target_start(t, spin, fn);
	target_hear(t);
}

/* push %rbp; mov %rsp,%rbp; 1: pause; jmp 1b */
const uint8_t endless_code[8] = {0x55, 0x48, 0x89, 0xe5, 0xf3, 0x90, 0xeb, 0xfc};

/* push %rbp; mov %rsp,%rbp; mov $N,%ecx; 1: dec %ecx; jne 1b; pop %rbp; ret */
const uint8_t short_code[15] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0x00, 0x00, 0x10,
				0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};

/*
 * push %rbp; mov %rsp,%rbp; push %rdi; push %rsi; mov %esi,%ecx; 1: dec %ecx; jne 1b;
 * mov (%rdi),%rax; test %rax,%rax; je 2f; add $8,%rdi; call *%rax;
 * 2: pop %rsi; pop %rdi; mov %esi,%ecx; 3: dec %ecx; jne 3b; pop %rbp; ret
 */
const uint8_t chain_code[36] = {0x55, 0x48, 0x89, 0xe5, 0x57, 0x56, 0x89, 0xf1, 0xff,
				0xc9, 0x75, 0xfc, 0x48, 0x8b, 0x07, 0x48, 0x85, 0xc0,
				0x74, 0x06, 0x48, 0x83, 0xc7, 0x08, 0xff, 0xd0, 0x5e,
				0x5f, 0x89, 0xf1, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};

int code_file(size_t pages, const uint8_t *code, size_t size)
{
	char path[] = "/tmp/vmaprof-sampler.XXXXXX";
	int fd = mkstemp(path);

	target_check(fd >= 0 && !unlink(path));
	for (size_t i = 0; i < pages; i++)
		target_check(pwrite(fd, code, size, (off_t)(i * PAGE)) == (ssize_t)size);
	target_check(!ftruncate(fd, (off_t)(pages * PAGE)));
	return fd;
}
