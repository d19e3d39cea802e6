-- ensure: every lane has its stream and its group, as a reader that waits on all of them needs.
--
-- KEYS[i]   the stream of a lane
for i = 1, #KEYS do
  local made = redis.pcall('XGROUP', 'CREATE', KEYS[i], 'workers', '0', 'MKSTREAM')
  if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then
    return made
  end
end
return redis.status_reply('OK')
