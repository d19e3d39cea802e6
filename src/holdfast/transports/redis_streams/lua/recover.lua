-- recover: entries that were read by somebody who did nothing about them are for others; consumers without any, who
-- have not been heard of for long, are removed. A bounded number at a time.
--
-- KEYS[1]        the queue's hash `meta`: the field `cursor:N` says where the search of lane N goes on
-- KEYS[2..]      the streams of its lanes
-- ARGV[1]        for how many milliseconds an entry has to have been read
-- ARGV[2]        for how many a consumer has to have been silent
-- ARGV[3]        how many entries of a lane are looked at
-- ARGV[4..]      N of each stream
--
-- Who read it may still live, and be slow: then two know of the job, and the store gives it to one of them. The entry
-- goes to the end of its stream, in the same moment as the old one goes. What was deleted by somebody else leaves only
-- the group's note of it, which goes as well. So does what is not ours: whoever read it may have failed over it, and so
-- would the next. Answers {entries added again, consumers removed}.
local moved, removed = 0, 0
for i = 2, #KEYS do
  local key, field = KEYS[i], 'cursor:' .. ARGV[i + 2]
  local groups = redis.pcall('XPENDING', key, 'workers')
  if not groups.err then
    if groups[1] > 0 then
      local from = redis.call('HGET', KEYS[1], field) or '0-0'
      local got = redis.call('XAUTOCLAIM', key, 'workers', 'recovery', ARGV[1], from, 'COUNT', ARGV[3], 'JUSTID')
      for _, id in ipairs(got[2]) do
        local found = redis.call('XRANGE', key, id, id)
        local fields = found[1] and found[1][2]
        if fields and #fields == 2 and fields[1] == 'j' and (#fields[2] == 16 or fields[2] == '') then
          redis.call('XADD', key, '*', 'j', fields[2])
          moved = moved + 1
        end
        redis.call('XACK', key, 'workers', id)
        redis.call('XDEL', key, id)
      end
      if got[1] == '0-0' then
        redis.call('HDEL', KEYS[1], field)
      else
        redis.call('HSET', KEYS[1], field, got[1])
      end
    end
    for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', key, 'workers')) do
      if consumer[4] == 0 and consumer[6] >= tonumber(ARGV[2]) then
        redis.call('XGROUP', 'DELCONSUMER', key, 'workers', consumer[2])
        removed = removed + 1
      end
    end
  end
end
return {moved, removed}
