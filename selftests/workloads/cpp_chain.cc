// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cpp_chain [CPU_SECONDS]: the chain (parameters left out)
 * main -> orbit::Mission::launch -> orbit::Engine<double>::ignite
 *      -> void (anonymous namespace)::burn<int, 7> -> orbit::Sink::operator()
 */
#include "workload.h"

namespace orbit
{
struct Sink {
	volatile unsigned long count = 0;
	void operator()(int step)
	{
		WL_KEEP_FRAME();

		while (!wl_stop)
			count = count + (unsigned long)step;
	}
};
} // namespace orbit

namespace
{
template <typename T, int Step> void burn(orbit::Sink &sink, T)
{
	sink(Step);
	sink.count = 0;
}
} // namespace

namespace orbit
{
template <typename T> struct Engine {
	T thrust;
	Sink sink;
	void ignite(unsigned long stages)
	{
		burn<int, 7>(sink, (int)stages);
		thrust += (T)sink.count;
	}
};

class Mission
{
      public:
	virtual ~Mission() = default;
	virtual int launch(int crew, const char *name);

      private:
	Engine<double> engine{};
};

int Mission::launch(int crew, const char *name)
{
	engine.ignite((unsigned long)crew);
	return name[0];
}
} // namespace orbit

int main(int argc, char **argv)
{
	orbit::Mission *mission = new orbit::Mission;

	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("cpp_chain");
	mission->launch(argc, "x");
	delete mission;
	return 0;
}
