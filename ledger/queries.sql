-- A query that gives each parameter its type once, as in `::text`, is asked in one round trip; any other takes three.
-- Every statement names the whole key. Lookups of many keys are one LATERAL … LIMIT 1 per key: without statistics
-- for a new ledger, `= ANY` and joins on unnest scan the ledger's whole prefix.

-- name: begin_seeing
-- Begins a transaction that sees one ledger's rows, and one tenant's; two statements, sent as text in one round trip.
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT set_config('corrigenda.ledger', %(ledger)s, true), set_config('corrigenda.tenant', %(tenant)s, true)

-- name: begin_snapshot
-- The same, for reading what belongs together: nothing that is committed meanwhile is seen.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT set_config('corrigenda.ledger', %(ledger)s, true), set_config('corrigenda.tenant', %(tenant)s, true)

-- name: see
-- The same inside a transaction, to its end.
SELECT set_config('corrigenda.ledger', %(ledger)s::text, true), set_config('corrigenda.tenant', %(tenant)s::text, true)

-- name: own_role
-- What our role may do, by itself or as a member of others; a superuser is a member of all.
SELECT session_user::text,
       EXISTS (SELECT 1 FROM pg_roles r WHERE r.rolsuper AND pg_has_role(session_user, r.oid, 'MEMBER')),
       EXISTS (SELECT 1 FROM pg_roles r WHERE r.rolbypassrls AND pg_has_role(session_user, r.oid, 'MEMBER')),
       EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = to_regnamespace('corrigenda') AND c.relkind IN ('r', 'p')
               AND pg_has_role(session_user, c.relowner, 'MEMBER')),
       EXISTS (SELECT 1 FROM pg_roles r WHERE r.rolname = 'corrigenda_writer'
               AND pg_has_role(session_user, r.oid, 'USAGE'))

-- name: lock_first_use
-- Held to the end of the transaction; also taken by migrations/prepare.sql.
SELECT pg_advisory_xact_lock(4859180126538301)

-- name: schema_version
SELECT version_num FROM corrigenda.alembic_version

-- name: durability
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'zero_damaged_pages', 'ignore_checksum_failure')

-- name: find_tenant
SELECT ledger FROM corrigenda.tenant WHERE name = %(tenant)s

-- name: any_ledger
-- Whether a tenant is known, and whether anything of a ledger is there that no tenant's row names: then a row was
-- removed. Asked through the wall of row-level security.
SELECT named, unnamed FROM corrigenda.any_ledger()

-- name: name_tenant
-- The name under which this ledger is found.
SELECT name FROM corrigenda.tenant WHERE ledger = %(ledger)s

-- name: any_above
-- Whether a payload or an effect lies above a position, which no append can have left there.
SELECT EXISTS (SELECT 1 FROM corrigenda.payload WHERE ledger = %(ledger)s AND seq > %(after)s),
       EXISTS (SELECT 1 FROM corrigenda.outbox WHERE ledger = %(ledger)s AND seq > %(after)s)

-- name: read_openings
-- Every tenant's row with its ledger's event 0; read before another ledger is made, under the lock of first use, by the
-- owner: nobody else is shown other tenants' rows.
SELECT tenant, ledger, envelope, seal, salt, body FROM corrigenda.openings()

-- name: insert_tenant
INSERT INTO corrigenda.tenant (name, ledger) VALUES (%(tenant)s, %(ledger)s)

-- name: insert_head
INSERT INTO corrigenda.head (ledger, seq, hash, incarnation, gen, projector)
VALUES (%(ledger)s, 0, %(hash)s, 1, 1, %(projector)s)

-- name: read_head
SELECT seq, hash, incarnation, gen, projector FROM corrigenda.head WHERE ledger = %(ledger)s::text

-- name: read_tip
-- The head, and the last event there is, of one moment: above the head there is none.
SELECT seq, hash, incarnation, gen, projector,
       (SELECT coalesce(max(seq), -1) FROM corrigenda.event WHERE ledger = %(ledger)s::text)
FROM corrigenda.head WHERE ledger = %(ledger)s::text

-- name: lock_head
-- Waits for whoever is appending, and then nobody else appends until this transaction ends.
SELECT seq, hash, incarnation, gen, projector FROM corrigenda.head WHERE ledger = %(ledger)s::text FOR UPDATE

-- name: pin_isolation
-- For all of a session, whatever the role's default is: transactions without a BEGIN have no other way to say it.
SELECT set_config('default_transaction_isolation', 'read committed', false)

-- name: begin
-- Said each time: a role's own default may be another level, at which a lost race is an error of its own.
BEGIN ISOLATION LEVEL READ COMMITTED

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: enter
-- What holds for one transaction: which ledger's rows it sees, and how long it waits for a lock.
SELECT set_config('corrigenda.ledger', %(ledger)s::text, true), set_config('lock_timeout', %(lock_timeout)s::text, true)

-- name: read_gap
-- What others have appended above a position, for whoever has just locked the head.
SELECT seq, envelope, seal FROM corrigenda.event
WHERE ledger = %(ledger)s::text AND seq > %(after)s::bigint AND seq <= %(until)s::bigint ORDER BY seq

-- name: append
-- A group's events and payloads under the guard: raises on the server if the head is not as it was read, so that nothing
-- of it, and nothing behind it in the flush, can commit.
WITH moved AS (
    UPDATE corrigenda.head SET seq = %(seq)s::bigint, hash = %(hash)s::bytea
    WHERE ledger = %(ledger)s::text AND seq = %(old_seq)s::bigint AND hash = %(old_hash)s::bytea
      AND gen = %(gen)s::bigint AND projector = %(projector)s::integer AND incarnation = %(incarnation)s::integer
    RETURNING ledger
), events AS (
    INSERT INTO corrigenda.event (ledger, seq, stream, stream_seq, envelope, hash, seal, request)
    SELECT moved.ledger, u.* FROM moved, unnest(
        %(seqs)s::bigint[], %(streams)s::text[], %(stream_seqs)s::bigint[], %(envelopes)s::bytea[],
        %(hashes)s::bytea[], %(seals)s::bytea[], %(requests)s::bytea[]) u
), payloads AS (
    INSERT INTO corrigenda.payload (ledger, seq, salt, body)
    SELECT moved.ledger, u.*
    FROM moved, unnest(%(payload_seqs)s::bigint[], %(salts)s::bytea[], %(bodies)s::bytea[]) u
)
SELECT (CASE WHEN count(*) = 1 THEN '1' ELSE 'HEAD_MOVED' END)::int FROM moved

-- name: append_single
-- The same for a group of one event, without arrays: the server then plans and runs it in two thirds of the time.
WITH moved AS (
    UPDATE corrigenda.head SET seq = %(seq)s::bigint, hash = %(hash)s::bytea
    WHERE ledger = %(ledger)s::text AND seq = %(old_seq)s::bigint AND hash = %(old_hash)s::bytea
      AND gen = %(gen)s::bigint AND projector = %(projector)s::integer AND incarnation = %(incarnation)s::integer
    RETURNING ledger
), events AS (
    INSERT INTO corrigenda.event (ledger, seq, stream, stream_seq, envelope, hash, seal, request)
    SELECT moved.ledger, %(seq)s::bigint, %(stream)s::text, %(stream_seq)s::bigint, %(envelope)s::bytea,
           %(hash)s::bytea, %(seal)s::bytea, %(request)s::bytea
    FROM moved
), payloads AS (
    INSERT INTO corrigenda.payload (ledger, seq, salt, body)
    SELECT moved.ledger, %(seq)s::bigint, %(salt)s::bytea, %(body)s::bytea
    FROM moved WHERE %(body)s::bytea IS NOT NULL
)
SELECT (CASE WHEN count(*) = 1 THEN '1' ELSE 'HEAD_MOVED' END)::int FROM moved

-- name: insert_events
-- Of a ledger that begins; every other event comes with `append`.
INSERT INTO corrigenda.event (ledger, seq, stream, stream_seq, envelope, hash, seal, request)
SELECT %(ledger)s::text, u.* FROM unnest(
    %(seqs)s::bigint[], %(streams)s::text[], %(stream_seqs)s::bigint[], %(envelopes)s::bytea[],
    %(hashes)s::bytea[], %(seals)s::bytea[], %(requests)s::bytea[]) u

-- name: insert_payloads
INSERT INTO corrigenda.payload (ledger, seq, salt, body)
SELECT %(ledger)s::text, u.* FROM unnest(%(seqs)s::bigint[], %(salts)s::bytea[], %(bodies)s::bytea[]) u

-- name: insert_outbox
INSERT INTO corrigenda.outbox (ledger, seq, revision, effect, lineage)
SELECT %(ledger)s::text, u.* FROM unnest(
    %(seqs)s::bigint[], %(revisions)s::text[], %(effects)s::text[], %(lineages)s::text[]) u

-- name: insert_objects
-- The bytes of evidence, under its stream. That nothing is there yet, the version of that stream has said.
INSERT INTO corrigenda.evidence_object (ledger, evidence, body)
SELECT %(ledger)s::text, u.* FROM unnest(%(objects)s::text[], %(bytes)s::bytea[]) u

-- name: read_object
SELECT body FROM corrigenda.evidence_object WHERE ledger = %(ledger)s AND evidence = %(evidence)s

-- name: read_after
-- The walk's page: what is needed to follow the chain, in order. A page is a range of positions: with a LIMIT instead,
-- and without statistics, the rest of the ledger is read and sorted for every page.
SELECT seq, envelope, seal FROM corrigenda.event
WHERE ledger = %(ledger)s::text AND seq > %(after)s::bigint AND seq <= %(until)s::bigint ORDER BY seq

-- name: read_whole_after
-- The verification's page of events: every column that is stored of each.
SELECT seq, stream, stream_seq, envelope, hash, seal, request FROM corrigenda.event
WHERE ledger = %(ledger)s::text AND seq > %(after)s::bigint AND seq <= %(until)s::bigint ORDER BY seq

-- name: read_payloads
-- The payloads of such a page. Read behind it, a statement of its own costs half of what a join does.
SELECT seq, salt, body FROM corrigenda.payload
WHERE ledger = %(ledger)s::text AND seq > %(after)s::bigint AND seq <= %(until)s::bigint ORDER BY seq

-- name: large_row
-- A row that is read for its size alone: libpq keeps a buffer as large as the largest one.
SELECT repeat(' ', 262144)

-- name: next_position
-- Where the ledger goes on after a range that holds nothing; null at its end.
SELECT min(seq) FROM corrigenda.event WHERE ledger = %(ledger)s::text AND seq > %(after)s::bigint

-- name: read_before
-- The log's page, newest first.
SELECT seq, envelope, hash, seal FROM corrigenda.event
WHERE ledger = %(ledger)s AND seq < %(before)s ORDER BY seq DESC LIMIT %(limit)s

-- name: read_positions
SELECT e.seq, e.envelope, e.seal, p.salt, p.body
FROM unnest(%(seqs)s::bigint[]) u(seq)
CROSS JOIN LATERAL (
    SELECT seq, envelope, seal FROM corrigenda.event WHERE ledger = %(ledger)s::text AND seq = u.seq LIMIT 1) e
LEFT JOIN LATERAL (
    SELECT salt, body FROM corrigenda.payload WHERE ledger = %(ledger)s AND seq = u.seq LIMIT 1) p ON true

-- name: read_places
-- One event each of many streams, by its place there.
SELECT e.seq, e.envelope, e.seal
FROM unnest(%(streams)s::text[], %(places)s::bigint[]) u(stream, place)
CROSS JOIN LATERAL (
    SELECT seq, envelope, seal FROM corrigenda.event
    WHERE ledger = %(ledger)s::text AND stream = u.stream AND stream_seq = u.place LIMIT 1) e

-- name: read_stream
SELECT e.seq, e.envelope, e.seal, p.salt, p.body
FROM corrigenda.event e LEFT JOIN corrigenda.payload p ON p.ledger = e.ledger AND p.seq = e.seq
WHERE e.ledger = %(ledger)s::text AND e.stream = %(stream)s::text ORDER BY e.stream_seq

-- name: read_streams
-- Whole streams, each in order. The order keeps the inner query whole, so that each stream is looked up by its key.
SELECT u.stream, e.seq, e.envelope, e.seal, p.salt, p.body
FROM unnest(%(streams)s::text[]) u(stream)
CROSS JOIN LATERAL (
    SELECT seq, envelope, seal FROM corrigenda.event
    WHERE ledger = %(ledger)s::text AND stream = u.stream ORDER BY stream_seq) e
LEFT JOIN LATERAL (
    SELECT salt, body FROM corrigenda.payload WHERE ledger = %(ledger)s AND seq = e.seq LIMIT 1) p ON true

-- name: find_streams
SELECT stream FROM corrigenda.event
WHERE ledger = %(ledger)s AND stream_seq = 0 AND starts_with(stream, %(prefix)s) ORDER BY stream LIMIT 10

-- name: read_outbox
SELECT seq, revision, effect, lineage FROM corrigenda.outbox
WHERE ledger = %(ledger)s::text AND seq > %(after)s::bigint AND seq <= %(until)s::bigint
ORDER BY seq, revision LIMIT %(limit)s::bigint

-- name: count_outbox
SELECT count(*) FROM corrigenda.outbox WHERE ledger = %(ledger)s::text AND seq > %(after)s::bigint

-- name: count_outbox_at
SELECT count(*) FROM corrigenda.outbox WHERE ledger = %(ledger)s AND seq = %(seq)s

-- name: read_vectors
SELECT u.content, v.vector, v.seal
FROM unnest(%(contents)s::bytea[]) u(content)
CROSS JOIN LATERAL (
    SELECT vector, seal FROM corrigenda.embedding
    WHERE ledger = %(ledger)s::text AND content = u.content AND signature = %(signature)s::text LIMIT 1) v

-- name: insert_vectors
-- The first to store a vector wins; the others read it back.
INSERT INTO corrigenda.embedding (ledger, content, signature, vector, seal)
SELECT %(ledger)s, u.content, %(signature)s, u.vector, u.seal
FROM unnest(%(contents)s::bytea[], %(vectors)s::bytea[], %(seals)s::bytea[]) u(content, vector, seal)
ON CONFLICT (ledger, content, signature) DO NOTHING

-- name: replace_vectors
-- Only what is still as it was found when it was refused: whoever replaced it first has replaced it.
UPDATE corrigenda.embedding e SET vector = u.vector, seal = u.seal
FROM unnest(%(contents)s::bytea[], %(vectors)s::bytea[], %(seals)s::bytea[], %(old_vectors)s::bytea[],
            %(old_seals)s::bytea[]) u(content, vector, seal, old_vector, old_seal)
WHERE e.ledger = %(ledger)s AND e.signature = %(signature)s AND e.content = u.content
  AND e.vector = u.old_vector AND e.seal = u.old_seal

-- name: read_carried
-- Up to which position of the outbox a task was done, −1 before it was done at all.
SELECT coalesce(max(seq), -1) FROM corrigenda.carried WHERE ledger = %(ledger)s::text AND task = %(task)s::text

-- name: mark_carried
-- It only grows: another process may have come further meanwhile.
INSERT INTO corrigenda.carried (ledger, task, seq) VALUES (%(ledger)s, %(task)s, %(seq)s)
ON CONFLICT (ledger, task) DO UPDATE SET seq = greatest(corrigenda.carried.seq, excluded.seq)

-- ---------------------------------------------------------------- what of the outbox could not be carried

-- name: read_failures
-- The times as the ledger writes them. After each attempt it is twice as long until the next one is due.
SELECT seq, revision, signature, state, attempts, code, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       at + make_interval(secs => least(power(2, attempts), 300)) <= clock_timestamp()
FROM corrigenda.outbox_failure
WHERE ledger = %(ledger)s AND (%(signature)s::text IS NULL OR signature = %(signature)s)
ORDER BY seq, revision, signature

-- name: count_waiting
-- What is carried by itself, for who has carried up to a position: the rows above it, or above a later one, without those
-- that are parked or skipped, and those below it that failed and are tried again. And how many are parked.
SELECT (SELECT count(*) FROM corrigenda.outbox o WHERE o.ledger = %(ledger)s AND o.seq > %(rows_after)s
          AND NOT EXISTS (SELECT FROM corrigenda.outbox_failure f
                          WHERE f.ledger = o.ledger AND f.seq = o.seq AND f.revision = o.revision
                            AND f.state IN ('parked', 'skipped')
                            AND (%(signature)s::text IS NULL OR f.signature = %(signature)s)))
       + count(*) FILTER (WHERE state = 'failing' AND seq <= %(after)s),
       count(*) FILTER (WHERE state = 'parked')
FROM corrigenda.outbox_failure
WHERE ledger = %(ledger)s AND (%(signature)s::text IS NULL OR signature = %(signature)s)

-- name: add_failures
-- A first failure; one that another process has noted meanwhile counts once more. The last attempt parks it.
INSERT INTO corrigenda.outbox_failure AS f (ledger, seq, revision, signature, state, attempts, code, at)
SELECT %(ledger)s, u.seq, u.revision, %(signature)s, 'failing', 1, u.code, clock_timestamp()
FROM unnest(%(seqs)s::bigint[], %(revisions)s::text[], %(codes)s::text[]) u(seq, revision, code)
ON CONFLICT (ledger, seq, revision, signature) DO UPDATE
SET attempts = f.attempts + 1, code = excluded.code, at = excluded.at,
    state = CASE WHEN f.state IN ('parked', 'skipped') THEN f.state
                 WHEN f.attempts + 1 >= %(attempts_max)s THEN 'parked' ELSE 'failing' END

-- name: begin_attempts
-- Counted before it is made: what ends the process each time is parked, too.
UPDATE corrigenda.outbox_failure f
SET attempts = f.attempts + 1, at = clock_timestamp(),
    state = CASE WHEN f.attempts + 1 >= %(attempts_max)s THEN 'parked' ELSE 'failing' END
FROM unnest(%(seqs)s::bigint[], %(revisions)s::text[]) u(seq, revision)
WHERE f.ledger = %(ledger)s AND f.seq = u.seq AND f.revision = u.revision AND f.signature = %(signature)s
  AND f.state = 'failing'

-- name: end_attempts
-- What became of them: settled, or failed again for a reason.
UPDATE corrigenda.outbox_failure f
SET state = CASE WHEN u.code = '' THEN 'settled' ELSE f.state END,
    code = CASE WHEN u.code = '' THEN f.code ELSE u.code END, at = clock_timestamp()
FROM unnest(%(seqs)s::bigint[], %(revisions)s::text[], %(codes)s::text[]) u(seq, revision, code)
WHERE f.ledger = %(ledger)s AND f.seq = u.seq AND f.revision = u.revision AND f.signature = %(signature)s
  AND f.state IN ('failing', 'parked')

-- name: take_attempts_back
-- The embedder answered nobody: it was not these texts.
UPDATE corrigenda.outbox_failure f
SET attempts = greatest(f.attempts - 1, 0), state = 'failing'
FROM unnest(%(seqs)s::bigint[], %(revisions)s::text[]) u(seq, revision)
WHERE f.ledger = %(ledger)s AND f.seq = u.seq AND f.revision = u.revision AND f.signature = %(signature)s
  AND f.state IN ('failing', 'parked')

-- name: retry_failures
UPDATE corrigenda.outbox_failure f
SET state = 'failing', attempts = 0, at = clock_timestamp()
FROM unnest(%(seqs)s::bigint[]) u(seq)
WHERE f.ledger = %(ledger)s AND f.seq = u.seq AND f.signature = %(signature)s AND f.state IN ('failing', 'parked')

-- name: skip_failures
-- In the transaction of the event that says so.
UPDATE corrigenda.outbox_failure f SET state = 'skipped'
FROM unnest(%(seqs)s::bigint[], %(targets)s::text[]) u(seq, target)
WHERE f.ledger = %(ledger)s::text AND f.seq = u.seq AND f.signature = u.target AND f.state <> 'settled'

-- ---------------------------------------------------------------- who carries it into shared targets

-- name: take_lease
-- Nothing comes back while somebody else's has not ended. A holder that asks again is a new one: it may have died.
INSERT INTO corrigenda.lease AS l (ledger, target, owner, fence, cursor, expires_at)
VALUES (%(ledger)s, %(target)s, %(owner)s, 1, -1, clock_timestamp() + make_interval(secs => %(seconds)s))
ON CONFLICT (ledger, target) DO UPDATE
SET owner = excluded.owner, fence = l.fence + 1, expires_at = excluded.expires_at
WHERE l.expires_at <= clock_timestamp() OR l.owner = excluded.owner
RETURNING fence, cursor

-- name: keep_lease
-- Nothing comes back from one that was taken over.
UPDATE corrigenda.lease
SET cursor = greatest(cursor, %(cursor)s), expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE ledger = %(ledger)s AND target = %(target)s AND fence = %(fence)s
RETURNING cursor

-- name: report_replica
INSERT INTO corrigenda.replica (ledger, id, incarnation, cursor, seen_at)
VALUES (%(ledger)s, %(id)s, %(incarnation)s, %(cursor)s, clock_timestamp())
ON CONFLICT (ledger, id) DO UPDATE
SET incarnation = excluded.incarnation, cursor = excluded.cursor, seen_at = excluded.seen_at

-- name: read_pending
-- Which of these revisions and corrections have a row above a position.
SELECT DISTINCT revision FROM corrigenda.outbox
WHERE ledger = %(ledger)s AND seq > %(after)s AND revision = ANY (%(revisions)s)
