#!lua flags=no-writes
-- Returns the owners of ids.
-- KEYS: any
-- ARGV: root, mids...
-- -> for each mid its owner, or "-" if the id is free
local owners = require("memories/owners")
local answer = {}
for i = mids_at, #ARGV do answer[#answer + 1] = owners.owner_of(ARGV[i]) or '-' end
return answer
