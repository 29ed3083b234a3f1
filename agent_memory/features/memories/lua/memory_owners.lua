#!lua flags=no-writes
-- Whose ids are.
-- KEYS: any
-- ARGV: root, mids...
-- -> per mid its owner, "-" when it is free
local owners = require("memories/owners")
local answer = {}
for i = mids_at, #ARGV do answer[#answer + 1] = owners.owner_of(ARGV[i]) or '-' end
return answer
