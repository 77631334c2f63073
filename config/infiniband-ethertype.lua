-- SPDX-License-Identifier: BSD-3-Clause
-- Copyright(c) 2026 Polca contributors
--
-- Wireshark and tshark: native InfiniBand packets in Ethernet frames of EtherType 0x88B5, as ports
-- with encapsulation "ib" send and receive them.
--
--     tshark -X lua_script:infiniband-ethertype.lua -r FILE.pcap
--     tshark -X lua_script:infiniband-ethertype.lua -X lua_script1:0x88b6 ...     another EtherType
--
-- or copy it into the personal plugin folder (Help, About, Folders), where Wireshark loads it by
-- itself. "Decode As" cannot replace it: it offers RoCE, which starts at the GRH.

local LRH_LEN = 8
local VCRC_LEN = 2

local ethertype = tonumber((...)) or 0x88b5
local infiniband = Dissector.get("infiniband") -- this dissector starts at the LRH
local carrier = Proto("polca_ib", "InfiniBand in Ethernet")

function carrier.dissector(frame, pinfo, tree)
	local len = frame:len()

	-- a short frame has padding after the VCRC, but the dissector expects the VCRC at the end
	if len >= LRH_LEN then
		len = math.min(len, frame(4, 2):bitfield(5, 11) * 4 + VCRC_LEN)
	end
	infiniband:call(frame(0, len):tvb(), pinfo, tree)
end

DissectorTable.get("ethertype"):add(ethertype, carrier)
