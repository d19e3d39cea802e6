-- fetch: forgets what was dealt with, and gives up to a quota of new entries per lane, oldest first. Never waits.
--
-- KEYS[1..n]    the hash `meta` of each queue that the lanes are of
-- KEYS[n+1..]   the stream of a lane
-- ARGV[1]       the consumer: the id of a worker
-- ARGV[2]       n
-- then for each stream: its quota, the number of its entries that were dealt with, and their ids
--
-- An entry leaves the stream together with the group's note that it was read: nothing is left of it. Only the worker
-- that has committed a claim asks for that, so an entry that was read and led to nothing is still there.
-- What is not ours is not sent: it may be larger than anybody has time for.
-- Answers {entries, more, news}. entries: number of the lane, id, content of the field `j`, and so on; a content of one `?`
-- is that of an entry that is not ours. more: the numbers of the lanes that have entries which nobody has read. news: of
-- each queue what its `news` is now; when it is another than before, its settings in the store have changed.
local function unread(key)
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do
    if group[2] == 'workers' then -- others may have groups of their own there
      return redis.call('XRANGE', key, '(' .. group[8], '+', 'COUNT', 1)[1] ~= nil
    end
  end
  return true
end

local function is_ours(fields)
  return fields and #fields == 2 and fields[1] == 'j' and (#fields[2] == 16 or fields[2] == '')
end

local consumer, queues, at, quotas = ARGV[1], tonumber(ARGV[2]), 3, {}
for i = queues + 1, #KEYS do
  local count = tonumber(ARGV[at + 1])
  quotas[i] = ARGV[at]
  for first = at + 2, at + 1 + count, 1000 do
    local last = math.min(first + 999, at + 1 + count)
    redis.call('XACK', KEYS[i], 'workers', unpack(ARGV, first, last))
    redis.call('XDEL', KEYS[i], unpack(ARGV, first, last))
  end
  at = at + 2 + count
end
local entries, more, news, n = {}, {}, {}, 0
for i = 1, queues do
  news[i] = redis.call('HGET', KEYS[i], 'news') or ''
end
for i = queues + 1, #KEYS do
  local key = KEYS[i]
  if redis.call('XLEN', key) > 0 then
    local got = 0
    if quotas[i] ~= '0' then
      local read = redis.pcall('XREADGROUP', 'GROUP', 'workers', consumer, 'COUNT', quotas[i], 'STREAMS', key, '>')
      if read and read.err then
        if not string.find(read.err, 'NOGROUP', 1, true) then
          return read
        end
        redis.call('XGROUP', 'CREATE', key, 'workers', '0')
        read = redis.call('XREADGROUP', 'GROUP', 'workers', consumer, 'COUNT', quotas[i], 'STREAMS', key, '>')
      end
      if read then
        got = #read[1][2]
        for _, entry in ipairs(read[1][2]) do
          local fields = entry[2]
          entries[n + 1], entries[n + 2] = i - queues, entry[1]
          entries[n + 3] = is_ours(fields) and fields[2] or '?'
          n = n + 3
        end
      end
    end
    if got == tonumber(quotas[i]) and unread(key) then
      more[#more + 1] = i - queues
    end
  end
end
return {entries, more, news}
