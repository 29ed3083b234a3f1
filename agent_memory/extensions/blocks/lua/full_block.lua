-- A full block refuses a change if its text exceeds the limit and grows, or if the limit is new.
local function is_beyond_chars(block, size, former, is_new_limit)
  return size > block.lc and (size > former or is_new_limit)
end
-- `tokens` of the text after the change; a `rewritten` text is refused even if it is shorter than before.
local function is_beyond_tokens(block, tokens, size, former, is_new_limit, rewritten)
  return block.lt > 0 and tokens > block.lt and (size > former or is_new_limit or rewritten)
end
return {is_beyond_chars = is_beyond_chars, is_beyond_tokens = is_beyond_tokens}
