-- This script does what package store's Run and the laws of internal/law do, for the
-- rows of one group in one atomic step. Names and order are those of the Go code, which
-- gives the reasons.
--
-- Lua's numbers are exact below 2^53. Instants are nanoseconds from a base close to
-- now, so that they are exact for 52 days before and after it; the largest and the
-- smallest value mean never and always. For a number that does not fit, or a case that
-- the script does not handle, it raises RAW: nothing is changed, and the client receives
-- the rows, decides by Go's laws, and writes the rows if they are still the same.
--
-- KEYS   the rows
-- ARGV   1 the clock, eight bytes; empty for the server's
--        2 the operations; or, to write rows, empty; or, to move damaged rows, 'move'
--        3 with operations: the rows that cannot be used, if there are any
--          to write: for each row the SHA-1 of its old value, its expiry, its new value
--          to move: for each pair of keys, from and to, the SHA-1 of the row's value,
--          empty if it was of another type; and for how many milliseconds it is kept
-- Reply  to operations: {1, clock, results}, and the index and the row of each operation
--          that failed, if any did; or {0, clock, rows} if RAW was raised, with 1 for a
--          row of another type
--        to write: {1}, or {2} if rows have changed
--        to move: for each row 1, 0 if it has changed, or the error
--
-- A row of a newer version stays as it is, and the operations that need it fail. A row
-- that is damaged, or that this script cannot read, raises RAW.

local pack, unpack, fmod, floor, max, min = struct.pack, struct.unpack, math.fmod, math.floor, math.max, math.min
local sub, concat = string.sub, table.concat

local NEVER = math.huge -- Unlimited, too
local FAR = 2 ^ 52
local WORD = 2 ^ 32
local SECOND = 1000000000
local LEASE = 30 * SECOND
local RESERVE_FOR = 5 * SECOND
local USE_WITHIN = SECOND
local CATCH_UP = 10000000
local MOST_LIMITS = 8
local GENTLE = 10 * SECOND
local GROWTH = 20
local MEMORY = 600 * SECOND
local LASTING = 60 * SECOND
local SHORTEST = 1000000
local MAX_N = 1000000000
local EXACT = 65536
local COARSE = 256
local COUNTER, ROLLING, FILLING = 0, 1, 2 -- how an announced limit counts
local FULL_CARE = 256
local RAW = {}

-- The clock. base is the high word of now, and low is now as an instant.
local base, now
if ARGV[1] == '' then
	local time = redis.call('TIME')
	local s, us = tonumber(time[1]), tonumber(time[2])
	-- s * 10^9 in two words: 10^9 = 2^9 * 1953125
	local high = floor(s / 2 ^ 23)
	local rest = (s - high * 2 ^ 23) * SECOND + us * 1000
	-- high * 2^23 * 2^9 * 1953125
	base = high * 1953125 + floor(rest / WORD)
	now = fmod(rest, WORD)
else
	base, now = unpack('>i4I4', ARGV[1])
end
local ZERO = -base * WORD -- the instant zero, which is exact as a double wherever it is

-- Encoding.

local function words(high, low)
	return pack('>i4I4', high, low)
end

local function putInt(n)
	if n == NEVER then
		return '\127\255\255\255\255\255\255\255'
	elseif not (n > -FAR and n < FAR) then
		error(RAW)
	end
	local low = n % WORD
	return words((n - low) / WORD, low)
end

local function putTime(t)
	if t == NEVER then
		return '\127\255\255\255\255\255\255\255'
	elseif t == -NEVER then
		return '\128\0\0\0\0\0\0\1'
	elseif not (t > -FAR and t < FAR) then
		error(RAW)
	end
	local low = t % WORD
	return words((t - low) / WORD + base, low)
end

local function putSize(n) return pack('>I4', n) end

local function putText(s) return putSize(#s) .. s end

local function putBool(b) return b and '\1' or '\0' end

-- Decoding: text is what is being read, and at is the position in it.
local text, at = '', 1

local function bytes(n)
	local from = at
	at = at + n
	if at > #text + 1 then
		error(RAW)
	end
	return sub(text, from, at - 1)
end

local function size()
	at = at + 4
	if at > #text + 1 then
		error(RAW)
	end
	return (unpack('>I4', text, at - 4))
end

local function pair()
	at = at + 8
	if at > #text + 1 then
		error(RAW)
	end
	return unpack('>i4I4', text, at - 8)
end

local function byte()
	at = at + 1
	if at > #text + 1 then
		error(RAW)
	end
	return string.byte(text, at - 1)
end

local function bool() return byte() ~= 0 end

local function str() return bytes(size()) end

local function int()
	local high, low = pair()
	local n = high * WORD + low
	if high == 2147483647 and low == 4294967295 then
		return NEVER
	elseif n <= -FAR or n >= FAR then
		error(RAW)
	end
	return n
end

-- long is int for a length that the caller bounds.
local function long()
	local high, low = pair()
	return high * WORD + low
end

-- toTime returns an instant. One too long ago to be exact becomes the oldest exact
-- one. That makes one difference: a bucket that has been in use ever since does not
-- take back units that were taken before that.
local function toTime(high, low)
	if high == 2147483647 and low == 4294967295 then
		return NEVER
	elseif high == -2147483648 and low < 2 then
		return -NEVER
	end
	local t = (high - base) * WORD + low
	if t >= FAR then
		error(RAW)
	end
	return max(t, 1 - FAR)
end

local function time() return toTime(pair()) end

-- given is time for an instant that must be exact.
local function given()
	local t = time()
	if t == 1 - FAR then
		error(RAW)
	end
	return t
end

-- Arithmetic.

-- muldiv returns the quotient of a * b / n and its remainder, exactly if the quotient
-- is below 2^53. No argument is negative.
local function muldiv(a, b, n)
	if a > b then
		a, b = b, a
	end
	if b >= FAR then
		error(RAW)
	end
	local p = a * b
	if p < 2 * FAR then
		local r = fmod(p, n)
		return (p - r) / n, r
	end
	local rb = fmod(b, n)
	local q, r, bit = 0, 0, 1
	while bit * 2 <= a do
		bit = bit * 2
	end
	local left = a
	while bit >= 1 do
		q, r = q * 2, r * 2
		if r >= n then
			q, r = q + 1, r - n
		end
		if left >= bit then
			left, r = left - bit, r + rb
			if r >= n then
				q, r = q + 1, r - n
			end
		end
		bit = bit / 2
	end
	return q + a * ((b - rb) / n), r
end

local function div(a, b) return (a - fmod(a, b)) / b end

-- grainOf returns in how many n-ths fractions of a nanosecond come; 0 where there are none.
local function grainOf(n, per)
	if n <= 0 or per < n or fmod(per, n) == 0 then
		return 0
	end
	local x, y = per, n
	while y > 0 do
		x, y = y, fmod(x, y)
	end
	return x
end

-- The limits, by their encoded form.
local limits = {}

local function limitOf(spec)
	local l = limits[spec]
	if l then
		return l
	end
	local t, a = text, at
	text, at = spec, 1
	l = { spec = spec, kind = byte(), unit = byte(), strict = bool(), n = int(), per = int(), burst = int() }
	str() -- the zone
	if at ~= #spec + 1 or l.kind > 4 or l.n < 0 or l.n > MAX_N or l.kind < 4 and l.per < 1 or l.per >= FAR then
		error(RAW)
	end
	text, at = t, a
	if l.kind == 2 then
		l.burst = 1
	elseif l.burst == 0 then
		l.burst = l.n
	end
	l.grain, l.slices, l.slot = grainOf(l.n, l.per), EXACT, max(1, div(l.per, EXACT))
	limits[spec] = l
	return l
end

-- span returns the time that c units take, in nanoseconds and n-ths of a nanosecond.
local function span(l, c)
	local ns, frac = muldiv(c, l.per, l.n)
	if ns >= FAR then
		error(RAW)
	end
	return ns, frac
end

local function ceilUnits(l, ns, frac)
	local q, r = muldiv(ns, l.n, l.per)
	r = r + frac
	if q >= FAR then
		error(RAW)
	end
	q = q + div(r, l.per)
	if fmod(r, l.per) > 0 then
		q = q + 1
	end
	return q
end

-- A law is made when it is first used: the script runs anew for each decision, and most
-- decisions need one law.
local laws, makers = {}, {}

local function law(kind)
	laws[kind] = laws[kind] or makers[kind]()
	return laws[kind]
end

-- Window. An entry is decoded when it is first used; the others are copied as they are.
makers[0] = function()
	local Window = {}
	Window.__index = Window

	function Window.new(l)
		return { l = l, inFlight = 0, sum = 0, log = '', first = 1, head = 0, len = 0, seen = {} }
	end

	function Window.load(l)
		local w = { l = l, inFlight = int(), sum = int(), head = 0, len = size(), seen = {} }
		w.log, w.first = text, at -- no copy: it may be long
		at = at + 16 * w.len
		if at > #text + 1 then
			error(RAW)
		end
		return w
	end

	function Window:save(out)
		out[#out + 1] = putInt(self.inFlight) .. putInt(self.sum) .. putSize(self.len)
		local order = {}
		for i in pairs(self.seen) do
			if i >= self.head and i < self.head + self.len then
				order[#order + 1] = i
			end
		end
		table.sort(order)
		local from = self.head
		for _, i in ipairs(order) do
			if i > from then
				out[#out + 1] = sub(self.log, self.first + 16 * from, self.first + 16 * i - 1)
			end
			local e = self.seen[i]
			out[#out + 1] = putTime(e.at) .. putInt(e.cost)
			from = i + 1
		end
		if from < self.head + self.len then
			out[#out + 1] = sub(self.log, self.first + 16 * from, self.first + 16 * (self.head + self.len) - 1)
		end
	end

	function Window:at(i)
		i = i + self.head
		local e = self.seen[i]
		if not e then
			local h, l, ch, cl = unpack('>i4I4i4I4', self.log, self.first + 16 * i)
			e = { at = toTime(h, l), cost = ch * WORD + cl }
			if e.cost >= FAR then
				error(RAW)
			end
			self.seen[i] = e
		end
		return e
	end

	function Window:last()
		if self.len == 0 then
			return -NEVER
		end
		return self:at(self.len - 1).at
	end

	function Window:expire(t)
		local old = t - self.l.per
		if self:last() <= old then
			self.len = 0
		end
		while self.len > 0 do
			local e = self:at(0)
			if e.at > old then
				return
			end
			self.sum = self.sum - e.cost
			self.head, self.len = self.head + 1, self.len - 1
		end
		self.sum = 0
	end

	function Window:earliest(now, t, cost)
		local l = self.l
		if cost > l.n then
			return NEVER, false
		end
		local room, left, old, i = l.n - cost, self.sum + self.inFlight, t - l.per, 0
		while true do
			if left <= room and (i == self.len or self:at(i).at > old) then
				return t, false
			elseif i == self.len then
				return max(t, max(now, self:last()) + l.per), true
			end
			local e = self:at(i)
			left = left - e.cost
			if left <= room and e.at > old then
				return e.at + l.per, false
			end
			i = i + 1
		end
	end

	function Window:take(t, cost)
		if self.l.strict then
			self.inFlight = self.inFlight + cost
			return true
		end
		self:push(t, cost)
		return false
	end

	function Window:push(t, cost)
		if cost == 0 then
			return
		end
		self:expire(t)
		self:add(t, cost)
	end

	function Window:add(t, cost)
		self.sum = self.sum + cost
		if self.len > 0 then
			local e = self:at(self.len - 1)
			t = max(t, e.at)
			if self.len >= self.l.slices then
				t = self:slice(t)
			end
			if e.at >= t then
				e.cost = e.cost + cost
				return
			end
		end
		self.seen[self.head + self.len] = { at = t, cost = cost }
		self.len = self.len + 1
	end

	-- slice returns the end of t's slice. Slices count from instant zero, so that both
	-- words of t matter. A slice is shorter than 2^44 ns.
	function Window:slice(t)
		local d = self.l.slot
		local low = t % WORD
		local r = fmod((t - low) / WORD + base, d)
		for shift = 24, 0, -8 do
			r = fmod(r * 256 + floor(low / 2 ^ shift) % 256, d)
		end
		if r == 0 then
			return t
		end
		return t + d - r
	end

	function Window:done(t, cost)
		if self.l.strict then
			self.inFlight = max(0, self.inFlight - cost)
			self:push(t, cost)
		end
	end

	function Window:give(taken, cost, inFlight)
		if inFlight then
			self.inFlight = max(0, self.inFlight - cost)
			return
		end
		local lo, hi = 0, self.len
		while lo < hi do
			local m = floor((lo + hi) / 2)
			if self:at(m).at < taken then
				lo = m + 1
			else
				hi = m
			end
		end
		if lo < self.len then
			local e = self:at(lo)
			if e.at == taken or e.at == self:slice(taken) then
				self:drop(e, cost)
				self:trim()
			end
		end
	end

	function Window:trim()
		while self.len > 0 and self:at(0).cost == 0 do
			self.head, self.len = self.head + 1, self.len - 1
		end
		while self.len > 0 and self:at(self.len - 1).cost == 0 do
			self.len = self.len - 1
		end
	end

	function Window:drop(e, cost)
		cost = min(cost, e.cost)
		e.cost = e.cost - cost
		self.sum = self.sum - cost
		return cost
	end

	function Window:spend(now, n)
		self:expire(now)
		if n > 0 then
			self:push(now, n)
			return
		end
		local i = 0
		while i < self.len and n < 0 do
			n = n + self:drop(self:at(i), -n)
			i = i + 1
		end
		self:trim()
	end

	function Window:remaining(now)
		self:expire(now)
		return self.l.n - (self.sum + self.inFlight)
	end

	function Window:recovered(now)
		self:expire(now)
		return self.sum == 0 and self.inFlight == 0
	end

	-- latest returns the latest instant that a start of now may have.
	function Window:latest(now)
		if self.len < self.l.slices then
			return now
		end
		return self:slice(now)
	end

	-- clamp makes what is later than that of now.
	function Window:clamp(now)
		local latest, cost = self:latest(now), 0
		if self:last() <= latest then
			return
		end
		while self.len > 0 and self:last() > latest do
			cost, self.len = cost + self:at(self.len - 1).cost, self.len - 1
		end
		self.sum = self.sum - cost
		self:add(now, cost)
	end

	function Window:ends(flights)
		local last = self:last()
		for _, f in ipairs(flights) do
			last = max(last, f.till)
		end
		return last + self.l.per + self.l.slot
	end

	return Window
end

-- Bucket.
makers[1] = function()
	local Bucket = {}
	Bucket.__index = Bucket

	function Bucket.new(l)
		return { l = l, full = -NEVER, frac = 0, since = -NEVER, gaps = {} }
	end

	function Bucket.load(l)
		local b = { l = l, full = time(), frac = int(), since = time(), gaps = {} }
		local n = size()
		if n > 4 or b.frac < 0 or b.frac > 0 and b.frac >= l.n or b.full == NEVER then
			error(RAW)
		end
		for i = 1, n do
			b.gaps[i] = { at = time(), ns = int() }
		end
		return b
	end

	function Bucket:save(out)
		local full, since = '\255\255\255\255\255\255\255\255', '\0\0\0\0\0\0\0\0' -- those of a new bucket, or before exact times
		if self.full > 1 - FAR then
			full = putTime(self.full)
		end
		if self.since > -NEVER then
			since = putTime(self.since)
		end
		out[#out + 1] = full .. putInt(self.frac) .. since .. putSize(#self.gaps)
		for _, g in ipairs(self.gaps) do
			out[#out + 1] = putTime(g.at) .. putInt(g.ns)
		end
	end

	-- begin returns the beginning of t's nanosecond, from which on a start counts.
	function Bucket:begin(t)
		if self.l.grain == 0 then
			return t, 0
		end
		return t - 1, self.l.grain
	end

	function Bucket:isFull(t) return self.full < t or self.full == t and self.frac == 0 end

	function Bucket:recovered(now)
		local t, frac = self:begin(now)
		return self.full < t or self.full == t and self.frac <= frac
	end

	function Bucket:earliest(_, t, cost)
		local l = self.l
		if l.n == 0 or cost > l.burst then
			return NEVER, false
		end
		local ns, frac = span(l, l.burst - cost)
		local e = self.full - ns
		if frac < self.frac then
			e = e + 1
		end
		return max(t, e), false
	end

	function Bucket:move(ns, frac)
		self.full, self.frac = self.full + ns, self.frac + frac
		if self.frac < 0 then
			self.full, self.frac = self.full - 1, self.frac + self.l.n
		elseif self.frac >= self.l.n then
			self.full, self.frac = self.full + 1, self.frac - self.l.n
		end
	end

	function Bucket:push(n)
		if self.l.n == 0 then
			return
		elseif n < 0 then
			local ns, frac = span(self.l, -n)
			self:move(-ns, -frac)
		else
			self:move(span(self.l, n))
		end
	end

	function Bucket:pushAt(t, cost)
		if Bucket.recovered(self, t) then
			self.full, self.frac = self:begin(t)
			self.since, self.gaps = t, {}
		elseif t > self.since then
			self:addGap(t, max(0, self.full - t))
		end
		self:push(cost)
	end

	function Bucket:take(t, cost)
		self:pushAt(t, cost)
		return false
	end

	function Bucket:addGap(t, ns)
		local g = self.gaps
		while #g > 0 and g[#g].ns >= ns do
			g[#g] = nil
		end
		if #g == 4 then
			g[2].ns = g[1].ns
			table.remove(g, 1)
		end
		g[#g + 1] = { at = t, ns = ns }
	end

	function Bucket:done() end

	function Bucket:give(taken, cost)
		if taken < self.since or self.l.n == 0 then
			return
		end
		local ns, frac = span(self.l, cost)
		local g = self.gaps
		for _, e in ipairs(g) do
			if e.at > taken then
				if e.ns <= ns then
					ns, frac = e.ns, 0
				end
				e.ns = e.ns - ns
				if frac > 0 then
					e.ns = e.ns - 1
				end
			end
		end
		for i = #g - 1, 1, -1 do
			g[i].ns = min(g[i].ns, g[i + 1].ns)
		end
		self:move(-ns, -frac)
	end

	function Bucket:spend(now, n)
		if n > 0 then
			self:pushAt(now, n)
		elseif n < 0 and not self:isFull(now) then
			self:push(n)
		end
	end

	function Bucket:remaining(now)
		if self.l.n == 0 then
			return 0
		elseif self:isFull(now) then
			return self.l.burst
		end
		return self.l.burst - ceilUnits(self.l, self.full - now, self.frac)
	end

	function Bucket:ends() return self.full + 2 end

	return Bucket
end

-- Spaced is a Bucket that must be full.
makers[2] = function()
	local Bucket = law(1)
	local Spaced = setmetatable({}, Bucket)
	Spaced.__index = Spaced

	function Spaced.new(l)
		local s = Bucket.new(l)
		s.inFlight = 0
		return s
	end

	function Spaced.load(l)
		local s = Bucket.load(l)
		s.inFlight = int()
		return s
	end

	function Spaced:save(out)
		Bucket.save(self, out)
		out[#out + 1] = putInt(self.inFlight)
	end

	-- free returns when the bucket is full if the response to inFlight units comes now.
	function Spaced:free(now, inFlight)
		local b = setmetatable({ l = self.l, full = self.full, frac = self.frac, since = NEVER }, Bucket)
		if inFlight > 0 then
			b:pushAt(now, inFlight)
		end
		if b.frac > 0 then
			b.full = b.full + 1
		end
		return b.full
	end

	function Spaced:earliest(now, t, cost)
		if self.l.n == 0 or cost > MAX_N then
			return NEVER, false
		end
		return max(t, self:free(now, self.inFlight)), self.inFlight > 0
	end

	function Spaced:take(t, cost)
		if self.l.strict then
			self.inFlight = self.inFlight + cost
			return true
		end
		self:pushAt(t, cost)
		return false
	end

	function Spaced:done(t, cost)
		if self.l.strict then
			self.inFlight = max(0, self.inFlight - cost)
			self:pushAt(t, cost)
		end
	end

	function Spaced:give(taken, cost, inFlight)
		if inFlight then
			self.inFlight = max(0, self.inFlight - cost)
			return
		end
		Bucket.give(self, taken, cost)
	end

	function Spaced:remaining(now)
		if self.l.n == 0 then
			return 0
		end
		return Bucket.remaining(self, now) - self.inFlight
	end

	function Spaced:recovered(now) return self.inFlight == 0 and Bucket.recovered(self, now) end

	function Spaced:ends(flights)
		local last, cost = -NEVER, 0
		for _, f in ipairs(flights) do
			last, cost = max(last, f.till), cost + f.cost
		end
		if self.l.n == 0 then
			return max(last, self.full) + 2
		end
		return max(self.full, last) + span(self.l, cost) + 2
	end

	return Spaced
end

-- Sliding.
makers[3] = function()
	local Sliding = {}
	Sliding.__index = Sliding

	function Sliding.new(l)
		return { l = l, used = false, start = -NEVER, cur = 0, prev = 0 }
	end

	function Sliding.load(l)
		return { l = l, used = bool(), start = given(), cur = int(), prev = int() }
	end

	function Sliding:save(out)
		out[#out + 1] = putBool(self.used) .. putTime(self.start) .. putInt(self.cur) .. putInt(self.prev)
	end

	function Sliding:roll(t)
		local per = self.l.per
		local d = t - self.start
		if not self.used or d < per then
			return
		elseif d - per < per then
			self.start, self.prev, self.cur = self.start + per, self.cur, 0
		else
			self.start, self.prev, self.cur = t - fmod(d, per), 0, 0
		end
	end

	function Sliding:earliest(_, t, cost)
		local l = self.l
		if cost > l.n then
			return NEVER, false
		elseif not self.used then
			return t, false
		end
		local c = setmetatable({ l = l, used = true, start = self.start, cur = self.cur, prev = self.prev }, Sliding)
		while true do
			c:roll(t)
			t = max(t, c.start)
			local room = l.n - cost - c.cur
			if room >= 0 then
				if c.prev <= room then
					return t, false
				end
				local q = muldiv(room, l.per, c.prev)
				if q > 0 then
					return max(t, c.start + l.per - q), false
				end
			end
			t = c.start + l.per
		end
	end

	function Sliding:take(t, cost)
		if not self.used then
			self.used, self.start = true, t
		end
		self:roll(t)
		self.cur = self.cur + cost
		return false
	end

	function Sliding:done() end

	function Sliding:give(taken, cost)
		if not self.used then
			return
		elseif taken >= self.start then
			self.cur = max(0, self.cur - cost)
		elseif taken >= self.start - self.l.per then
			self.prev = max(0, self.prev - cost)
		end
	end

	function Sliding:spend(now, n)
		if n >= 0 then
			self:take(now, n)
			return
		end
		self:roll(now)
		local old = min(self.prev, -n)
		self.prev = self.prev - old
		self.cur = max(0, self.cur + n + old)
	end

	function Sliding:remaining(now)
		local l = self.l
		if not self.used then
			return l.n
		end
		self:roll(now)
		local q, r = muldiv(self.prev, l.per - min(l.per, max(0, now - self.start)), l.per)
		if r > 0 then
			q = q + 1
		end
		return l.n - self.cur - q
	end

	function Sliding:recovered(now)
		self:roll(now)
		return self.cur == 0 and self.prev == 0
	end

	function Sliding:ends() return self.start + 2 * self.l.per end

	return Sliding
end

-- Calendar. The client passes the period that the clock is in: from and to.
makers[4] = function()
	local Calendar = {}
	Calendar.__index = Calendar

	function Calendar.new(l)
		return { l = l, used = 0, stop = -NEVER, from = NEVER, to = NEVER }
	end

	function Calendar.load(l)
		return { l = l, used = int(), stop = time(), from = NEVER, to = NEVER }
	end

	function Calendar:save(out)
		out[#out + 1] = putInt(self.used) .. putTime(self.stop)
	end

	function Calendar:roll(t)
		if t >= self.stop then
			if t < self.from or t >= self.to then
				error(RAW)
			end
			self.used, self.stop = 0, self.to
		end
	end

	function Calendar:earliest(_, t, cost)
		if cost > self.l.n then
			return NEVER, false
		elseif t >= self.stop or self.used <= self.l.n - cost then
			return t, false
		end
		return max(t, self.stop), false
	end

	function Calendar:take(t, cost)
		self:roll(t)
		self.used = self.used + cost
		return false
	end

	function Calendar:done() end

	function Calendar:give(_, cost, _, stop)
		if stop == self.stop then
			self.used = max(0, self.used - cost)
		end
	end

	function Calendar:spend(now, n)
		self:roll(now)
		self.used = max(0, self.used + n)
	end

	function Calendar:remaining(now)
		self:roll(now)
		return self.l.n - self.used
	end

	function Calendar:recovered(now) return now >= self.stop or self.used == 0 end

	function Calendar:ends() return self.stop end

	return Calendar
end

local function newState(l) return setmetatable(law(l.kind).new(l), law(l.kind)) end

-- Pace.
makers.pace = function()
	local Pace = {}
	Pace.__index = Pace

	function Pace.new()
		return setmetatable({ n = 1, per = SECOND, stop = -NEVER, starts = 0, raised = -NEVER, step = 0, found = true }, Pace)
	end

	function Pace.load(version)
		local p = { found = version == 2, n = int(), per = int(), stop = time(), starts = int(), raised = time(), step = int() }
		if p.n <= 0 or p.n > MAX_N or p.per <= 0 or p.found and p.per ~= SECOND then
			error(RAW)
		end
		return setmetatable(p, Pace)
	end

	function Pace:save()
		return (self.found and '\0\2' or '\0\1') .. putInt(self.n) .. putInt(self.per) .. putTime(self.stop) .. putInt(self.starts) .. putTime(self.raised) .. putInt(self.step)
	end

	function Pace:setLimits(list)
		self.n, self.per, self.found = 1, SECOND, true
		for _, l in ipairs(list) do
			self.found = self.found and l.n <= 0
			if l.n > 0 and muldiv(l.per, self.n, l.n) < self.per then
				self.n, self.per = l.n, l.per
			end
		end
	end

	function Pace:restart(rate)
		local limited = muldiv(SECOND, self.n, self.per)
		self.n, self.per, self.found = min(max(rate, 1, limited), MAX_N), SECOND, true
	end

	function Pace:untilAt(now, t)
		if t <= now or t <= self.stop then
			return false
		end
		self.stop, self.starts, self.raised = t, 0, now
		return true
	end

	function Pace:grow(now, started, least, most)
		if started <= self.raised then
			return 0
		end
		self.step = min(2 * self.step, most)
		if self.step < least then
			self.step = least
		end
		if not self:untilAt(now, now + self.step) then
			self.raised = now
			return 0
		end
		return self.step
	end

	function Pace:free()
		return self.stop + GENTLE + (self.found and GROWTH * SECOND or 0)
	end

	function Pace:earliest(_, t)
		local free = self:free()
		if t >= free then
			return t, false
		end
		return max(t, min(free, self:slot(self.starts))), false
	end

	function Pace:slot(k)
		local ns, frac = span(self, k)
		if frac > 0 then
			ns = ns + 1
		end
		if not self.found or ns <= GENTLE then
			return self.stop + ns
		end
		ns = ns - GENTLE
		local room = 2 * SECOND
		for j = 0, GROWTH - 1 do
			if ns <= room then
				return self.stop + GENTLE + j * SECOND + div(ns - 1, room / SECOND) + 1
			end
			ns, room = ns - room, 2 * room
		end
		return NEVER
	end

	function Pace:passed(t)
		local ns = t - self.stop
		if ns > GENTLE then
			local rest = fmod(ns - GENTLE, SECOND)
			local factor = 2 ^ ((ns - GENTLE - rest) / SECOND + 1)
			ns = GENTLE + (factor - 2) * SECOND + rest * factor
		end
		return (muldiv(ns, self.n, self.per))
	end

	function Pace:take(t)
		if t >= self.stop and t < self:free() then
			if self.found then
				self.starts = max(self.starts, self:passed(t))
			end
			self.starts = self.starts + 1
		end
	end

	function Pace:give(taken)
		if taken >= self.stop and self.starts > 0 then
			self.starts = self.starts - 1
		end
	end

	function Pace:remaining() return NEVER end

	function Pace:ends()
		if self.step > 0 then
			return self.stop + MEMORY
		end
		return self:free()
	end

	function Pace:recovered(now) return now >= self:ends() end

	return Pace
end

-- Cap, but for what a number changes. A field is decoded when it is first used, and one
-- that has not changed is written as it was. So an instant that is too long ago to be exact
-- stays what it is: a limit in use for months has some. They are only compared; to count
-- with one raises RAW.
makers.cap = function()
	local Cap = {}

	-- The fields in their order, which begin at the ninth byte and have eight each.
	local FIELDS = {
		'gen', 'since', 'at', 'limit', 'per', 'kept', 'left', 'begun', 'stop', 'spread',
		'extra', 'over', 'unsure', 'till', 'given', 'lump', 'heard', 'alone', 'rest', 'grace', 'every', 'start', 'last',
		'newest', 'compared', 'updated', 'low', 'drift',
		'seenLeft', 'seenReset', 'seenAt', 'unit',
		'level', 'calm', 'peak', 'peakAt', 'shortest', 'mean', 'deviation', 'slope',
	}
	local INTS = {
		left = 56, extra = 88, over = 96, unsure = 104, given = 120, lump = 128, heard = 136, grace = 160, every = 168, low = 216,
		drift = 224, seenLeft = 232, seenReset = 240, unit = 256, level = 264, peak = 280, shortest = 296, mean = 304,
	}
	local TIMES = {
		since = 16, at = 24, begun = 64, stop = 72, spread = 80, till = 112, alone = 144, rest = 152, start = 176, last = 184,
		newest = 192, compared = 200, updated = 208, seenAt = 248, calm = 272, peakAt = 288,
	}
	local FLOATS = { deviation = 312, slope = 320 }
	local SIZE = 328

	local function instant(high, low)
		if high == 2147483647 and low == 4294967295 then
			return NEVER
		elseif high == -2147483648 and low < 2 then
			return -NEVER
		end
		return (high - base) * WORD + low
	end

	function Cap.__index(c, name)
		local v, from = Cap[name], INTS[name]
		if v ~= nil then
			return v
		elseif from then
			local high, low = unpack('>i4I4', c.text, c.first + from)
			v = high * WORD + low
			if high == 2147483647 and low == 4294967295 then
				v = NEVER
			elseif v <= -FAR or v >= FAR then
				error(RAW)
			end
		elseif TIMES[name] then
			v = instant(unpack('>i4I4', c.text, c.first + TIMES[name]))
			if v >= FAR and v < NEVER then
				error(RAW)
			end
		elseif FLOATS[name] then
			v = unpack('>d', c.text, c.first + FLOATS[name])
			if v - v ~= 0 then
				error(RAW)
			end
		else
			return nil
		end
		c[name], c.was[name] = v, v
		return v
	end

	-- guard is for how long after its period a unit of a rolling limit still counts.
	local function guard(c) return min(c.shortest, div(c.per, 64)) end

	function Cap.rolling(c)
		local per = c.per + guard(c)
		if per >= FAR then
			error(RAW)
		end
		return { n = c.limit, per = per, slices = COARSE, slot = max(1, div(c.per, COARSE)) }
	end

	function Cap.filling(c)
		return { n = c.limit, per = c.per, burst = c.limit, grain = grainOf(c.limit, c.per) }
	end

	-- keepTill sets keep, when the limit ends: d after t. That may be too far to be exact;
	-- kept is how it is written.
	function Cap.keepTill(c, t, d)
		local low, more = t % WORD, d % WORD
		local sum = low + more
		local rest = sum % WORD
		c.keep, c.kept = t + d, words((t - low) / WORD + (d - more) / WORD + (sum - rest) / WORD + base, rest)
	end

	function Cap.clear(c)
		c.kind, c.resets, c.confirmed, c.rolled, c.named, c.early, c.open, c.ceiling = COUNTER, 0, 0, false, false, false, false, false
		c.gen, c.limit, c.per, c.keep, c.kept = 0, -1, 0, -NEVER, putTime(-NEVER)
		c.since, c.begun, c.spread, c.till, c.rest, c.start, c.last = -NEVER, -NEVER, -NEVER, -NEVER, -NEVER, -NEVER, -NEVER
		c.newest, c.compared, c.updated = -NEVER, -NEVER, -NEVER
		c.left, c.stop, c.alone, c.low = NEVER, NEVER, NEVER, NEVER
		c.extra, c.over, c.unsure, c.given, c.lump, c.heard, c.grace, c.every = 0, 0, 0, 0, 0, 0, 0, 0
		c.seenLeft, c.seenReset, c.seenAt, c.unit = 0, 0, ZERO, 0
		c.level, c.calm, c.peak, c.peakAt, c.shortest, c.mean, c.deviation, c.slope = 0, ZERO, 0, ZERO, 0, 0, 0, 0
		c.window, c.bucket = nil, nil
	end

	function Cap.new(name)
		local c = setmetatable({ name = name, was = {}, at = ZERO, drift = 0 }, Cap)
		Cap.clear(c)
		return c
	end

	function Cap.load()
		local name = str()
		local first = at
		at = at + SIZE
		if at > #text + 1 then
			error(RAW)
		end
		local kind, resets, confirmed, rolled, named, early, open, ceiling, genHigh, gen, _, _, atHigh, atLow, limitHigh, limit, perHigh, per, keepHigh, keepLow =
			unpack('>BBBBBBBBi4I4i4I4i4I4i4I4i4I4i4I4', text, first)
		limit, per = limitHigh * WORD + limit, perHigh * WORD + per
		if kind > FILLING or resets > 4 or genHigh ~= 0 or limit == 0 or limit > MAX_N or per < 0 or per >= FAR or kind ~= COUNTER and (limit < 0 or per == 0) then
			error(RAW)
		end
		local c = setmetatable({
			name = name, text = text, first = first, kind = kind, resets = resets, confirmed = confirmed,
			rolled = rolled ~= 0, named = named ~= 0, early = early ~= 0, open = open ~= 0, ceiling = ceiling ~= 0,
			gen = gen, at = instant(atHigh, atLow), limit = limit, per = per, keep = instant(keepHigh, keepLow),
		}, Cap)
		c.was = { gen = gen, at = c.at, limit = limit, per = per }
		if kind == ROLLING then
			c.window = setmetatable(law(0).load(Cap.rolling(c)), law(0))
		elseif kind == FILLING then
			c.bucket = setmetatable(law(1).load(Cap.filling(c)), law(1))
		end
		return c
	end

	function Cap.save(c)
		local out = {
			'\1\2' .. putText(c.name) .. string.char(c.kind, c.resets, c.confirmed)
				.. putBool(c.rolled) .. putBool(c.named) .. putBool(c.early) .. putBool(c.open) .. putBool(c.ceiling),
		}
		local from = 8 -- the first byte that is not written
		for i, name in ipairs(FIELDS) do
			local v = rawget(c, name)
			if v ~= nil and v ~= c.was[name] then
				local to = 8 * i
				if to > from then
					out[#out + 1] = sub(c.text, c.first + from, c.first + to - 1)
				end
				if v == ZERO then
					v = '\0\0\0\0\0\0\0\0'
				elseif TIMES[name] then
					v = putTime(v)
				elseif FLOATS[name] then
					v = pack('>d', v)
				elseif name ~= 'kept' then
					v = putInt(v)
				end
				out[#out + 1], from = v, to + 8
			end
		end
		if from < SIZE then
			out[#out + 1] = sub(c.text, c.first + from, c.first + SIZE - 1)
		end
		if c.kind == ROLLING then
			c.window:save(out)
		elseif c.kind == FILLING then
			c.bucket:save(out)
		end
		return concat(out)
	end

	function Cap.settle(c, t)
		c.at = max(c.at, t)
		if c.gen == 0 then
			return
		elseif t >= c.keep then
			Cap.clear(c)
		elseif c.kind == COUNTER and t >= c.stop then
			if c.stop <= -FAR then
				error(RAW)
			end
			c.left, c.rolled, c.named, c.open = NEVER, true, false, c.per <= 0
			c.begun, c.stop, c.last, c.spread = c.stop, NEVER, -NEVER, -NEVER
			if c.limit > 0 then
				c.left = c.limit
				if c.per > 0 then
					c.begun = t - fmod(t - c.begun, c.per)
					c.stop = c.begun + c.per
				end
			end
			c.extra, c.over, c.unsure = 0, 0, 0
		elseif c.kind == ROLLING and t >= c.till then
			c.extra, c.over, c.unsure = 0, 0, 0
		end
	end

	function Cap.period(c)
		if c.per > 0 then
			return c.per
		end
		return LASTING
	end

	-- current returns the level of care, which halves with each period without a refusal.
	function Cap.current(c, now)
		if c.level == 0 then
			return 0
		end
		local per, n = Cap.period(c), 0
		if c.calm > -FAR then
			n = div(max(0, now - c.calm), per)
		else -- the time since then has two words
			local high, low = unpack('>i4I4', c.text, c.first + TIMES.calm)
			local rest
			n, rest = muldiv(base - 1 - high, WORD, per)
			n = n + div(rest + now + WORD - low, per)
		end
		return floor(c.level / 2 ^ min(n, 62))
	end

	-- margin returns for how many units room is left beside what a start costs.
	local function margin(c, now)
		local level = Cap.current(c, now)
		if level <= FULL_CARE / 8 then
			return 0
		end
		local most = c.limit
		if most <= 0 then
			most = max(c.left, 0)
		end
		local m = min(c.deviation, most / 32) + max(0, c.slope) * max(0, min(now - c.newest, Cap.period(c)))
		m = floor(min(m, most / 2) * level / FULL_CARE)
		if now - c.peakAt <= c.mean then
			m = m + max(0, c.peak - max(0, c.over))
		end
		return min(m, floor(most / 2))
	end

	local function fits(cost, limit)
		if limit > 0 then
			return min(cost, limit)
		end
		return cost
	end

	-- surplusTill returns when the units end that a rolling limit counts beside the starts:
	-- those of others, and more for a margin.
	local function surplusTill(c, more)
		if more > 0 then
			return max(c.till, c.newest + Cap.period(c))
		end
		return c.till
	end

	-- turn returns the first instant at or after t at which it is a start's turn.
	local function turn(c, t)
		t = max(t, c.rest)
		if c.every > 0 and c.start > -NEVER then
			t = max(t, c.start + c.every)
		end
		return t
	end

	-- rollingEarliest is earliest in a window beside whose starts more units count until
	-- till; fewer, if more is negative.
	local function rollingEarliest(w, t, cost, more, till)
		local room, sum, i = w.l.n - cost, w.sum + more, 0
		while true do
			local due = i < w.len and w:at(i).at + w.l.per or NEVER
			if more ~= 0 and till <= t then
				sum, more = sum - more, 0
			elseif due <= t then
				sum, i = sum - w:at(i).cost, i + 1
			elseif sum <= room then
				return t
			else
				if more > 0 then
					due = min(due, till)
				end
				if due == NEVER then
					return t
				end
				t = due
			end
		end
	end

	-- fillingEarliest returns when cost units fit in a bucket and leave more units, as long as
	-- these may hold a start up, or else when they fit.
	local function fillingEarliest(c, t, cost, more)
		local e, till = c.bucket:earliest(t, t, cost), c.updated + (c.unit > 0 and c.unit or floor(c.per / 16))
		if more <= 0 or e >= till then
			return e
		end
		return min((c.bucket:earliest(t, t, min(cost + more, c.limit))), till)
	end

	local function countingEarliest(c, t, cost)
		if c.open then
			return t
		elseif t < c.stop and c.left < cost then
			return c.stop
		elseif t < c.spread and c.last > -NEVER then
			if c.last <= -FAR then
				error(RAW)
			end
			return max(t, c.last + div(c.spread - c.last - 1, max(0, c.left) + 1) + 1)
		end
		return t
	end

	function Cap.earliest(c, now, t, cost)
		Cap.settle(c, now)
		if c.gen == 0 or cost == 0 then
			return t, false
		end
		local e, more = turn(c, t), margin(c, now)
		if c.kind == ROLLING then
			e = rollingEarliest(c.window, e, fits(cost, c.limit), c.extra + more, surplusTill(c, more))
		elseif c.kind == FILLING then
			e = fillingEarliest(c, e, fits(cost, c.limit), more)
		else
			e = countingEarliest(c, e, fits(cost + more, c.limit))
		end
		return max(t, min(e, c.keep)), false
	end

	function Cap.take(c, t, cost)
		Cap.settle(c, t)
		if c.gen == 0 or cost == 0 then
			return false
		end
		if t >= c.alone then
			c.alone, c.rest = NEVER, t + c.grace
		end
		c.start = t
		if c.kind == ROLLING then
			c.window:push(t, cost)
		elseif c.kind == FILLING then
			c.bucket:pushAt(t, fits(cost, c.limit))
		elseif c.left ~= NEVER then
			c.left, c.last = c.left - cost, t
		end
		return false
	end

	-- usedAt returns how many units of a bucket count at t.
	function Cap.usedAt(b, t)
		if b:isFull(t) then
			return 0
		end
		return ceilUnits(b.l, b.full - t, b.frac)
	end

	-- counts reports whether starts are counted.
	function Cap.counts(c) return c.gen ~= 0 and (c.kind ~= COUNTER or c.left ~= NEVER) end

	-- mark returns what is counted after a start at t, and in which count; 0 is none.
	function Cap.mark(c, t)
		if not Cap.counts(c) then
			return 0, 0
		elseif c.kind == ROLLING then
			return c.window.sum + c.given, c.gen
		elseif c.kind == FILLING then
			return Cap.usedAt(c.bucket, t) - c.extra + c.given, c.gen
		end
		return max(0, c.limit) - c.left - c.extra + c.given, c.gen
	end

	-- exceed notes that the server counts over units more than this client, and that it may
	-- not have counted unsure of this client's.
	function Cap.exceed(c, over, unsure)
		c.over, c.unsure = over, unsure
		if over < 0 and c.limit > 0 then
			over = c.ceiling and 0 or min(0, over + unsure)
		end
		local n = over - c.extra
		c.extra = over
		if c.kind == COUNTER then
			c.left = c.left - n
		elseif c.kind == FILLING then
			if c.at <= -FAR then
				error(RAW)
			end
			local b = c.bucket
			if b:isFull(c.at) then
				b.full, b.frac = b:begin(c.at)
			end
			b:push(max(n, -Cap.usedAt(b, c.at)))
		end
	end

	local function giveBack(c, taken, cost, known)
		local back = cost
		if c.kind == ROLLING then
			back = c.window.sum
			c.window:give(taken, cost, false)
			back = back - c.window.sum
		elseif c.kind == FILLING then
			local b, full = c.bucket, c.bucket.full
			if full <= -FAR then
				error(RAW)
			end
			b:give(taken, fits(cost, c.limit))
			back = muldiv(max(0, full - b.full), b.l.n, b.l.per)
		elseif taken < c.begun or c.left == NEVER then
			return
		else
			c.left = c.left + cost
		end
		c.given = c.given + back
		if known then
			Cap.exceed(c, c.over + back, c.unsure)
		end
	end

	function Cap.give(c, taken, cost)
		if c.gen == 0 then
			return
		elseif taken >= c.since then
			giveBack(c, taken, cost, taken <= c.compared)
		elseif c.lump > 0 then
			local before = c.given
			giveBack(c, taken, min(cost, c.lump), true)
			if c.given == before then -- it counts as of since
				giveBack(c, c.since, min(cost, c.lump), true)
			end
		end
	end

	-- spend counts n units as used, or gives back the oldest.
	function Cap.spend(c, now, n)
		Cap.settle(c, now)
		local w, b = c.window, c.bucket
		if not Cap.counts(c) or n == 0 then
			return
		elseif n > 0 then
			if w then
				w:push(now, n)
			elseif b then
				b:pushAt(now, n)
			else
				c.left = c.left - n
			end
		elseif w then
			local before = w.sum
			w:spend(now, n)
			c.given = c.given + before - w.sum
		elseif c.since <= -FAR then
			error(RAW)
		else
			giveBack(c, max(c.since, c.begun), -n, false)
		end
	end

	function Cap.remaining(c, now)
		Cap.settle(c, now)
		if c.gen == 0 then
			return NEVER
		elseif c.kind == ROLLING then
			c.window:expire(now)
			return c.limit - (c.window.sum + c.extra + margin(c, now))
		elseif c.kind == FILLING then
			return c.bucket:remaining(now) - margin(c, now)
		elseif c.left == NEVER or c.open then
			return NEVER
		end
		return c.left - margin(c, now)
	end

	-- status returns what is left, and when units return next.
	function Cap.status(c, now)
		local left = Cap.remaining(c, now)
		if c.gen == 0 then
			return left, NEVER
		elseif c.kind == ROLLING then
			local w, reset = c.window, now
			if w.len > 0 then
				reset = w:at(0).at + w.l.per
			end
			if c.extra > 0 and (w.len == 0 or c.till < reset) then
				reset = c.till
			end
			return left, reset
		elseif c.kind == FILLING then
			local b = c.bucket
			return left, (b:earliest(now, now, min(max(0, b:remaining(now)) + 1, c.limit)))
		end
		return left, c.stop
	end

	function Cap.recovered(c, now) return now >= c.keep end

	function Cap.ends(c) return c.keep end

	return Cap
end

-- What a number that a response announces changes of a Cap. Most decisions need none of it.
makers.number = function()
	local Cap = law('cap')
	local UNKNOWN, WINDOW, FULL, UNIT, EACH = 0, 1, 2, 3, 4 -- what a reset means

	-- bound is LimitSignal.bounded.
	local function bound(s)
		if s.limit <= 0 then
			s.limit = s.ruleLimit > 0 and s.ruleLimit or -1
		end
		s.limit, s.left = min(s.limit, MAX_N), min(max(s.left, -MAX_N), MAX_N)
		if s.per <= 0 then
			s.per = s.rulePer
		end
		if s.per > 0 then
			s.per = max(s.per, SHORTEST)
		end
		if s.reset >= FAR or s.per >= FAR or s.used >= FAR or s.own + s.inFlight >= FAR or s.most >= 2 * FAR then
			error(RAW)
		end
		s.started = min(s.started, now)
	end

	local function stale(c, s)
		return c.kind == COUNTER and c.rolled and s.reset >= 0 and s.started < c.begun
			and now + s.reset <= c.begun + min(SECOND, floor(Cap.period(c) / 2))
	end

	-- took notes how long a response took.
	local function took(c, d)
		if c.shortest == 0 then
			c.shortest, c.mean = d, d
			return
		end
		c.shortest = min(d, c.shortest + floor(c.shortest / 16) + 1)
		c.mean = c.mean + div(d - c.mean, 5)
	end

	-- shows returns what the resets mean by what s shows beside earlier responses.
	local function shows(c, s)
		local slack = max(now - s.started, SHORTEST)
		if s.whole then
			slack = slack + SECOND
		end
		if c.gen ~= 0 and c.kind == COUNTER and c.rolled and not c.early and s.started >= c.begun and s.gen == c.gen and s.limit >= 4 then
			if c.begun <= -FAR then
				error(RAW)
			end
			local taken, rest = s.used - c.given, c.unit - (now - c.begun)
			if taken <= floor(s.limit / 4) then
				if s.left + taken <= floor(s.limit / 2) then
					return UNIT
				elseif math.abs(rest - s.reset) <= slack + floor(c.unit / 8) then
					return WINDOW
				end
			end
		end
		local used = s.limit - s.left
		if used <= 0 or s.reset <= slack then
			return UNKNOWN
		end
		local seen = s.limit - c.seenLeft
		if c.seenReset ~= 0 and seen > 0 then
			if math.abs(used - seen) < max(2, floor(seen / 3)) then
				return UNKNOWN
			elseif slack >= FAR or c.seenAt <= -FAR then
				error(RAW)
			end
			local expected = muldiv(c.seenReset, used, seen) -- if it is not exact, it is too large for any reset
			local off, moved = math.abs(s.reset - expected), math.abs(now + s.reset - (c.seenAt + c.seenReset))
			local change = math.abs(expected - c.seenReset)
			if off <= max(floor(change / 4), slack) and change > 2 * slack and moved > 2 * slack then
				c.confirmed = c.confirmed + 1
				if c.confirmed >= 2 then
					return FULL
				end
			else
				c.confirmed = 0
			end
		end
		c.seenLeft, c.seenReset, c.seenAt = s.left, s.reset, now
		return UNKNOWN
	end

	local function learn(c, s)
		if s.resets ~= UNKNOWN then
			c.resets = s.resets
		end
		if s.limit <= 0 or s.reset < 0 or s.early then
			return
		end
		if c.resets == UNKNOWN then
			c.resets = shows(c, s)
		end
		c.unit = max(c.unit, s.reset)
	end

	-- fillTime returns how long it takes until all units of a limit have returned that
	-- announces no period; zero where that is not known.
	local function fillTime(c, s)
		local known, low, high = c.kind == FILLING and c.per or 0, 0, NEVER
		if c.resets == UNIT then
			if c.unit <= 0 then
				return known
			end
			known = c.unit * s.limit
		else
			local used = s.limit - s.left
			if used <= 0 or used > s.limit or s.early then
				return known
			end
			local most, least = s.reset, s.reset
			if s.whole then
				most, least = most + SECOND, least - SECOND
			end
			low = muldiv(max(0, least), s.limit, used)
			if used > 1 and most >= 0 then
				high = muldiv(most, s.limit, used - 1)
			end
			if known == 0 then
				known = low
			end
			known = min(max(known, low), high)
			if known == 0 then
				return 0
			end
			known = min(known, c.unit * s.limit)
		end
		if known >= FAR then
			error(RAW)
		end
		return max(known, SHORTEST)
	end

	-- countFor returns how the limit of s is counted, and its period.
	local function countFor(c, s)
		local per = s.per
		if s.limit <= 0 then
			return COUNTER, per
		elseif c.resets == FULL or c.resets == UNIT then
			if per <= 0 then
				per = fillTime(c, s)
			end
			return per > 0 and FILLING or COUNTER, per
		elseif c.resets == WINDOW then
			if (s.reset >= 0 or c.gen ~= 0 and c.kind == COUNTER) and (s.early or per <= 0 or not s.whole or per >= 16 * SECOND) then
				return COUNTER, per
			end
		elseif per > 0 and s.ruleFills and s.rulePer == per and c.resets == UNKNOWN then
			return FILLING, per
		elseif per <= 0 and c.resets == EACH and s.resets == UNKNOWN then
			per = c.unit
		end
		return per > 0 and ROLLING or COUNTER, per
	end

	-- begin begins a count with a first number. rule is the state of the rule that the limit
	-- is, if there is one.
	local function begin(c, kind, per, s, rule)
		local lump = s.own + s.inFlight
		if kind == ROLLING and now - s.started > per then
			lump = muldiv(lump, per, now - s.started)
		end
		local known = rule and rule.l.kind == 0 and not rule.l.strict and kind == ROLLING and s.rulePer >= per
		if known then
			rule:expire(now)
			lump = rule.sum
		end
		local gen = (base * 4096 + floor(now / 2 ^ 20)) % WORD
		gen = gen + 1 - gen % 2
		if gen == c.gen then
			gen = (gen + 2) % WORD
		end
		c.kind, c.gen, c.since, c.limit, c.per = kind, gen, now, s.limit, per
		c.extra, c.over, c.unsure, c.given, c.lump, c.heard, c.low, c.till = 0, 0, 0, 0, lump, 0, NEVER, -NEVER
		c.newest, c.compared, c.alone, c.rest, c.start, c.grace, c.every = -NEVER, -NEVER, NEVER, -NEVER, -NEVER, 0, 0
		c.window, c.bucket = nil, nil
		c.left, c.stop, c.begun, c.last, c.spread = NEVER, NEVER, -NEVER, -NEVER, -NEVER
		c.rolled, c.named, c.early, c.open = false, false, false, false
		if kind == ROLLING then
			c.window = setmetatable(law(0).new(Cap.rolling(c)), law(0))
			c.window.l.per = per -- without its guard yet
			if known then
				for i = 0, rule.len - 1 do
					c.window:push(rule:at(i).at, rule:at(i).cost)
				end
			else
				c.window:push(now, lump)
			end
		elseif kind == FILLING then
			c.bucket = setmetatable(law(1).new(Cap.filling(c)), law(1))
			c.bucket.full, c.bucket.frac = c.bucket:begin(now)
			c.bucket.since = now
			c.bucket:push(lump)
		else
			c.left, c.begun = max(0, s.limit) - lump, now
		end
	end

	-- setLimit changes the limit or its period. What was counted stays.
	local function setLimit(c, limit, per)
		if c.kind == COUNTER then
			c.left = c.left + limit - c.limit
		end
		c.limit, c.per = limit, per
		if c.kind == FILLING then
			local used, b = Cap.usedAt(c.bucket, now), setmetatable(law(1).new(Cap.filling(c)), law(1))
			b.full, b.frac = b:begin(now)
			b.since = now
			b:push(used)
			c.bucket = b
		end
	end

	-- note takes in that the server counts x units more.
	local function note(c, s, x)
		if c.newest > -NEVER and s.started > c.newest then
			if c.newest <= -FAR then
				error(RAW)
			end
			local apart, grown = s.started - c.newest, x - c.over
			local weight = min(1, apart / (Cap.period(c) / 8))
			c.slope = c.slope + weight * (grown / apart - c.slope)
			c.deviation = c.deviation + (math.abs(grown) - c.deviation) / 4
		end
		if x >= c.peak or now - c.peakAt > c.mean then
			c.peak, c.peakAt = x, now
		end
	end

	local function learnOver(c, over, unsure)
		local before = c.extra
		Cap.exceed(c, over, unsure)
		if c.newest > -NEVER then
			c.drift = c.drift + max(0, c.extra - before)
		end
	end

	local function difference(c, left, ours) return max(0, c.limit) - left - ours end

	-- lower takes in the number of a request without a Mark.
	local function lower(c, s)
		if s.started > c.since then
			if c.kind == COUNTER and s.left < c.left then
				learnOver(c, c.over + c.left - s.left, c.unsure)
			end
			return
		end
		c.heard = min(c.lump, c.heard + s.own)
		if c.kind == COUNTER and c.named and s.reset >= 0 and s.started < c.newest and now + s.reset + 2 * SECOND < c.stop then
			return
		end
		c.low = min(c.low, s.left)
		if c.compared < c.since then
			learnOver(c, difference(c, c.low, max(0, c.heard - c.given)), c.lump - c.heard)
		end
	end

	-- nextUnit bounds when the next unit of a bucket returns.
	local function nextUnit(c, s)
		if c.kind ~= FILLING then
			return
		end
		local by, b = now + max(c.unit, s.per), c.bucket
		if c.resets == UNIT and s.reset >= 0 and s.left <= 0 then
			by = now + s.reset
		end
		local e = b:earliest(now, now, 1)
		if e > by then
			b.full = b.full - (e - by)
		end
	end

	-- renew makes c last. The last number was of a request that started at newest.
	local function renew(c, newest, s)
		local stop = NEVER
		if s.reset >= 0 then
			stop = now + s.reset + (s.whole and SECOND or 0)
		end
		c.rest, c.grace = -NEVER, min(max(4 * c.mean, SHORTEST), floor(Cap.period(c) / 4))
		if c.kind == COUNTER and s.reset < 0 and c.named and c.stop > now then
			return
		end
		c.alone, c.every = NEVER, 0
		local from, d = now + c.per, c.per + max(c.per, LASTING)
		if c.kind == COUNTER then
			c.open, c.early, c.named = false, s.early, s.reset >= 0
			if s.most > 0 then
				stop = min(stop, now + s.most)
			end
			if not c.named then
				stop = s.started + LASTING
				c.alone, c.stop = stop, NEVER
			elseif s.early or c.resets ~= WINDOW or c.per <= 0 then
				c.alone = stop
			end
			local near = c.stop - stop
			if c.stop == NEVER or near <= 0 or near > SECOND and (s.started > newest or s.early) then
				c.stop = max(stop, now)
			end
			c.spread = s.pace and now + s.reset or -NEVER
			from, d = c.stop, max(c.per, LASTING)
			if c.limit <= 0 and c.alone == NEVER then
				d = 0
			end
		elseif c.kind == ROLLING then
			c.till = s.started + c.window.l.per
			if s.early or c.resets == WINDOW or c.resets == UNKNOWN then
				c.till = min(c.till, max(stop, now))
			end
			if s.early or c.extra > floor(c.limit / 8) and c.mean < floor(c.per / 4) then
				c.alone = c.till
			end
		end
		if s.pace and c.kind == ROLLING and s.reset >= 0 then
			c.every = div(s.reset - 1, max(0, s.left) + 1) + 1
		elseif s.pace and c.kind ~= COUNTER then
			c.every = div(c.per - 1, c.limit) + 1
		end
		if s.most > 0 and c.kind ~= COUNTER and s.most < from - now + d then
			from, d = now, s.most
		end
		Cap.keepTill(c, from, d)
	end

	-- update takes in what a response has announced. rule is begin's.
	local function update(c, s, rule)
		bound(s)
		if s.limit < 0 then
			s.limit = c.limit
		end
		c.ceiling = s.ruleLimit > 0
		Cap.settle(c, now)
		if c.gen ~= 0 and stale(c, s) then
			return
		end
		took(c, now - s.started)
		learn(c, s)
		local kind, per = countFor(c, s)
		if kind == FILLING then
			s.left = max(s.left, 0)
		end
		local first = not Cap.counts(c) or kind ~= c.kind or kind == ROLLING and per ~= c.per or (s.limit < 0) ~= (c.limit < 0)
		if first then
			begin(c, kind, per, s, rule)
		elseif s.limit ~= c.limit or per ~= c.per then
			setLimit(c, s.limit, per)
		end
		if c.kind == ROLLING then
			c.window.l = Cap.rolling(c)
		end
		local older = s.started < c.newest
		if not first and s.gen == c.gen and (c.kind ~= COUNTER or s.started >= c.begun) then
			if older then
				return
			end
			if s.refused then
				c.level = min(2 * FULL_CARE, max(FULL_CARE, 2 * Cap.current(c, now)))
				c.calm = now
			end
			local x = difference(c, s.left, s.used - c.given)
			if s.started == c.compared and min(x, c.over) > 0 then
				x = max(x, c.over)
			end
			if c.kind ~= COUNTER or c.newest >= c.begun then
				note(c, s, x)
			end
			local unsure = min(max(s.markInFlight, 0), 2147483647)
			if c.resets == UNIT and s.resets == UNKNOWN and x < c.over - (1 + unsure) then
				c.resets = EACH
			end
			learnOver(c, x, unsure)
			c.compared = s.started
		else
			lower(c, s)
		end
		if not older then
			nextUnit(c, s)
			local newest = c.newest
			c.newest, c.updated = s.started, now
			renew(c, newest, s)
		end
	end

	return { update = update }
end

-- Rows.

local rows = {}

for i, key in ipairs(KEYS) do
	local raw = redis.pcall('GET', key) or ''
	local other = false
	if type(raw) == 'table' then
		if not string.find(raw.err, 'WRONGTYPE', 1, true) then
			return raw
		end
		raw, other = '', true
	end
	rows[i] = { key = key, raw = raw, other = other, flights = {}, reserved = {}, announced = {} }
end

-- newer reports whether a version is newer than this script. An invalid one raises RAW.
local function newer(version)
	if version ~= 1 and (version == 0 or version > 31) then
		error(RAW)
	end
	return version ~= 1
end

-- parse reads a row, and reports whether it is of a newer version.
local function parse(r)
	if r.raw == '' then
		return false
	end
	text, at = r.raw, 1
	if newer(byte()) then
		return true
	end
	local own = size()
	if own > 0 then
		local stop = at + own
		if newer(byte()) then
			return true
		end
		local from = at
		bytes(27)
		str() -- the zone
		local l = limitOf(sub(text, from, at - 1))
		r.st = setmetatable(law(l.kind).load(l), law(l.kind))
		if at ~= stop then
			error(RAW)
		end
	end
	for i = 1, size() do
		r.flights[i] = { id = bytes(8), till = time(), cost = int() }
	end
	for i = 1, size() do
		r.reserved[i] = { id = bytes(8), at = time(), starts = int(), cost = int() }
	end
	for i = 1, size() do
		local h = { only = str(), source = str(), window = int() }
		local stop = size()
		stop = at + stop
		local kind, version = byte(), byte()
		if version ~= 2 and newer(version) then
			return true
		elseif kind == 0 then
			h.pace = law('pace').load(version)
			h.st = h.pace
		elseif version == 1 then
			error(RAW) -- it was never released
		else
			h.cap = law('cap').load()
			h.st = h.cap
		end
		if at ~= stop then
			error(RAW)
		end
		r.announced[i] = h
	end
	if at ~= #text + 1 or not r.st and #r.flights + #r.reserved > 0 then
		error(RAW)
	end
	return false
end

-- inTime raises RAW if the row has an instant after now: the clock was set back.
local function inTime(r)
	local latest = -NEVER
	local st = r.st
	if st and st.l.kind == 0 then
		if st:last() > st:latest(now) then
			latest = NEVER
		end
	elseif st and st.l.kind < 3 then
		local g = st.gaps
		latest = max(st.since, #g > 0 and g[#g].at or -NEVER)
	elseif st and st.l.kind == 3 and st.used then
		latest = st.start
	end
	for _, f in ipairs(r.flights) do
		latest = max(latest, f.till - LEASE)
	end
	for _, a in ipairs(r.reserved) do
		latest = max(latest, a.at)
	end
	for _, h in ipairs(r.announced) do
		if h.pace then
			latest = max(latest, h.pace.raised)
		else
			latest = max(latest, h.cap.at) -- no other instant that has been is later
			if h.cap.window then
				h.cap.window:clamp(now) -- the end of a slice, when fewer starts count
			end
		end
	end
	if latest > now then
		error(RAW)
	end
end

-- unitsReserved returns how many units of a row are reserved.
local function unitsReserved(r)
	local sum = 0
	for _, a in ipairs(r.reserved) do
		sum = sum + a.starts * a.cost
	end
	return sum
end

-- use counts n reserved units as used at t.
local function use(st, t, n)
	if n > 0 and st:take(t, n) then
		st:done(t, n)
	end
end

local function prune(r)
	if #r.flights > 0 then
		local kept = {}
		for _, f in ipairs(r.flights) do
			if f.till > now then
				kept[#kept + 1] = f
			else
				r.st:done(f.till, f.cost)
				r.dirty = true
			end
		end
		r.flights = kept
	end
	if #r.reserved > 0 then
		local left = {}
		for _, a in ipairs(r.reserved) do
			if a.at + RESERVE_FOR > now then
				left[#left + 1] = a
			else
				use(r.st, a.at + USE_WITHIN, a.starts * a.cost)
				r.dirty = true
			end
		end
		r.reserved = left
	end
	if r.st and #r.flights == 0 and #r.reserved == 0 and r.st:recovered(now) then
		r.st = nil
	end
	local kept = {}
	for _, h in ipairs(r.announced) do
		if not h.st:recovered(now) then
			kept[#kept + 1] = h
		end
	end
	r.announced = kept
end

local function encode(r)
	local out, own = { '\1', '' }, 0
	if r.st then
		out[3] = '\1' .. r.st.l.spec
		r.st:save(out)
		for i = 3, #out do
			own = own + #out[i]
		end
	end
	out[2] = putSize(own)
	out[#out + 1] = putSize(#r.flights)
	for _, f in ipairs(r.flights) do
		out[#out + 1] = f.id .. putTime(f.till) .. putInt(f.cost)
	end
	out[#out + 1] = putSize(#r.reserved)
	for _, a in ipairs(r.reserved) do
		out[#out + 1] = a.id .. putTime(a.at) .. putInt(a.starts) .. putInt(a.cost)
	end
	out[#out + 1] = putSize(#r.announced)
	for _, h in ipairs(r.announced) do
		out[#out + 1] = putText(h.only) .. putText(h.source) .. putInt(h.window) .. putText(h.st:save())
	end
	return concat(out)
end

-- life returns for how many milliseconds the row matters, rounded up.
local function life(r)
	local stop = now
	for _, h in ipairs(r.announced) do
		stop = max(stop, h.st:ends())
	end
	if r.st then
		local st = r.st
		if #r.reserved > 0 then -- assume that all reserved units are used
			local out = {}
			st:save(out)
			text, at = concat(out), 1
			st = setmetatable(law(st.l.kind).load(st.l), law(st.l.kind))
			st.from, st.to = r.st.from, r.st.to
			for _, a in ipairs(r.reserved) do
				stop = max(stop, a.at + RESERVE_FOR)
				use(st, a.at + USE_WITHIN, a.starts * a.cost)
			end
		end
		stop = max(stop, st:ends(r.flights))
	end
	return floor((stop - now) / 1000000) + 2
end

local function put(key, row, px)
	if row == '' then
		redis.call('DEL', key)
	elseif ARGV[1] ~= '' or px == NEVER then
		redis.call('SET', key, row) -- the server cannot know when a test's clock reaches its end
	else
		redis.call('SET', key, row, 'PX', string.format('%.0f', max(1, px)))
	end
end

local function indexOf(list, is)
	for i, v in ipairs(list) do
		if is(v) then
			return i
		end
	end
end

-- Operations.

local function rowOf(i)
	local r = rows[i]
	prune(r)
	return r
end

-- rowUnder returns the row of a need, which has the need's limit or no state. To change
-- its limit raises RAW.
local function rowUnder(n)
	local r = rowOf(n.row)
	if r.st and r.st.l.spec ~= n.limit.spec then
		error(RAW)
	end
	return r
end

local function budget(n)
	local r = rowUnder(n)
	if not r.st then
		r.st = newState(n.limit)
	end
	if n.limit.kind == 4 then
		r.st.from, r.st.to = n.from, n.to
		if now < n.from or now < n.to and r.st.stop > n.to then
			error(RAW) -- its clock was set back
		end
	end
	return r
end

local function announcedConstraints(op, all)
	for _, audience in ipairs(op.audiences) do
		local r = rowOf(audience)
		for _, h in ipairs(r.announced) do
			local concerns = h.only == ''
			for _, n in ipairs(op.needs) do
				concerns = concerns or n.name == h.only
			end
			if concerns then
				all[#all + 1] = { announced = h, row_of = audience, need = -1, cost = 1 }
			end
		end
	end
	return all
end

local function constraints(op)
	local all = {}
	for i, n in ipairs(op.needs) do
		local r = budget(n)
		all[#all + 1] = { row = r, need = i - 1, cost = n.cost }
		for _, h in ipairs(r.announced) do
			all[#all + 1] = { announced = h, row_of = n.row, need = i - 1, cost = n.cost }
		end
	end
	return announcedConstraints(op, all)
end

local function stateOf(h) return h.row and h.row.st or h.announced.st end

-- most is the largest cost that ever fits.
local function most(st)
	local l = st.l
	if l.kind == 1 then
		return l.n > 0 and l.burst or 0
	elseif l.kind == 2 then
		return l.n > 0 and MAX_N or 0
	end
	return l.n
end

local function earliestOf(h, t)
	local st = stateOf(h)
	local reserved = h.row and unitsReserved(h.row) or 0
	if reserved == 0 or h.cost > most(st) or most(st) - h.cost >= reserved then
		return st:earliest(now, t, h.cost + reserved)
	end
	-- The cost and the reserved units never fit together, and those may yet be used.
	local e = st:earliest(now, t, h.cost)
	local first = NEVER
	for _, a in ipairs(h.row.reserved) do
		first = min(first, a.at + RESERVE_FOR)
	end
	return max(e, first), true
end

local function touch(op)
	for _, n in ipairs(op.needs) do
		rowOf(n.row).dirty = true
	end
	for _, audience in ipairs(op.audiences) do
		local r = rowOf(audience)
		if #r.announced > 0 then
			r.dirty = true
		end
	end
end

local function earliest(all, from)
	local t, atLeast, bind = from, false, nil
	local again = true
	while again do
		again = false
		for _, h in ipairs(all) do
			local e, loose = earliestOf(h, t)
			if e == NEVER then
				return NEVER, false, h
			elseif e > t then
				t, atLeast, bind, again = e, loose, h, true
			end
		end
	end
	return t, atLeast, bind
end

-- remaining returns what is left under each need, and where something is announced of one of
-- them, after that what is left by its limit alone.
local function remaining(op)
	local out, own, announced = {}, {}, false
	for i, n in ipairs(op.needs) do
		local r = budget(n)
		local left = r.st:remaining(now)
		if left ~= NEVER then
			left = left - unitsReserved(r)
		end
		own[i] = putInt(left)
		for _, h in ipairs(r.announced) do
			left, announced = min(left, h.st:remaining(now)), true
		end
		out[i] = putInt(left)
	end
	if announced then
		return putSize(2 * #out) .. concat(out) .. concat(own)
	end
	return putSize(#out) .. concat(out)
end

local function flightOf(r, op)
	return indexOf(r.flights, function(f) return f.id == op.id end)
end

-- reserve reserves units for the further starts that an OpTake requests, as far as there
-- is room.
local function reserve(op, all)
	local n = op.reserve
	if n <= 0 or #op.needs == 0 then
		return 0
	end
	for _, h in ipairs(all) do
		local left = stateOf(h):remaining(now)
		if h.row then
			local l = h.row.st.l
			if l.n == 0 or l.strict or l.kind == 2 then
				return 0
			end
			left = left - unitsReserved(h.row)
		elseif h.announced.pace then
			return 0
		end
		if h.cost > 0 and left ~= NEVER then
			n = min(n, floor(floor(max(0, left) / h.cost) / 2))
		end
	end
	if n <= 0 then
		return 0
	end
	for _, h in ipairs(all) do
		if h.row then
			local list = h.row.reserved
			list[#list + 1] = { id = op.id, at = now, starts = n, cost = h.cost }
		else
			h.announced.st:take(now, n * h.cost)
		end
	end
	return n
end

-- announcement encodes the pause or the limit h, which belongs to a row.
local function announcement(row, h)
	local left, reset
	if h.cap then
		left, reset = h.cap:status(now)
		if now >= h.cap.keep then
			return putSize(0)
		end
	end
	local head = putSize(row) .. putText(h.only) .. putText(h.source) .. putBool(h.cap)
	if h.pace then
		return head .. putTime(h.pace.stop)
	end
	return head .. putText(h.cap.name) .. putInt(h.window) .. putInt(left) .. putInt(h.cap.limit) .. putTime(reset) .. putTime(h.cap.updated)
end

local refused = {}
local NO_LINE = '\0\0\0\0\0\0\0\0'

local function take(op)
	if op.line ~= NO_LINE and refused[op.line] then
		return '\2'
	end
	local all = constraints(op)
	local t, atLeast, bind = earliest(all, now)
	if t > now then
		refused[op.line] = true
		local flags, need, name = atLeast and 16 or 0, -1, ''
		if bind then
			need = bind.need
			if bind.announced and bind.announced.pace then
				flags = flags + 32
			elseif bind.announced then
				flags, name = flags + 64, bind.announced.cap.name
			end
		end
		local why = bind and bind.announced and announcement(bind.row_of, bind.announced) or ''
		return string.char(flags) .. putTime(t) .. putInt(need) .. putText(name) .. remaining(op) .. why
	end
	local slot = now
	if op.due < now and now - op.due <= CATCH_UP then
		local e = earliest(all, op.due)
		if e <= now then
			slot = e
		end
	end
	local flags, marks = 1, {}
	for _, h in ipairs(all) do
		local st = stateOf(h)
		if h.announced then
			if h.announced.pace and flags % 16 < 8 then
				flags = flags + 8
			end
			st:take(now, h.cost)
			if h.announced.cap then
				local used, gen = st:mark(now)
				marks[#marks + 1] = putSize(h.row_of) .. putText(st.name) .. putInt(h.announced.window) .. putInt(used) .. putSize(gen)
			end
		else
			local kind = st.l.kind
			local late = kind == 1 or kind == 2 and not st.l.strict
			if st:take(late and slot or now, h.cost) then
				if flags % 8 < 4 then
					flags = flags + 4
				end
				local f = h.row.flights
				f[#f + 1] = { id = op.id, till = now + LEASE, cost = h.cost }
			end
		end
	end
	local reserved = reserve(op, all)
	touch(op)
	return string.char(flags) .. remaining(op) .. putInt(reserved) .. putSize(#marks) .. concat(marks)
end

local function done(op)
	for _, n in ipairs(op.needs) do
		local r = rowOf(n.row)
		local j = flightOf(r, op)
		if j then
			r.st:done(now, r.flights[j].cost)
			table.remove(r.flights, j)
			r.dirty = true
		end
	end
	return ''
end

local function renew(op)
	for _, n in ipairs(op.needs) do
		local r = rowOf(n.row)
		local j = flightOf(r, op)
		if j then
			r.flights[j].till = now + LEASE
			r.dirty = true
		end
	end
	return ''
end

local function give(op)
	for _, n in ipairs(op.needs) do
		local r = rowUnder(n)
		local j = flightOf(r, op)
		if j then
			r.st:give(n.taken, n.cost, true, n.stop)
			table.remove(r.flights, j)
		elseif r.st then
			r.st:give(n.taken, n.cost, false, n.stop)
		end
		for _, h in ipairs(r.announced) do
			h.st:give(n.taken, n.cost)
		end
	end
	for _, h in ipairs(announcedConstraints(op, {})) do
		h.announced.st:give(op.taken, 1)
	end
	touch(op)
	return ''
end

-- returnReserved takes back the units that a request has reserved, except those used.
local function returnReserved(op)
	local rest = 0
	for _, n in ipairs(op.needs) do
		local r = rowOf(n.row)
		local j = indexOf(r.reserved, function(a) return a.id == op.id end)
		if j then
			local a = table.remove(r.reserved, j)
			local used = min(op.used, a.starts)
			rest = a.starts - used
			if r.st.l.kind == 4 then
				r.st.from, r.st.to = n.from, n.to
			end
			use(r.st, min(op.due, now), used * a.cost)
			for _, h in ipairs(r.announced) do
				h.st:give(op.taken, rest * a.cost)
			end
		end
	end
	if rest > 0 then
		for _, h in ipairs(announcedConstraints(op, {})) do
			if h.announced.cap then
				h.announced.st:give(op.taken, rest)
			end
		end
	end
	touch(op)
	return ''
end

local function spend(op)
	for _, n in ipairs(op.needs) do
		local r = budget(n)
		r.st:spend(now, n.cost)
		for _, h in ipairs(r.announced) do
			if h.cap then
				h.cap:spend(now, n.cost)
			end
		end
	end
	touch(op)
	return remaining(op)
end

-- show returns the current rows, for operations that the client decides.
local function show(op)
	local out = {}
	for _, i in ipairs(op.rows) do
		local r = rows[i]
		out[#out + 1] = putText(r.dirty and encode(r) or r.raw)
	end
	return concat(out)
end

local function read(op)
	remaining(op)
	for _, i in ipairs(op.rows) do
		for _, h in ipairs(rowOf(i).announced) do
			h.st:remaining(now) -- settles what is due, before later operations read the row
		end
	end
	return show(op)
end

local function pause(op)
	local r = rowOf(op.audience)
	local i = indexOf(r.announced, function(h) return h.pace and h.only == op.only end)
	local h = r.announced[i]
	if not h then
		h = { only = op.only, source = '', window = 0, pace = law('pace').new() }
		h.st = h.pace
		r.announced[#r.announced + 1] = h
	end
	local length, before, old = op.length, h.pace.stop, h.pace.found and h.pace.n or 0
	if op.grow then
		length = h.pace:grow(now, op.started, op.length, op.most)
	elseif not h.pace:untilAt(now, now + op.length) then
		length = 0
	end
	r.dirty = true
	if length > 0 then
		h.source = op.source
		local list = op.limits
		local limited = #list > 0
		for _, o in ipairs(r.announced) do
			if limited and o.cap and o.cap.limit > 0 and o.cap.per > 0 and now < o.cap.keep then
				list[#list + 1] = { n = o.cap.limit, per = o.cap.per }
			end
		end
		h.pace:setLimits(list)
		if op.found > 0 or not limited then
			if op.started >= before + SECOND then
				old = 0
			elseif op.started >= before then
				old = floor(old / 2)
			end
			h.pace:restart(max(op.found, old))
		end
	end
	return putInt(length) .. announcement(op.audience, h)
end

local function success(op)
	for _, audience in ipairs(op.audiences) do
		local r = rowOf(audience)
		for _, h in ipairs(r.announced) do
			if h.pace then
				if op.taken > h.pace.raised then
					h.pace.step = 0
				end
				r.dirty = true
			end
		end
	end
	return ''
end

local function learn(op)
	local r = rowOf(op.where)
	if op.limit == 0 and op.left <= 0 then
		return putSize(0)
	end
	local i = indexOf(r.announced, function(h) return h.cap and h.cap.name == op.name and h.window == op.window end)
	local h = r.announced[i]
	if not h then
		local n = 0
		for _, o in ipairs(r.announced) do
			n = n + (o.cap and 1 or 0)
		end
		if n >= MOST_LIMITS then
			return putSize(0)
		end
		h = { only = '', cap = law('cap').new(op.name), window = op.window }
		h.st = h.cap
		r.announced[#r.announced + 1] = h
	end
	h.source = op.source
	local known = op.only and #r.reserved == 0 -- which a state does not count
	law('number').update(h.cap, op, known and r.st)
	r.dirty = true
	return announcement(op.where, h)
end

-- The operations and their encoding, by store.OpKind.

local function list(read)
	local out = {}
	for i = 1, size() do
		out[i] = read()
	end
	return out
end

local terms = {} -- the limits, each with the current period of a calendar

local function need()
	local term = terms[size()]
	return { row = size(), name = str(), cost = int(), limit = term.limit, from = term.from, to = term.to }
end

local function where() return { row = size() } end

local function needGiven()
	local n = need()
	n.taken, n.stop = given(), time()
	return n
end

local kinds = {
	{ take, function() return { id = bytes(8), line = bytes(8), due = time(), reserve = int(), needs = list(need), audiences = list(size) } end },
	{ done, function() return { id = bytes(8), needs = list(where) } end },
	{ renew, function() return { id = bytes(8), needs = list(where) } end },
	{ give, function() return { id = bytes(8), taken = given(), needs = list(needGiven), audiences = list(size) } end },
	{ returnReserved, function()
		return { id = bytes(8), used = int(), due = given(), taken = given(), needs = list(need), audiences = list(size) }
	end },
	{ spend, function() return { needs = list(need), audiences = list(size) } end },
	{ read, function() return { needs = list(need), rows = list(size) } end },
	{ show, function() return { rows = list(size) } end },
	{ pause, function()
		return {
			audience = size(), only = str(), length = int(), grow = bool(), most = int(), started = given(),
			limits = list(function() return { n = int(), per = int() } end), found = int(), source = str(),
		}
	end },
	{ success, function() return { taken = given(), audiences = list(size) } end },
	{ learn, function()
		return {
			where = size(), only = bool(), name = str(), window = int(), left = int(), limit = int(), reset = int(), per = int(),
			resets = byte(), whole = bool(), early = bool(), refused = bool(), most = long(), pace = bool(),
			started = given(), own = int(), inFlight = int(), used = int(), markInFlight = int(), gen = size(),
			ruleLimit = int(), rulePer = int(), ruleFills = bool(), source = str(),
		}
	end },
}

-- open decodes all rows, and returns the indexes of those that cannot be used, or nil.
local function open()
	local bad
	if ARGV[3] then
		bad, text, at = {}, ARGV[3], 1
		while at <= #ARGV[3] do
			bad[size()] = true
		end
	end
	for i, r in ipairs(rows) do
		if bad and bad[i] then
			r.other = false
		elseif r.other then
			error(RAW)
		elseif parse(r) then
			r.st, r.flights, r.reserved, r.announced = nil, {}, {}, {}
			bad = bad or {}
			bad[i] = true
		end
		inTime(r)
	end
	return bad
end

local NONE = {}

-- needsBad returns the index of an unusable row that op needs, or nil.
local function needsBad(op, bad)
	for _, n in ipairs(op.needs or NONE) do
		if bad[n.row] then
			return n.row
		end
	end
	for _, i in ipairs(op.audiences or op.run == kinds[7][1] and op.rows or NONE) do
		if bad[i] then
			return i
		end
	end
	local i = op.audience or op.where
	return i and bad[i] and i
end

local function decide()
	local bad, failed = open(), {}
	text, at = ARGV[2], 1
	terms = list(function() return { limit = limitOf(str()), from = time(), to = time() } end)
	local ops = list(function()
		local kind = kinds[byte()]
		local op = kind[2]()
		op.run = kind[1]
		return op
	end)
	local out = {}
	for i, op in ipairs(ops) do
		local row = bad and needsBad(op, bad)
		if row then
			out[i] = ''
			failed[#failed + 1] = putSize(i) .. putSize(row)
		else
			out[i] = op:run()
		end
	end
	for _, r in ipairs(rows) do
		if r.dirty then
			prune(r)
			r.px = life(r)
			r.new = (r.st or #r.announced > 0) and encode(r) or ''
		end
	end
	return concat(out), concat(failed)
end

if ARGV[2] == 'move' then
	local done = {}
	for i = 1, #rows, 2 do
		local r = rows[i]
		local j = (i + 1) / 2
		done[j] = 0
		if (r.other and '' or redis.sha1hex(r.raw)) == ARGV[2 + j] then
			local moved = redis.pcall('RENAME', r.key, KEYS[i + 1])
			if moved.err then
				done[j] = moved.err
			else
				redis.pcall('PEXPIRE', KEYS[i + 1], ARGV[#ARGV])
				done[j] = 1
			end
		end
	end
	return done
end

if ARGV[2] == '' then
	for i, r in ipairs(rows) do
		if redis.sha1hex(r.raw) ~= ARGV[3 * i] or r.other and ARGV[3 * i + 2] ~= '-' then
			return { 2 }
		end
	end
	for i, r in ipairs(rows) do
		local row = ARGV[3 * i + 2]
		if row ~= '-' then
			text, at = ARGV[3 * i + 1], 1
			local high, low = pair()
			put(r.key, row, floor(((high - base) * WORD + low - now) / 1000000) + 2)
		end
	end
	return { 1 }
end

local clock = words(base, now)
local ok, result, failed = pcall(decide)
if ok then
	for _, r in ipairs(rows) do
		if r.dirty and r.new ~= r.raw then
			put(r.key, r.new, r.px)
		end
	end
	if failed ~= '' then
		return { 1, clock, result, failed }
	end
	return { 1, clock, result }
elseif result ~= RAW then
	error(result)
end
local raw = { 0, clock }
for i, r in ipairs(rows) do
	raw[i + 2] = r.other and 1 or r.raw
end
return raw
