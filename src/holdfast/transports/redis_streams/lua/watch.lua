-- watch: whether a queue's streams are those that were filled, or begin anew.
--
-- KEYS[i]   the hash `meta` of a queue
-- ARGV[1]   a name for a queue's streams where they have none: they are new, or everything was lost
-- ARGV[2]   the server's own name of this run of it
--
-- `born` is that name; `filled` is `born`, and the run of the server in which the queue's ready jobs were last announced
-- as a whole: another run may have lost the last of what it was told. Answers, for each queue, what `filled` has to be
-- set to, or nothing where that is what it is.
local wanted = {}
for i = 1, #KEYS do
  local born = redis.call('HGET', KEYS[i], 'born')
  if not born then
    born = ARGV[1]
    redis.call('HSET', KEYS[i], 'born', born)
  end
  local mark = born .. ' ' .. ARGV[2]
  wanted[i] = redis.call('HGET', KEYS[i], 'filled') == mark and '' or mark
end
return wanted
