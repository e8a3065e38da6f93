-- Reads what a client says of itself.
-- KEYS: proc
-- ARGV: none (not touched)
-- RETURNS: text (empty: nothing is known)
-- KEEPS: nothing is changed; a replica refuses to answer.
return redis.call('GETEX', KEYS[1]) or ''
