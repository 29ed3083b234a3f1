-- When a block is full and refuses a change: its text would be beyond the limit, and is longer than before, or the limit is a new one.
local function is_beyond_chars(block, size, former, is_new_limit)
  return size > block.lc and (size > former or is_new_limit)
end
-- `tokens` of the text after the change; a text that is written anew as a whole (`rewritten`) is refused however long the former one was.
local function is_beyond_tokens(block, tokens, size, former, is_new_limit, rewritten)
  return block.lt > 0 and tokens > block.lt and (size > former or is_new_limit or rewritten)
end
return {is_beyond_chars = is_beyond_chars, is_beyond_tokens = is_beyond_tokens}
