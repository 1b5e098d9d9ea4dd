-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- LuaJIT's traces as a perf map, /tmp/perf-PID.map, for a LuaJIT that was not built to write one
-- itself (XCFLAGS=-DLUAJIT_USE_PERFTOOLS). To be loaded once in each process, before the code that
-- is to be named has run:
--
--     luajit -lperfmap program.lua
--     init_worker_by_lua_block { require "perfmap" }     # nginx
--
-- A trace is called as LuaJIT itself calls it, by where it starts: TRACE_7::render.lua:12.
local ffi = require "ffi"
local util = require "jit.util"

ffi.cdef "int getpid(void);"

local map = assert(io.open(("/tmp/perf-%d.map"):format(ffi.C.getpid()), "w"))
map:setvbuf "line"

local started = {} -- trace -> where

local function on_trace(what, trace, func, pc)
	if what == "start" then
		local info = util.funcinfo(func, pc)
		started[trace] = info.loc or util.funcinfo(func).loc or "?"
	elseif what == "stop" then
		local code, addr = util.tracemc(trace)
		if code then
			map:write(("%x %x TRACE_%d::%s\n"):format(addr, #code, trace, started[trace]))
		end
		started[trace] = nil
	elseif what == "abort" then
		started[trace] = nil
	end
end

jit.attach(on_trace, "trace")
return on_trace
