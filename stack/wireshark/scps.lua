-- A dissector of SCPS for Wireshark and tshark: SCPS-NP with SCMP, what is clear of SCPS-SP, compressed SCPS-TP headers, and the
-- options of SCPS-TP. Layouts: docs/protocol/scps-np.md, scps-sp.md, scps-tp.md.
--
--   tshark -X lua_script:scps.lua -r FILE            one file
--   cp scps.lua ~/.local/lib/wireshark/plugins/      every file, from now on
--
-- Captures of a serial line have no link layer that Wireshark knows; NP is found in IP (protocol 118) and in UDP (port 7168).

local np = Proto("scps_np", "SCPS Network Protocol")
local scmp = Proto("scmp", "SCPS Control Message Protocol")
local sp = Proto("scps_sp", "SCPS Security Protocol")
local ctp = Proto("scps_ctp", "SCPS Transport Protocol, compressed header")

local TPIDS = { [1] = "SCMP", [4] = "compressed SCPS-TP", [5] = "UDP", [6] = "SCPS-TP", [8] = "SCPS-SP", [9] = "SP3", [10] = "AH", [11] = "ESP" }
local VERSIONS = { [4] = "reference implementation", [1] = "CCSDS" }
local TIMESTAMPS = { [0] = "none", [1] = "24 bits, seconds", [2] = "24 bits, undefined", [3] = "32 bits, milliseconds" }
local ROUTING = { [0] = "normal", [1] = "flood", [2] = "reserved", [3] = "reserved" }

local f = {
	version = ProtoField.uint8("scps_np.version", "Version", base.DEC, VERSIONS, 0xe0),
	length = ProtoField.uint16("scps_np.length", "Length", base.DEC, nil, 0x1fff),
	tpid = ProtoField.uint8("scps_np.tpid", "Upper protocol", base.DEC, TPIDS, 0xf0),
	more3 = ProtoField.bool("scps_np.c1", "Control octet 3 follows", 8, nil, 0x08),
	has_dst = ProtoField.bool("scps_np.da", "Destination present", 8, nil, 0x02),
	has_check = ProtoField.bool("scps_np.ck", "Checksum present", 8, nil, 0x01),
	more4 = ProtoField.bool("scps_np.c2", "Control octet 4 follows", 8, nil, 0x80),
	has_src = ProtoField.bool("scps_np.sa", "Source present", 8, nil, 0x40),
	has_hops = ProtoField.bool("scps_np.hc", "Hop count present", 8, nil, 0x20),
	ts_format = ProtoField.uint8("scps_np.tsf", "Timestamp", base.DEC, TIMESTAMPS, 0x18),
	has_qos = ProtoField.bool("scps_np.bq", "Basic QoS present", 8, nil, 0x04),
	extended = ProtoField.bool("scps_np.xa", "Extended addresses", 8, nil, 0x02),
	ipv6 = ProtoField.bool("scps_np.v6", "IPv6 addresses", 8, nil, 0x40),
	has_eqos = ProtoField.bool("scps_np.eq", "Expanded QoS present", 8, nil, 0x20),
	intermediate = ProtoField.bool("scps_np.id", "Intermediate delivery", 8, nil, 0x10),
	dst = ProtoField.bytes("scps_np.dst", "Destination"),
	path = ProtoField.bytes("scps_np.path", "Path"),
	src = ProtoField.bytes("scps_np.src", "Source"),
	precedence = ProtoField.uint8("scps_np.precedence", "Precedence", base.DEC, nil, 0xf0),
	routing = ProtoField.uint8("scps_np.routing", "Routing", base.DEC, ROUTING, 0x0c),
	specific = ProtoField.uint8("scps_np.specific", "Protocol-specific", base.DEC, nil, 0x03),
	hops = ProtoField.uint8("scps_np.hop_count", "Hop count"),
	timestamp = ProtoField.uint32("scps_np.timestamp", "Timestamp"),
	eqos_precedence = ProtoField.uint8("scps_np.ip_precedence", "IP precedence", base.DEC, nil, 0xe0),
	eqos_tos = ProtoField.uint8("scps_np.ip_tos", "IP type of service", base.DEC, nil, 0x1e),
	check = ProtoField.uint16("scps_np.checksum", "Header checksum", base.HEX),
	check_good = ProtoField.bool("scps_np.checksum.good", "Header checksum is good"),
}
np.fields = f
local bad_check = ProtoExpert.new("scps_np.checksum.bad", "Bad header checksum", expert.group.CHECKSUM, expert.severity.ERROR)
local malformed = ProtoExpert.new("scps_np.malformed", "Malformed datagram", expert.group.MALFORMED, expert.severity.ERROR)
np.experts = { bad_check, malformed }

-- Whether a bit is set. Lua has had operators for it since 5.3, and Wireshark 4.0 has 5.2.
local function has(value, bit)
	return math.floor(value / bit) % 2 == 1
end

-- The folded ones'-complement sum of octets; an odd one at the end counts as if a zero followed (scps-np §1.7).
local function sum_of(range)
	local sum, bytes = 0, range:bytes()
	for i = 0, bytes:len() - 1, 2 do
		local low = (i + 1 < bytes:len()) and bytes:get_index(i + 1) or 0
		sum = sum + bytes:get_index(i) * 256 + low
	end
	while sum > 0xffff do
		sum = math.floor(sum / 65536) + sum % 65536
	end
	return sum
end

local dissect_np, dissect_options

-- SCMP (scps-np §6).
local MESSAGES = {
	[0] = "echo reply", [3] = "destination unreachable", [4] = "source quench", [5] = "redirect", [8] = "echo request",
	[11] = "time exceeded", [12] = "parameter problem", [19] = "corruption experienced",
}
local UNREACHABLE = {
	[0] = "net", [1] = "host", [2] = "protocol", [3] = "port", [4] = "too big", [7] = "unknown host", [11] = "net for QoS", [12] = "host for QoS",
	[13] = "filtered", [14] = "precedence violation", [15] = "precedence too low", [16] = "link outage",
}
local m = {
	kind = ProtoField.uint8("scmp.type", "Type", base.DEC, MESSAGES),
	code = ProtoField.uint8("scmp.code", "Code"),
	check = ProtoField.uint16("scmp.checksum", "Checksum", base.HEX),
	check_good = ProtoField.bool("scmp.checksum.good", "Checksum is good"),
	mtu = ProtoField.uint16("scmp.mtu", "Next-hop MTU"),
	id = ProtoField.uint16("scmp.id", "Identifier"),
	seq = ProtoField.uint16("scmp.seq", "Sequence number"),
	pointer = ProtoField.uint8("scmp.pointer", "Pointer"),
	restored = ProtoField.bytes("scmp.restored", "Restored destination"),
	data = ProtoField.bytes("scmp.data", "Data"),
	quote = ProtoField.bytes("scmp.quote", "Quoted datagram"),
}
scmp.fields = m

local function has_quote(kind, code)
	return kind == 3 or kind == 4 or kind == 11 or kind == 12 or (kind == 5 and code ~= 4)
end

function scmp.dissector(buffer, pinfo, tree)
	if buffer:len() < 4 then return 0 end
	local kind, code = buffer(0, 1):uint(), buffer(1, 1):uint()
	local name = MESSAGES[kind] or ("type " .. kind)
	if kind == 3 then name = (UNREACHABLE[code] or ("code " .. code)) .. (code == 16 and "" or " unreachable") end
	if kind == 5 and code == 4 then name = "link available" end
	pinfo.cols.protocol = "SCMP"
	pinfo.cols.info = name
	local item = tree:add(scmp, buffer(), "SCPS Control Message Protocol, " .. name)
	item:add(m.kind, buffer(0, 1))
	item:add(m.code, buffer(1, 1))
	item:add(m.check, buffer(2, 2))
	-- Zero is "not there" in the reference's profile.
	if buffer(2, 2):uint() ~= 0 then item:add(m.check_good, buffer(2, 2), sum_of(buffer()) == 0xffff):set_generated() end
	local at = 4
	if kind == 3 and code == 4 and buffer:len() >= 6 then
		item:add(m.mtu, buffer(4, 2))
		at = 6
	elseif (kind == 0 or kind == 8) and buffer:len() >= 8 then
		item:add(m.id, buffer(4, 2))
		item:add(m.seq, buffer(6, 2))
		at = 8
	elseif kind == 12 and buffer:len() >= 5 then
		item:add(m.pointer, buffer(4, 1))
		at = 5
	end
	if buffer:len() <= at then return buffer:len() end
	local rest = buffer(at)
	if has_quote(kind, code) then
		item:add(m.quote, rest)
	elseif kind == 5 and code == 4 then
		item:add(m.restored, rest)
	else
		item:add(m.data, rest)
	end
	return buffer:len()
end

-- SCPS-SP (scps-sp §2, §6): without keys only the clear header can be read, and with SP-AEAD-1 the key's number and the sequence number. No packet says
-- that it is of SP-AEAD-1; the preference does.
local CLEAR = { [6] = "TCP", [17] = "UDP", [105] = "compressed SCPS-TP", [106] = "SCPS-TP", [117] = "UDP" }
local AEAD_HEADER, AEAD_TAG = 9, 16
local s = {
	upper = ProtoField.uint8("scps_sp.upper", "Upper protocol (clear header)", base.HEX, CLEAR),
	key_id = ProtoField.uint16("scps_sp.key_id", "Key"),
	seq = ProtoField.uint64("scps_sp.seq", "Sequence number"),
	protected = ProtoField.bytes("scps_sp.protected", "Protected part"),
	tag = ProtoField.bytes("scps_sp.tag", "Tag"),
}
sp.fields = s
local too_short = ProtoExpert.new("scps_sp.short", "Too short for SP-AEAD-1", expert.group.MALFORMED, expert.severity.ERROR)
sp.experts = { too_short }
sp.prefs.aead = Pref.bool("SP-AEAD-1", true, "Packets are of SP-AEAD-1, with a key's number and a sequence number")

function sp.dissector(buffer, pinfo, tree)
	local length = buffer:len()
	if length < 2 then return 0 end
	local upper = buffer(0, 1):uint()
	pinfo.cols.protocol = "SCPS-SP"
	local item = tree:add(sp, buffer())
	item:add(s.upper, buffer(0, 1))
	if not sp.prefs.aead or length <= AEAD_HEADER + AEAD_TAG then
		if sp.prefs.aead then item:add_proto_expert_info(too_short) end
		pinfo.cols.info = string.format("clear header 0x%02x, %d protected octets", upper, length - 1)
		item:add(s.protected, buffer(1))
		return length
	end
	local protected = length - AEAD_HEADER - AEAD_TAG
	item:add(s.key_id, buffer(1, 2))
	item:add(s.seq, buffer(3, 6))
	item:add(s.protected, buffer(AEAD_HEADER, protected))
	item:add(s.tag, buffer(length - AEAD_TAG))
	local name, seq = CLEAR[upper] or string.format("clear header 0x%02x", upper), tostring(buffer(3, 6):uint64())
	pinfo.cols.info = string.format("%s, key %d, sequence number %s, %d protected octets", name, buffer(1, 2):uint(), seq, protected)
	return length
end

-- Compressed SCPS-TP (scps-tp §3.3).
local c = {
	id = ProtoField.uint8("scps_ctp.id", "Connection"),
	push = ProtoField.bool("scps_ctp.push", "Push", 8, nil, 0x04),
	record = ProtoField.bool("scps_ctp.record_end", "End of record", 8, nil, 0x10),
	fin = ProtoField.bool("scps_ctp.fin", "Fin", 8, nil, 0x01),
	rst = ProtoField.bool("scps_ctp.rst", "Reset", 8, nil, 0x04),
	urgent = ProtoField.uint16("scps_ctp.urgent", "Urgent pointer"),
	window = ProtoField.uint16("scps_ctp.window", "Window"),
	ack = ProtoField.uint32("scps_ctp.ack", "Acknowledgement number"),
	seq = ProtoField.uint32("scps_ctp.seq", "Sequence number"),
	ts_val = ProtoField.uint32("scps_ctp.tsval", "Timestamp value"),
	ts_ecr = ProtoField.uint32("scps_ctp.tsecr", "Timestamp echo"),
	check = ProtoField.uint16("scps_ctp.checksum", "Checksum", base.HEX),
	data = ProtoField.uint32("scps_ctp.len", "Octets of data"),
}
ctp.fields = c

function ctp.dissector(buffer, pinfo, tree)
	local at = 0
	local function take(n)
		if at + n > buffer:len() then error("truncated") end
		at = at + n
		return buffer(at - n, n)
	end
	pinfo.cols.protocol = "SCPS-CTP"
	local item = tree:add(ctp, buffer())
	local words = {}
	local complete = pcall(function()
		local id = take(1)
		item:add(c.id, id)
		words[1] = "connection " .. id:uint()
		local ctl1 = take(1)
		item:add(c.record, ctl1)
		item:add(c.push, ctl1)
		local bits, more = ctl1:uint(), 0
		if has(bits, 0x80) then
			local ctl2 = take(1)
			more = ctl2:uint()
			item:add(c.rst, ctl2)
			item:add(c.fin, ctl2)
			if has(more, 0x01) then words[#words + 1] = "[FIN]" end
			if has(more, 0x04) then words[#words + 1] = "[RST]" end
		end
		if has(more, 0x20) then item:add(c.urgent, take(2)) end
		if has(bits, 0x01) then
			item:add(c.window, take(2))
			local ack = take(4)
			item:add(c.ack, ack)
			words[#words + 1] = "Ack=" .. ack:uint()
		end
		if has(bits, 0x02) then
			local seq = take(4)
			item:add(c.seq, seq)
			words[#words + 1] = "Seq=" .. seq:uint()
		end
		if has(bits, 0x40) then item:add(c.ts_val, take(4)) end
		if has(bits, 0x20) then item:add(c.ts_ecr, take(4)) end
		if has(more, 0x80) then
			local len = take(1):uint()
			dissect_options(take(len), item)
		end
		if has(more, 0x40) then take(1) end
		item:add(c.check, take(2))
		item:add(c.data, buffer:len() - at):set_generated()
		words[#words + 1] = "Len=" .. (buffer:len() - at)
	end)
	if not complete then words[#words + 1] = "[truncated]" end
	pinfo.cols.info = table.concat(words, " ")
	return buffer:len()
end

-- Options of SCPS-TP (scps-tp §2).
local options = Proto("scps_tp", "SCPS-TP options")
local o = {
	bets = ProtoField.bool("scps_tp.bets", "Best effort", 8, nil, 0x80),
	snack = ProtoField.bool("scps_tp.snack_ok", "Short SNACK", 8, nil, 0x40),
	snack_long = ProtoField.bool("scps_tp.snack_long_ok", "Long SNACK", 8, nil, 0x20),
	compression = ProtoField.bool("scps_tp.compression_ok", "Header compression", 8, nil, 0x10),
	nlts = ProtoField.bool("scps_tp.nlts", "Network-layer timestamps", 8, nil, 0x08),
	id = ProtoField.uint8("scps_tp.connection_id", "Connection for compressed headers"),
	extended = ProtoField.bytes("scps_tp.binding_spaces", "Binding spaces"),
	offset = ProtoField.uint16("scps_tp.snack.offset", "SNACK: start of the hole, in segments"),
	size = ProtoField.uint16("scps_tp.snack.size", "SNACK: length of the hole, in segments"),
	vector = ProtoField.bytes("scps_tp.snack.vector", "SNACK: further segments"),
	record = ProtoField.none("scps_tp.record_end", "End of record"),
	corruption = ProtoField.none("scps_tp.corruption_experienced", "Corruption experienced"),
}
options.fields = o

-- The kinds of `range`, a list of options as TCP has them.
function dissect_options(range, tree)
	local at, item = 0, nil
	local function here(kind, len)
		item = item or tree:add(options, range)
		return range(at, len)
	end
	while at < range:len() do
		local kind = range(at, 1):uint()
		if kind == 0 then return end
		local len = 1
		if kind ~= 1 then
			if at + 1 >= range:len() then return end
			len = range(at + 1, 1):uint()
			if len < 2 or at + len > range:len() then return end
		end
		if kind == 20 and len == 4 then
			local body = here(kind, len)
			for _, field in ipairs({ o.bets, o.snack, o.snack_long, o.compression, o.nlts }) do item:add(field, body(2, 1)) end
			item:add(o.id, body(3, 1))
		elseif kind == 20 and len > 4 then
			item = here(kind, len) and item
			item:add(o.extended, range(at + 2, len - 2))
		elseif kind == 21 and len >= 6 then
			local body = here(kind, len)
			item:add(o.offset, body(2, 2))
			item:add(o.size, body(4, 2))
			if len > 6 then item:add(o.vector, body(6, len - 6)) end
		elseif kind == 22 then
			local body = here(kind, len)
			item:add(o.record, body)
		elseif kind == 23 then
			local body = here(kind, len)
			item:add(o.corruption, body)
		end
		at = at + len
	end
end

-- SCPS-NP (scps-np §1).
function dissect_np(buffer, pinfo, tree)
	if buffer:len() < 3 then return 0 end
	local version = math.floor(buffer(0, 1):uint() / 32)
	if not VERSIONS[version] then return 0 end
	local length = buffer(0, 2):uint() % 8192
	pinfo.cols.protocol = "SCPS-NP"
	local item = tree:add(np, buffer(0, math.min(length, buffer:len())))
	item:add(f.version, buffer(0, 1))
	item:add(f.length, buffer(0, 2))
	if length < 3 or length > buffer:len() then
		item:add_proto_expert_info(malformed, "Length field of " .. length .. " octets, " .. buffer:len() .. " are there")
		return buffer:len()
	end
	local at = 2
	local function take(n)
		if at + n > length then error("the header does not fit") end
		at = at + n
		return buffer(at - n, n)
	end
	local tpid, info = 0, {}
	local complete = pcall(function()
		local ctl2 = take(1)
		local two, three, four = ctl2:uint(), 0, 0
		tpid = math.floor(two / 16)
		for _, field in ipairs({ f.tpid, f.more3, f.has_dst, f.has_check }) do item:add(field, ctl2) end
		if has(two, 0x08) then
			local ctl3 = take(1)
			three = ctl3:uint()
			for _, field in ipairs({ f.more4, f.has_src, f.has_hops, f.ts_format, f.has_qos, f.extended }) do item:add(field, ctl3) end
		end
		if has(three, 0x80) then
			local ctl4 = take(1)
			four = ctl4:uint()
			for _, field in ipairs({ f.ipv6, f.has_eqos, f.intermediate }) do item:add(field, ctl4) end
		end
		local len = (has(four, 0x40)) and 16 or (has(three, 0x02)) and 4 or 2
		if has(two, 0x02) then
			local dst = take(len)
			if has(three, 0x40) then
				local src = take(len)
				item:add(f.dst, dst)
				item:add(f.src, src)
				info[#info + 1] = tostring(src:bytes()):lower() .. " → " .. tostring(dst:bytes()):lower()
			else
				item:add(f.path, dst)
				info[#info + 1] = "path " .. tostring(dst:bytes()):lower()
			end
		end
		if has(three, 0x04) then
			local qos = take(1)
			for _, field in ipairs({ f.precedence, f.routing, f.specific }) do item:add(field, qos) end
			info[#info + 1] = "precedence " .. math.floor(qos:uint() / 16)
		end
		if has(three, 0x20) then item:add(f.hops, take(1)) end
		local format = math.floor(three / 8) % 4
		if format ~= 0 then item:add(f.timestamp, take(format == 3 and 4 or 3)) end
		if has(four, 0x20) then
			local eqos = take(1)
			item:add(f.eqos_precedence, eqos)
			item:add(f.eqos_tos, eqos)
		end
		if has(two, 0x01) then
			local sum = sum_of(buffer(0, at))
			local field = take(2)
			local good = field:uint() == (version == 4 and sum or 0xffff - sum)
			item:add(f.check, field)
			item:add(f.check_good, field, good):set_generated()
			if not good then item:add_proto_expert_info(bad_check) end
		end
	end)
	item:set_len(at)
	item:append_text(", " .. table.concat(info, ", "))
	pinfo.cols.info = (TPIDS[tpid] or ("protocol " .. tpid)) .. ", " .. table.concat(info, ", ")
	if not complete then
		item:add_proto_expert_info(malformed)
		return buffer:len()
	end
	if at < length then
		local payload = buffer(at, length - at):tvb()
		local upper = { [1] = scmp.dissector, [4] = ctp.dissector, [5] = Dissector.get("udp"), [6] = Dissector.get("tcp"), [8] = sp.dissector }
		local dissector = upper[tpid] or Dissector.get("data")
		-- A cut segment raises an error, which is this datagram's and nobody else's.
		local read = pcall(function()
			if type(dissector) == "function" then dissector(payload, pinfo, tree) else dissector:call(payload, pinfo, tree) end
		end)
		if not read then item:add_proto_expert_info(malformed, "Malformed " .. (TPIDS[tpid] or "user data")) end
	end
	return buffer:len()
end
np.dissector = dissect_np

-- The options of SCPS-TP beside those that Wireshark shows of TCP.
local tcp_options = Field.new("tcp.options")
local post = Proto("scps_tp_options", "SCPS-TP options of TCP segments")
function post.dissector(_, _, tree)
	for _, found in ipairs({ tcp_options() }) do
		dissect_options(found.range, tree)
	end
end
register_postdissector(post, false)

-- What UDP carries between SCPS nodes: IPv4 packets or NP datagrams, told apart by the first octet (scps-np §4.4).
local encapsulation = Proto("scps_udp", "SCPS in UDP")
function encapsulation.dissector(buffer, pinfo, tree)
	if buffer:len() == 0 then return 0 end
	if math.floor(buffer(0, 1):uint() / 16) == 4 then return Dissector.get("ip"):call(buffer, pinfo, tree) end
	return dissect_np(buffer, pinfo, tree)
end

-- 99: SCPS-SP (scps-sp §1); 105: compressed SCPS-TP; 106: SCPS-TP of the stand-alone reference implementation (scps-tp §1.2).
local ip_protocols = DissectorTable.get("ip.proto")
ip_protocols:add(99, sp)
ip_protocols:add(105, ctp)
ip_protocols:add(106, Dissector.get("tcp"))
ip_protocols:add(118, np)
DissectorTable.get("udp.port"):add(7168, encapsulation)
