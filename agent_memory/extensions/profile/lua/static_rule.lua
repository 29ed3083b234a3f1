-- An entry is static if it is about something lasting, or if it represents a group that recurs and that was mentioned
-- in the last 180 days. `history.classify` applies the same rule to past times.
local TIMES, WITHIN, SILENT, KEPT, DAY = 3, 14, 180, 400, 86400
local LASTING = 1e12
-- Return the same as `history.stable_until`, from the latest statements of a group.
local function stable_until(base, group)
  local rows = redis.call('ZREVRANGEBYLEX', base .. ':g', '[' .. group .. ' d~', '[' .. group .. ' d', 'LIMIT', 0, KEPT)
  local days = {}
  for _, row in ipairs(rows) do
    local day = tonumber(string.sub(row, #group + 3, #group + 8))
    if day ~= days[#days] then
      if #days > 0 and days[#days] - day >= SILENT then break end
      days[#days + 1] = day
    end
  end
  for i = 1, #days - TIMES + 1 do
    if days[i] - days[i + TIMES - 1] < WITHIN then return (days[1] + SILENT) * DAY end
  end
  return nil
end
-- Return until when (s) an entry is static, or nil if it is dynamic. The time is also its sort score.
local function score(base, mid, head)
  local static_until = head.k == 1 and LASTING + head.l or nil
  local fields = {}
  for i, group in ipairs(head.g) do fields[i] = 'u' .. group end
  for _, value in ipairs(redis.call('HMGET', base, unpack(fields))) do
    local seconds, top = string.match(value or '', '^(%d+) (%x+)$')
    if top == mid then static_until = math.max(static_until or 0, tonumber(seconds)) end
  end
  return static_until
end
return {stable_until = stable_until, score = score}
