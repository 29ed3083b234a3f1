-- Applies a JSON merge patch (RFC 7396) to texts, because cjson turns empty lists into objects and rounds large
-- numbers. `scripts.compact` writes both texts, so equal names have equal texts.
local function value_end(text, at)
  local first = string.sub(text, at, at)
  if first == '"' then
    while true do
      at = string.find(text, '["\\]', at + 1)
      if string.sub(text, at, at) == '"' then return at end
      at = at + 1
    end
  elseif first == '{' or first == '[' then
    local depth = 0
    while true do
      local sign = string.sub(text, at, at)
      if sign == '"' then at = value_end(text, at)
      elseif sign == '{' or sign == '[' then depth = depth + 1
      else depth = depth - 1 end
      if depth == 0 then return at end
      at = string.find(text, '["%[%]{}]', at + 1)
    end
  end
  return string.find(text, '[,%]}]', at) - 1
end
-- Returns the members of an object: the names in order, and the values by name.
local function members_of(text)
  local names, values, at = {}, {}, 2
  while string.sub(text, at, at) == '"' do
    local name_end = value_end(text, at)
    local name = string.sub(text, at, name_end)
    local stop = value_end(text, name_end + 2)
    if not values[name] then names[#names + 1] = name end
    values[name] = string.sub(text, name_end + 2, stop)
    at = stop + 2
  end
  return names, values
end
local function apply(target, patch)
  local names, values = members_of(string.sub(target, 1, 1) == '{' and target or '{}')
  local patched, patches = members_of(patch)
  for _, name in ipairs(patched) do
    local new = patches[name]
    if new == 'null' then
      values[name] = nil
    else
      local old = values[name]
      if not old then names[#names + 1] = name end
      values[name] = string.sub(new, 1, 1) == '{' and apply(old or '{}', new) or new
    end
  end
  local members = {}
  for _, name in ipairs(names) do
    if values[name] then members[#members + 1] = name .. ':' .. values[name] end
  end
  return '{' .. table.concat(members, ',') .. '}'
end
return {apply = apply}
