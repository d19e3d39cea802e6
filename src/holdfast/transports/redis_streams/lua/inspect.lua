-- inspect: what is known of one queue; changes nothing.
--
-- KEYS[1]    the queue's hash `meta`
-- KEYS[2..]  the streams of its lanes
-- ARGV[1]    the server's own name of this run of it
--
-- Answers {entries, those that were read, for how many milliseconds the oldest of those, 1 if the queue is filled (see
-- watch), numbers of the keys that are not of their kind}.
local entries, read, idle, filled, foreign = 0, 0, 0, 0, {}
local born = redis.pcall('HGET', KEYS[1], 'born')
if type(born) == 'table' then
  foreign[1] = 1
elseif born and redis.call('HGET', KEYS[1], 'filled') == born .. ' ' .. ARGV[1] then
  filled = 1
end
for i = 2, #KEYS do
  local length = redis.pcall('XLEN', KEYS[i])
  if type(length) == 'table' then
    foreign[#foreign + 1] = i
  else
    entries = entries + length
    local pending = redis.pcall('XPENDING', KEYS[i], 'workers')
    if not pending.err and pending[1] > 0 then
      read = read + pending[1]
      local oldest = redis.call('XPENDING', KEYS[i], 'workers', '-', '+', 1)[1]
      idle = math.max(idle, oldest[3])
    end
  end
end
return {entries, read, idle, filled, foreign}
