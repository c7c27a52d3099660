-- Wireshark's view of Fanin: the messages of the live system, the requests of barrier workloads, and M21TCP's option.
-- Copy it into Wireshark's folder of personal Lua plugins, or: tshark -X lua_script:fanin.lua -r FILE
-- Where another protocol has the port (7000 is Gryphon's), set the preference tcp.try_heuristic_first.
-- The formats: docs/message.md, crates/node/src/codec.rs, crates/switch/src/datapath/m21.rs.

local KINDS = {
  [1] = "Hello", [2] = "Welcome", [3] = "Ready", [4] = "Done", [5] = "Assign", [6] = "Request", [7] = "Answer", [8] = "Clear",
  [9] = "Flow", [10] = "Offer", [11] = "Grant", [12] = "Refuse", [13] = "Withdraw", [14] = "Event", [15] = "Stored",
  [0xffffff01] = "Greeting", [0xffffff02] = "Heartbeat", [0xffffff03] = "Refusal", [0xffffff04] = "Challenge",
  [0xffffff05] = "Proof",
}
-- Messages that begin with an L1 ID.
local NAMES_EVENT = {
  [3] = true, [4] = true, [5] = true, [6] = true, [7] = true, [10] = true, [11] = true, [12] = true, [13] = true, [14] = true,
  [15] = true,
}
local GREETING = 0xffffff01
local OTHER_VERSIONS = 0xffffff06
local REFUSAL = 0xffffff03
local HEADER_BYTES = 12
local MESSAGE_BYTES_MAX = 64 * 1024 * 1024
local BARRIER = "fanin-rq"
local BARRIER_BYTES = 64

local fanin = Proto("fanin", "Fanin message")
local f = {
  kind = ProtoField.uint32("fanin.type", "Type", base.HEX, KINDS),
  stream = ProtoField.uint32("fanin.stream", "Stream"),
  size = ProtoField.uint32("fanin.size", "Payload bytes"),
  l1_id = ProtoField.uint64("fanin.l1_id", "L1 ID"),
  layout = ProtoField.uint16("fanin.layout", "Layout"),
  lowest = ProtoField.uint16("fanin.lowest", "Lowest version"),
  highest = ProtoField.uint16("fanin.highest", "Highest version"),
  heartbeat = ProtoField.uint32("fanin.heartbeat", "Heartbeat interval, ms"),
  name = ProtoField.string("fanin.name", "Name"),
  expects = ProtoField.string("fanin.expects", "Expected name"),
  reason = ProtoField.string("fanin.reason", "Reason"),
  stop = ProtoField.uint16("fanin.stop", "Stop"),
  offered = ProtoField.uint64("fanin.offered", "Offered bytes"),
  round = ProtoField.uint64("fanin.round", "Round"),
  measured = ProtoField.bool("fanin.measured", "Measured round"),
  rest = ProtoField.uint32("fanin.continued", "Bytes of an earlier message"),
}
fanin.fields = { f.kind, f.stream, f.size, f.l1_id, f.layout, f.lowest, f.highest, f.heartbeat, f.name, f.expects, f.reason, f.stop, f.offered,
  f.round, f.measured, f.rest }

local tcp_stream = Field.new("tcp.stream")
-- Per connection and direction: bytes of the current message that are still to come. Per frame: how many it begins with.
local pending, begins = {}, {}

function fanin.init()
  pending, begins = {}, {}
end

local function is_header(tvb, at)
  if tvb:len() - at < HEADER_BYTES then return false end
  local kind, size = tvb(at, 4):le_uint(), tvb(at + 8, 4):le_uint()
  return KINDS[kind] ~= nil and size <= MESSAGE_BYTES_MAX
end

-- A name: its length in 16 bits, and its bytes. Returns where it ends.
local function add_name(tree, field, tvb, at, last)
  if at + 2 > last then return last end
  local length = tvb(at, 2):le_uint()
  if at + 2 + length > last then return last end
  tree:add(field, tvb(at + 2, length))
  return at + 2 + length
end

local function add_payload(tree, tvb, kind, at, last)
  if kind == GREETING and last - at >= 14 then
    tree:add_le(f.layout, tvb(at + 4, 2))
    tree:add_le(f.heartbeat, tvb(at + 6, 4))
    tree:add_le(f.lowest, tvb(at + 10, 2))
    tree:add_le(f.highest, tvb(at + 12, 2))
    add_name(tree, f.expects, tvb, add_name(tree, f.name, tvb, at + 14, last), last)
  elseif kind == OTHER_VERSIONS and last - at >= 4 then
    tree:add_le(f.lowest, tvb(at, 2))
    tree:add_le(f.highest, tvb(at + 2, 2))
  elseif kind == REFUSAL and last > at then
    tree:add(f.reason, tvb(at, last - at))
  elseif kind == 9 and last - at >= 2 then
    tree:add_le(f.stop, tvb(at, 2))
  elseif NAMES_EVENT[kind] and last - at >= 8 then
    tree:add_le(f.l1_id, tvb(at, 8))
    if kind == 10 and last - at >= 16 then tree:add_le(f.offered, tvb(at + 8, 8)) end
  end
end

-- Captures cut frames: `whole` counts the bytes that were on the wire, `tvb` holds those that were captured.
local function dissect(tvb, pinfo, root)
  local whole = tvb:reported_len()
  local key = tostring(tcp_stream()) .. "/" .. tostring(pinfo.src_port)
  if not pinfo.visited then begins[pinfo.number] = pending[key] or 0 end
  local at = math.min(begins[pinfo.number] or 0, whole)
  local left = (begins[pinfo.number] or 0) - at
  local names = {}
  local tree = root:add(fanin, tvb())
  if at > 0 then tree:add(f.rest, at):set_generated() end
  while at < whole and is_header(tvb, at) do
    local kind, size = tvb(at, 4):le_uint(), tvb(at + 8, 4):le_uint()
    local last = math.min(at + HEADER_BYTES + size, tvb:len())
    local message = tree:add(fanin, tvb(at, last - at), KINDS[kind])
    message:add_le(f.kind, tvb(at, 4))
    message:add_le(f.stream, tvb(at + 4, 4))
    message:add_le(f.size, tvb(at + 8, 4))
    add_payload(message, tvb, kind, at + HEADER_BYTES, last)
    names[#names + 1] = KINDS[kind]
    left = math.max(0, at + HEADER_BYTES + size - whole)
    at = at + HEADER_BYTES + size
  end
  -- What follows a cut frame is not known: the next one starts anew.
  if not pinfo.visited then pending[key] = left end
  pinfo.cols.protocol = "Fanin"
  if #names > 0 then pinfo.cols.info:prepend(table.concat(names, ", ") .. "  ") end
end

local function dissect_barrier(tvb, pinfo, root)
  local tree = root:add(fanin, tvb(), "Fanin barrier request")
  tree:add_le(f.round, tvb(8, 8))
  tree:add(f.measured, tvb(16, 1))
  pinfo.cols.protocol = "Fanin"
  pinfo.cols.info:prepend("Request of a round  ")
end

function fanin.dissector(tvb, pinfo, root)
  if tvb:len() >= 17 and tvb(0, 8):string() == BARRIER then
    dissect_barrier(tvb, pinfo, root)
  else
    dissect(tvb, pinfo, root)
  end
  return tvb:len()
end

-- A connection is ours once a greeting, a barrier request or a plausible message begins one of its segments.
fanin:register_heuristic("tcp", function(tvb, pinfo, root)
  local greets = is_header(tvb, 0) and tvb(0, 4):le_uint() == GREETING and tvb:len() >= HEADER_BYTES + 4
    and tvb(HEADER_BYTES, 4):string() == "FNIN"
  local asks = tvb:reported_len() % BARRIER_BYTES == 0 and tvb:len() >= 17 and tvb(0, 8):string() == BARRIER
  if not greets and not asks then return false end
  fanin.dissector(tvb, pinfo, root)
  pinfo.conversation = fanin
  return true
end)

-- The option of M21TCP: kind 253, length 8, 1 towards the receiver or 2 for its echo, and the window in bytes.
local m21 = Proto("m21tcp", "M21TCP")
local ROLES = { [1] = "forward", [2] = "echo" }
local role = ProtoField.uint16("m21tcp.role", "Role", base.DEC, ROLES)
local window = ProtoField.uint32("m21tcp.window", "Window, bytes")
m21.fields = { role, window }
local options = Field.new("tcp.options")

function m21.dissector(_, _, root)
  local field = options()
  if field == nil then return end
  local range = field.range
  local at = 0
  while at < range:len() do
    local kind = range(at, 1):uint()
    if kind == 0 then return end
    if kind == 1 then
      at = at + 1
    else
      if at + 2 > range:len() then return end
      local length = range(at + 1, 1):uint()
      if length < 2 or at + length > range:len() then return end
      if kind == 253 and length == 8 and ROLES[range(at + 2, 2):uint()] then
        local tree = root:add(m21, range(at, 8), "M21TCP option, " .. ROLES[range(at + 2, 2):uint()])
        tree:add(role, range(at + 2, 2))
        tree:add(window, range(at + 4, 4))
      end
      at = at + length
    end
  end
end
register_postdissector(m21)
