-- publish: one call for a batch of announcements, after the jobs are committed in the store.
--
-- KEYS[i]   the stream of a lane
-- ARGV[1]   how many entries a stream may have: no more is added, and never is one dropped that somebody may need (the
--           store still knows the job)
-- ARGV[2]   the same of entries that only wake somebody up
-- then for each stream: the number of its jobs, the number of its wake-ups, and the jobs' ids, 16 bytes each
--
-- An entry has one field, `j`: the id of a job, or nothing where the store's order decides which job is next.
-- The group begins at 0, so that it is given whatever was added before it was made. Answers how many were added.
local bound, wakes, at, added = tonumber(ARGV[1]), tonumber(ARGV[2]), 3, 0
for i = 1, #KEYS do
  local key, jobs, calls = KEYS[i], tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local length = redis.call('XLEN', key)
  if length == 0 and redis.call('EXISTS', key) == 0 then
    redis.call('XGROUP', 'CREATE', key, 'workers', '0', 'MKSTREAM')
  end
  for j = at + 2, at + 1 + math.min(jobs, bound - length) do
    redis.call('XADD', key, '*', 'j', ARGV[j])
    length, added = length + 1, added + 1
  end
  for _ = 1, math.min(calls, wakes - length) do
    redis.call('XADD', key, '*', 'j', '')
    length, added = length + 1, added + 1
  end
  at = at + 2 + jobs
end
return added
