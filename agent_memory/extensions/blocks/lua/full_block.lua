-- Return true if the new text exceeds the limit, and either the text grows or the limit is new. A text that is already
-- too long may shrink step by step.
local function is_beyond_chars(block, size, former, is_new_limit)
  return size > block.lc and (size > former or is_new_limit)
end
-- `tokens` is the size of the text after the change. A `rewritten` text above the limit is refused even if it has
-- become shorter.
local function is_beyond_tokens(block, tokens, size, former, is_new_limit, rewritten)
  return block.lt > 0 and tokens > block.lt and (size > former or is_new_limit or rewritten)
end
return {is_beyond_chars = is_beyond_chars, is_beyond_tokens = is_beyond_tokens}
