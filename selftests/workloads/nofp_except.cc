// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_except [catch|rethrow|throw [CPU_SECONDS]]
 *
 *   catch    spins in a function that a catch block calls
 *   rethrow  the same, in the second of two blocks: the first one threw anew
 *   throw    throws through twelve functions all the time: samples are in the C++ runtime,
 *            in the unwinder and in the dynamic loader that finds unwind information
 */
#include "nofp.h"

#include <stdexcept>

namespace ex
{
WL_STEP void catch_spin()
{
	while (!wl_stop)
		wl_count = wl_count + 1;
}

struct Guard {
	int *p;
	WL_STEP ~Guard()
	{
		*p += 1;
	}
};

template <int Level> struct Thrower {
	WL_STEP static int down(int n)
	{
		Guard guard{&n};

		WL_SPOIL_REGISTERS();
		return 1 + Thrower<Level - 1>::down(n);
	}
};

template <> struct Thrower<0> {
	WL_STEP static int down(int n)
	{
		WL_SPOIL_REGISTERS();
		if (n > 0)
			throw std::runtime_error("thrown");
		return n;
	}
};

WL_STEP int catches(int n)
{
	try {
		return Thrower<3>::down(n);
	} catch (const std::exception &e) {
		catch_spin();
		return e.what()[0];
	}
}

WL_STEP int rethrows(int n)
{
	try {
		return Thrower<3>::down(n);
	} catch (const std::runtime_error &) {
		throw std::logic_error("again");
	}
}

WL_STEP int catches_second(int n)
{
	try {
		return rethrows(n);
	} catch (const std::logic_error &e) {
		catch_spin();
		return e.what()[0];
	}
}

WL_STEP int throws_always(int n)
{
	while (!wl_stop) {
		try {
			n += Thrower<12>::down(1);
		} catch (const std::runtime_error &) {
			n++;
		}
	}
	return n;
}
} // namespace ex

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "catch";

	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	if (!strcmp(mode, "throw")) {
		wl_ready("throw");
		return ex::throws_always(argc) == 0;
	}
	if (!strcmp(mode, "rethrow")) {
		wl_ready("chain=main;ex::catches_second;ex::catch_spin");
		return ex::catches_second(argc) == 0;
	}
	wl_ready("chain=main;ex::catches;ex::catch_spin");
	return ex::catches(argc) == 0;
}
