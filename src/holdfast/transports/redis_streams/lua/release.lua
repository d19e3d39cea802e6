-- release: a consumer that ends; what it has read and not dealt with is for others, at the end of the stream.
--
-- KEYS[i]   the stream of a lane
-- ARGV[1]   the consumer
-- ARGV[2]   how many entries of a lane at most; the rest is found later, as that of a dead one is
--
-- Answers how many entries were added again.
local moved = 0 -- what is not ours, somebody's garbage, is dropped on the way
for i = 1, #KEYS do
  local key = KEYS[i]
  local pending = redis.pcall('XPENDING', key, 'workers', '-', '+', ARGV[2], ARGV[1])
  if not pending.err then
    for _, note in ipairs(pending) do
      local found = redis.call('XRANGE', key, note[1], note[1])
      local fields = found[1] and found[1][2]
      if fields and #fields == 2 and fields[1] == 'j' and (#fields[2] == 16 or fields[2] == '') then
        redis.call('XADD', key, '*', 'j', fields[2])
        moved = moved + 1
      end
      redis.call('XACK', key, 'workers', note[1])
      redis.call('XDEL', key, note[1])
    end
    if #pending < tonumber(ARGV[2]) then
      redis.call('XGROUP', 'DELCONSUMER', key, 'workers', ARGV[1])
    end
  end
end
return moved
