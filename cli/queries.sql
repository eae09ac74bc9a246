-- What the demo does to the database behind the ledger's back, as its owner.

-- name: switch_triggers_off
-- To the end of the transaction, and only for a superuser: the triggers refuse the owner, too.
SET LOCAL session_replication_role = replica

-- name: set_trust
UPDATE corrigenda.revision SET trust = %(trust)s WHERE revision = %(revision)s

-- name: flip_byte
UPDATE corrigenda.event SET envelope = set_byte(envelope, %(offset)s, get_byte(envelope, %(offset)s) # 1)
WHERE seq = %(seq)s
