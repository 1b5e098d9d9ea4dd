// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_cc [CPU_SECONDS]: C++ without frame pointers. An exception is thrown; on its way a
 * destructor spins, which the landing pad of a function calls: cold code away from the rest
 * of the function if the compiler optimizes.
 */
#include "nofp.h"

namespace nf
{
WL_STEP void spin()
{
	while (!wl_stop)
		wl_count = wl_count + 1;
}

struct Guard {
	char bytes[40];
	WL_STEP ~Guard()
	{
		WL_KEEP(bytes);
		spin();
		WL_KEEP(bytes);
	}
};

WL_STEP int throws(int n)
{
	char wide[200];

	WL_KEEP(wide);
	WL_SPOIL_REGISTERS();
	if (n)
		throw n;
	return 1;
}

WL_STEP int throws_through(int n)
{
	Guard guard;

	WL_KEEP(guard.bytes);
	WL_SPOIL_REGISTERS();
	n += throws(n);
	WL_SPOIL_REGISTERS();
	return n;
}

WL_STEP int catches(int n)
{
	try {
		return throws_through(n) + 1;
	} catch (int thrown) {
		return thrown;
	}
}

struct Base {
	virtual ~Base() = default;
	virtual int enter(int n) = 0;
};

struct Derived : Base {
	int kept = 0;
	WL_STEP int enter(int n) override
	{
		kept += catches(n);
		return kept;
	}
};
} // namespace nf

int main(int argc, char **argv)
{
	nf::Base *base = new nf::Derived;
	int result;

	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("chain=main;nf::Derived::enter;nf::catches;nf::throws_through;nf::Guard::~Guard;"
		 "nf::spin");
	result = base->enter(argc);
	delete base;
	return result;
}
