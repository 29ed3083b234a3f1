-- While the embedding model changes, each written vector lacks its twin of the other model: `re:todo` has the names.
-- NEEDS: root
local function note(name)
  if redis.call('EXISTS', root .. 're') == 1 then redis.call('SADD', root .. 're:todo', name) end
end
-- True if the vectors of this field are being deleted, or are deleted.
local function is_gone(field) return redis.call('HGET', root .. 'cfg', 'gone') == field end
return {note = note, is_gone = is_gone}
