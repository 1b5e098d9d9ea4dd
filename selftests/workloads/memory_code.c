// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -pthread -ldl */
/*
 * memory_code KIND [CPU_SECONDS]: code in memory that has a file, but none in a directory.
 *   shared|zero|memfd|sysv: made at run time; main -> run_code -> (JIT)
 *   vsyscall: the page of old; main -> spin_in_vsyscall -> run_vsyscall -> [vsyscall]
 *   library: plugin_a, dlopened from a memfd; main -> run_library -> plugin_run -> plugin_a_spin
 */
#include "workload.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <sys/shm.h>

#define BYTES 8192

typedef void code_fn(const volatile sig_atomic_t *stop);

static volatile unsigned long counter;

/* push rbp; mov rbp,rsp; 1: cmp dword [rdi],0; je 1; pop rbp; ret */
static const unsigned char spin[] = {0x55, 0x48, 0x89, 0xe5, 0x83, 0x3f,
				     0x00, 0x74, 0xfb, 0x5d, 0xc3};

void run_code(code_fn *code)
{
	code(&wl_stop);
	counter++;
}

void run_library(code_fn *code)
{
	code(&wl_stop);
	counter++;
}

void run_vsyscall(long (*time_in_page)(long *))
{
	while (!wl_stop)
		time_in_page(NULL);
	counter++;
}

static void no_vsyscall(int sig)
{
	(void)sig;
	puts("NONE");
	fflush(stdout);
	_exit(0);
}

static void spin_in_vsyscall(double cpu_s)
{
	void *page = (void *)0xffffffffff600400;

	signal(SIGSEGV, no_vsyscall);
	((long (*)(long *))page)(NULL);
	wl_stop_after(cpu_s);
	wl_ready("code=%p", page);
	run_vsyscall((long (*)(long *))page);
}

static void *map_code(int fd, int flags)
{
	return mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);
}

static void *make_memory(const char *kind)
{
	int fd;

	if (!strcmp(kind, "shared"))
		return map_code(-1, MAP_SHARED | MAP_ANONYMOUS);
	if (!strcmp(kind, "zero"))
		return map_code(open("/dev/zero", O_RDWR | O_CLOEXEC), MAP_PRIVATE);
	if (!strcmp(kind, "sysv")) {
		int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0700);
		void *p = shmat(id, NULL, SHM_EXEC);

		shmctl(id, IPC_RMID, NULL);
		return p;
	}
	fd = memfd_create("wl code", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, BYTES))
		wl_die("memfd");
	return map_code(fd, MAP_SHARED);
}

static code_fn *load_from_memfd(void)
{
	int fd = memfd_create("wl library", MFD_CLOEXEC);
	char path[64];
	void *lib;

	if (fd < 0)
		wl_die("memfd");
	wl_copy(wl_sibling("plugin_a"), fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		wl_die("%s", dlerror());
	close(fd);
	return (code_fn *)dlsym(lib, "plugin_run");
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "shared";
	bool library = !strcmp(kind, "library");
	void *code;

	wl_die_with_parent();
	if (!strcmp(kind, "vsyscall")) {
		spin_in_vsyscall(wl_arg(argc, argv, 2, 0));
		return 0;
	}
	code = library ? (void *)load_from_memfd() : make_memory(kind);
	if (!code || code == MAP_FAILED)
		wl_die("%s", kind);
	if (!library)
		memcpy(code, spin, sizeof(spin));
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	wl_ready("code=%p", code);
	if (library)
		run_library((code_fn *)code);
	else
		run_code((code_fn *)code);
	return 0;
}
