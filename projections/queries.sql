-- Every upsert names the whole primary key: without statistics, as in a new generation, all other shapes scan what
-- lies under its first columns.

-- name: upsert_revisions
-- Demotions come before promotions in the arrays, so that the partial unique index on heads holds at every row.
-- What a row leaves as it is, it carries as '' and −1; that such a row had to be inserted means that the read model has
-- lost it, and raises.
WITH written AS (
    INSERT INTO corrigenda.revision AS r
        (ledger, gen, revision, lineage, project, version, state, trust, floor, content_seq,
         kind, visibility, agent, person, session, meta_seq)
    SELECT %(ledger)s::text, %(gen)s::bigint, u.* FROM unnest(
        %(revisions)s::text[], %(lineages)s::text[], %(projects)s::text[], %(versions)s::integer[], %(states)s::text[],
        %(trusts)s::text[], %(floors)s::text[], %(content_seqs)s::bigint[], %(kinds)s::text[],
        %(visibilities)s::text[], %(agents)s::text[], %(persons)s::text[], %(sessions)s::text[],
        %(meta_seqs)s::bigint[]) u
    ON CONFLICT (ledger, gen, revision) DO UPDATE
    SET state = CASE WHEN excluded.state = '' THEN r.state ELSE excluded.state END,
        trust = CASE WHEN excluded.state = '' THEN r.trust ELSE excluded.trust END,
        floor = CASE WHEN excluded.state = '' THEN r.floor ELSE excluded.floor END,
        content_seq = CASE WHEN excluded.content_seq < 0 THEN r.content_seq ELSE excluded.content_seq END,
        meta_seq = CASE WHEN excluded.meta_seq < 0 THEN r.meta_seq ELSE excluded.meta_seq END
    RETURNING content_seq
)
SELECT (CASE WHEN min(content_seq) >= 0 THEN '1' ELSE 'PROJECTION_DRIFT' END)::int FROM written

-- name: upsert_intervals
-- A row that only ends carries '' for what it leaves as it is; that it had to be inserted raises, as above.
WITH written AS (
    INSERT INTO corrigenda.revision_state AS r
        (ledger, gen, revision, from_seq, to_seq, lineage, state, trust, floor)
    SELECT %(ledger)s::text, %(gen)s::bigint, u.* FROM unnest(
        %(revisions)s::text[], %(from_seqs)s::bigint[], %(to_seqs)s::bigint[], %(lineages)s::text[],
        %(states)s::text[], %(trusts)s::text[], %(floors)s::text[]) u
    ON CONFLICT (ledger, gen, revision, from_seq) DO UPDATE
    SET to_seq = excluded.to_seq
    RETURNING state
)
SELECT (CASE WHEN min(state) <> '' THEN '1' ELSE 'PROJECTION_DRIFT' END)::int FROM written

-- name: upsert_edges
-- Every row is whole, also one that ends, so nothing can be lost unseen.
INSERT INTO corrigenda.edge (ledger, gen, kind, newer, older, from_seq, to_seq)
SELECT %(ledger)s::text, %(gen)s::bigint, u.* FROM unnest(
    %(kinds)s::text[], %(newers)s::text[], %(olders)s::text[], %(from_seqs)s::bigint[], %(to_seqs)s::bigint[]) u
ON CONFLICT (ledger, gen, kind, newer, older, from_seq) DO UPDATE SET to_seq = excluded.to_seq

-- name: insert_log_entries
INSERT INTO corrigenda.log_entry (ledger, gen, seq, at, type, actor, op)
SELECT %(ledger)s::text, %(gen)s::bigint, u.* FROM unnest(
    %(seqs)s::bigint[], %(ats)s::text[], %(types)s::text[], %(actors)s::text[], %(ops)s::text[]) u
ON CONFLICT (ledger, gen, seq)
DO UPDATE SET at = excluded.at, type = excluded.type, actor = excluded.actor, op = excluded.op

-- name: insert_names
INSERT INTO corrigenda.directory (ledger, gen, id, seq)
SELECT %(ledger)s::text, %(gen)s::bigint, u.* FROM unnest(%(ids)s::text[], %(seqs)s::bigint[]) u
ON CONFLICT (ledger, gen, id) DO UPDATE SET seq = excluded.seq

-- name: find_lineages
SELECT DISTINCT lineage FROM corrigenda.revision
WHERE ledger = %(ledger)s AND gen = %(gen)s AND starts_with(revision, %(prefix)s) ORDER BY lineage LIMIT 10

-- name: list_prunable
-- The revisions of a project, in the order of their texts, that are learnings and hold or have been retired. A row of
-- which the kind is not known may be one.
SELECT revision, lineage, content_seq FROM corrigenda.revision
WHERE ledger = %(ledger)s AND gen = %(gen)s AND project = %(project)s AND state IN ('active', 'retired')
  AND (kind = 'learning' OR kind IS NULL) AND content_seq > %(after)s
ORDER BY content_seq LIMIT %(limit)s

-- name: any_revision
-- Whether a project has revisions at all, and whether one of them is a head.
SELECT EXISTS (SELECT 1 FROM corrigenda.revision
               WHERE ledger = %(ledger)s AND gen = %(gen)s AND project = %(project)s),
       EXISTS (SELECT 1 FROM corrigenda.revision
               WHERE ledger = %(ledger)s AND gen = %(gen)s AND project = %(project)s
                 AND state = 'active' AND trust <> 'revoked')

-- name: any_revision_at
-- Whether a project had revisions at all at a position, and whether one of them was a head there.
SELECT EXISTS (SELECT 1 FROM corrigenda.revision r
               WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s AND r.project = %(project)s
                 AND r.content_seq <= %(at)s),
       EXISTS (SELECT 1 FROM corrigenda.revision r
               CROSS JOIN LATERAL (
                   SELECT s.state, s.trust FROM corrigenda.revision_state s
                   WHERE s.ledger = r.ledger AND s.gen = r.gen AND s.revision = r.revision AND s.from_seq <= %(at)s
                   ORDER BY s.from_seq DESC LIMIT 1) s
               WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s AND r.project = %(project)s
                 AND r.content_seq <= %(at)s AND s.state = 'active' AND s.trust <> 'revoked')

-- name: find_hidden
-- Where those revisions were recorded that were withdrawn from view, the oldest first.
SELECT r.content_seq FROM corrigenda.revision r
WHERE r.ledger = %(ledger)s AND r.gen = (SELECT h.gen FROM corrigenda.head h WHERE h.ledger = %(ledger)s)
  AND r.state IN ('forgotten', 'erased')
ORDER BY 1

-- name: has_hiding
-- Whether an event of some types came after a position: a part of the primary key's index.
SELECT EXISTS (SELECT FROM corrigenda.log_entry
               WHERE ledger = %(ledger)s::text
                 AND gen = (SELECT h.gen FROM corrigenda.head h WHERE h.ledger = %(ledger)s::text)
                 AND seq > %(after)s::bigint AND type = ANY(%(types)s::text[]))

-- name: count_states
SELECT CASE WHEN trust = 'revoked' AND state = 'active' THEN 'revoked' ELSE state END AS state, count(*)
FROM corrigenda.revision WHERE ledger = %(ledger)s AND gen = %(gen)s GROUP BY 1 ORDER BY 1

-- name: find_names
SELECT u.id, d.seq
FROM unnest(%(ids)s::text[]) u(id)
CROSS JOIN LATERAL (
    SELECT seq FROM corrigenda.directory
    WHERE ledger = %(ledger)s::text AND id = u.id
      AND gen = (SELECT h.gen FROM corrigenda.head h WHERE h.ledger = %(ledger)s::text) LIMIT 1) d

-- name: upsert_corrections
-- A row that only changes its state carries content_seq −1 and keeps its other columns, as in upsert_revisions.
WITH written AS (
    INSERT INTO corrigenda.correction AS c
        (ledger, gen, correction, state, project, agent, person, session, visibility, origin, revision, content_seq)
    SELECT %(ledger)s::text, %(gen)s::bigint, u.* FROM unnest(
        %(corrections)s::text[], %(states)s::text[], %(projects)s::text[], %(agents)s::text[], %(persons)s::text[],
        %(sessions)s::text[], %(visibilitys)s::text[], %(origins)s::text[], %(revisions)s::text[],
        %(content_seqs)s::bigint[]) u
    ON CONFLICT (ledger, gen, correction) DO UPDATE
    SET state = excluded.state,
        content_seq = CASE WHEN excluded.content_seq < 0 THEN c.content_seq ELSE excluded.content_seq END
    RETURNING content_seq
)
SELECT (CASE WHEN min(content_seq) >= 0 THEN '1' ELSE 'PROJECTION_DRIFT' END)::int FROM written

-- name: find_corrections
-- A page of a project's corrections in the order in which they were recorded; without states, whatever became of them.
SELECT correction, content_seq FROM corrigenda.correction
WHERE ledger = %(ledger)s AND gen = %(gen)s AND project = %(project)s AND content_seq > %(after)s
  AND content_seq <= %(at)s AND (%(states)s::text[] IS NULL OR state = ANY (%(states)s::text[])) AND (%(agent)s::text IS NULL OR agent = %(agent)s)
ORDER BY content_seq LIMIT %(limit)s

-- name: find_touched
-- What a correction touched, the oldest first.
SELECT DISTINCT older, min(from_seq) OVER (PARTITION BY older) AS first FROM corrigenda.edge
WHERE ledger = %(ledger)s::text AND gen = %(gen)s::bigint AND kind = %(kind)s::text
  AND newer = %(correction)s::text ORDER BY first, older

-- name: find_moment
-- The greatest position whose time is at most this one; null if the read model has none.
SELECT max(seq) FROM corrigenda.log_entry WHERE ledger = %(ledger)s AND gen = %(gen)s AND at <= %(at)s

-- name: find_appends
-- The appends whose ids are from one up to another, both included, and where each begins.
SELECT op, seq FROM corrigenda.log_entry
WHERE ledger = %(ledger)s AND gen = %(gen)s AND op >= %(first)s AND op <= %(last)s ORDER BY op, seq LIMIT %(limit)s

-- name: find_appends_among
-- Those of some appends that there are, and where each begins.
SELECT op, min(seq) FROM corrigenda.log_entry
WHERE ledger = %(ledger)s AND gen = %(gen)s AND op = ANY (%(ops)s::text[]) GROUP BY op

-- name: find_correcting
-- Which corrections are about one of these revisions, or withdrew it, and where that was said.
SELECT e.newer, e.older, e.from_seq
FROM unnest(%(revisions)s::text[]) u(revision)
CROSS JOIN LATERAL (
    SELECT newer, older, from_seq FROM corrigenda.edge
    WHERE ledger = %(ledger)s AND gen = %(gen)s AND older = u.revision AND kind = %(kind)s ORDER BY from_seq, newer) e

-- name: find_newer
-- What superseded some memories or revisions, directly or through others.
WITH RECURSIVE reached(id) AS (
    SELECT u.id FROM unnest(%(ids)s::text[]) u(id)
    UNION
    SELECT e.newer FROM reached r CROSS JOIN LATERAL (
        SELECT newer FROM corrigenda.edge
        WHERE ledger = %(ledger)s AND gen = %(gen)s AND older = r.id AND kind = 'supersedes' AND to_seq IS NULL
        ORDER BY newer) e
)
SELECT id FROM reached LIMIT %(limit)s

-- name: find_older
-- What some memories or revisions superseded, directly or through others.
WITH RECURSIVE reached(id) AS (
    SELECT u.id FROM unnest(%(ids)s::text[]) u(id)
    UNION
    SELECT e.older FROM reached r CROSS JOIN LATERAL (
        SELECT older FROM corrigenda.edge
        WHERE ledger = %(ledger)s AND gen = %(gen)s AND kind = 'supersedes' AND newer = r.id AND to_seq IS NULL
        ORDER BY older) e
)
SELECT id FROM reached LIMIT %(limit)s

-- name: list_revisions
-- A page of a project's revisions as they stood at a position, in the order in which they were recorded, as far as a
-- reader may see them, or all of them (`whole`). The last interval that began by then is the one that
-- held. The live generation is looked up in the same statement, so that a swap cannot come between.
SELECT r.content_seq, r.revision, r.lineage
FROM corrigenda.revision r
CROSS JOIN LATERAL (
    SELECT s.state, s.trust FROM corrigenda.revision_state s
    WHERE s.ledger = r.ledger AND s.gen = r.gen AND s.revision = r.revision AND s.from_seq <= %(at)s
    ORDER BY s.from_seq DESC LIMIT 1) s
WHERE r.ledger = %(ledger)s AND r.gen = (SELECT h.gen FROM corrigenda.head h WHERE h.ledger = %(ledger)s)
  AND r.project = %(project)s AND r.content_seq > %(after)s AND r.content_seq <= %(at)s
  AND (%(lineage)s::text IS NULL OR r.lineage = %(lineage)s)
  AND (%(kind)s::text IS NULL OR r.kind = %(kind)s)
  AND (%(whole)s OR r.visibility IN ('global', 'tenant', 'project')
       OR (r.visibility = 'agent' AND r.agent = %(agent)s) OR (r.visibility = 'user' AND r.person = %(user)s)
       OR (r.visibility = 'session' AND r.session = %(session)s))
  AND CASE WHEN s.trust = 'revoked' AND s.state = 'active' THEN 'revoked' ELSE s.state END = ANY (%(states)s::text[])
ORDER BY r.content_seq LIMIT %(limit)s

-- name: scan_revisions
-- Where the revisions are that were in one of these states at a position and that a reader may see, the newest first: of
-- the whole tenant, and of one project as far as the reader's scope makes them visible.
SELECT r.content_seq, r.revision, r.lineage
FROM corrigenda.revision r
CROSS JOIN LATERAL (
    SELECT s.state, s.trust FROM corrigenda.revision_state s
    WHERE s.ledger = r.ledger AND s.gen = r.gen AND s.revision = r.revision AND s.from_seq <= %(at)s
    ORDER BY s.from_seq DESC LIMIT 1) s
WHERE r.ledger = %(ledger)s AND r.gen = (SELECT h.gen FROM corrigenda.head h WHERE h.ledger = %(ledger)s)
  AND r.content_seq <= %(at)s
  AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
  AND (r.visibility IN ('global', 'tenant')
       OR (r.project = %(project)s
           AND (r.visibility = 'project' OR (r.visibility = 'agent' AND r.agent = %(agent)s)
                OR (r.visibility = 'user' AND r.person = %(user)s)
                OR (r.visibility = 'session' AND r.session = %(session)s))))
  AND s.state = ANY (%(states)s::text[]) AND s.trust <> 'revoked'
ORDER BY r.content_seq DESC LIMIT %(limit)s::bigint

-- name: count_conflicts
-- How many pairs of revisions contradict each other, undecided.
SELECT count(*) FROM corrigenda.edge
WHERE ledger = %(ledger)s AND gen = %(gen)s AND kind = 'conflicts' AND to_seq IS NULL

-- ---------------------------------------------------------------- digests
--
-- What a row says, as parts that change together: an event that changes one part says what it was and what it is, so
-- that the digest of a whole table can be told from the events alone, one after the other. Fields stand between
-- chr(31), null is chr(30); `n` is 1 for one part of each row. A bucket is what keys that end alike have in common.

-- name: parts_revision
SELECT right(r.revision, 2) AS bucket, p.n,
       array_to_string(array_prepend(r.revision, p.fields), chr(31), chr(30)) AS part
FROM corrigenda.revision r CROSS JOIN LATERAL (VALUES
    (1, ARRAY['born', r.lineage, r.project, r.version::text, r.content_seq::text, r.kind, r.visibility, r.agent,
              r.person, r.session]),
    (0, ARRAY['values', r.state, r.trust, r.floor]),
    (0, ARRAY['metadata', r.meta_seq::text])) p(n, fields)
WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: parts_revision_state
SELECT right(r.revision, 2) AS bucket, p.n,
       array_to_string(ARRAY[r.revision, r.from_seq::text] || p.fields, chr(31), chr(30)) AS part
FROM corrigenda.revision_state r CROSS JOIN LATERAL (VALUES
    (1, ARRAY['values', r.lineage, r.state, r.trust, r.floor]), (0, ARRAY['until', r.to_seq::text])) p(n, fields)
WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: parts_edge
SELECT right(r.newer, 2) AS bucket, p.n,
       array_to_string(ARRAY[r.kind, r.newer, r.older, r.from_seq::text] || p.fields, chr(31), chr(30)) AS part
FROM corrigenda.edge r CROSS JOIN LATERAL (VALUES
    (1, ARRAY['stated']), (0, ARRAY['until', r.to_seq::text])) p(n, fields)
WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: parts_log_entry
SELECT right(r.seq::text, 2) AS bucket, 1 AS n,
       array_to_string(ARRAY[r.seq::text, r.at, r.type, r.actor, r.op], chr(31), chr(30)) AS part
FROM corrigenda.log_entry r WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: parts_correction
SELECT right(r.correction, 2) AS bucket, p.n,
       array_to_string(array_prepend(r.correction, p.fields), chr(31), chr(30)) AS part
FROM corrigenda.correction r CROSS JOIN LATERAL (VALUES
    (1, ARRAY['recorded', r.project, r.agent, r.person, r.session, r.visibility, r.origin, r.revision,
              r.content_seq::text]),
    (0, ARRAY['state', r.state])) p(n, fields)
WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: parts_directory
SELECT right(r.id, 2) AS bucket, 1 AS n, array_to_string(ARRAY[r.id, r.seq::text], chr(31), chr(30)) AS part
FROM corrigenda.directory r WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: sum_parts
-- The number of rows in each bucket, and a sum of hashes that does not depend on their order. The salt is drawn for each
-- comparison, so that nobody can have planted rows whose sum is that of others.
SELECT bucket, sum(n)::bigint,
       sum(('x' || left(encode(sha256(convert_to(%(salt)s::text || part, 'UTF8')), 'hex'), 16))::bit(64)::bigint)
FROM (/* parts */) whole GROUP BY bucket

-- name: sum_rows
-- The same of whole rows, by a hash of the database's own, which nobody else can make: for two generations.
SELECT bucket, count(*), sum(hash_record_extended(part, %(salt)s::bigint))
FROM (/* parts */) whole GROUP BY bucket

-- name: rows_revision
SELECT right(r.revision, 2) AS bucket,
       ROW(r.revision, r.lineage, r.project, r.version, r.content_seq, r.kind, r.visibility, r.agent, r.person,
           r.session, r.state, r.trust, r.floor, r.meta_seq) AS part
FROM corrigenda.revision r WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: rows_revision_state
SELECT right(r.revision, 2) AS bucket,
       ROW(r.revision, r.from_seq, r.to_seq, r.lineage, r.state, r.trust, r.floor) AS part
FROM corrigenda.revision_state r WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: rows_edge
SELECT right(r.newer, 2) AS bucket, ROW(r.kind, r.newer, r.older, r.from_seq, r.to_seq) AS part
FROM corrigenda.edge r WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: rows_log_entry
SELECT right(r.seq::text, 2) AS bucket, ROW(r.seq, r.at, r.type, r.actor, r.op) AS part
FROM corrigenda.log_entry r WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: rows_correction
SELECT right(r.correction, 2) AS bucket,
       ROW(r.correction, r.project, r.agent, r.person, r.session, r.visibility, r.origin, r.revision, r.content_seq,
           r.state) AS part
FROM corrigenda.correction r WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: rows_directory
SELECT right(r.id, 2) AS bucket, ROW(r.id, r.seq) AS part
FROM corrigenda.directory r WHERE r.ledger = %(ledger)s AND r.gen = %(gen)s

-- name: take_time
-- For the rest of a transaction: it may take long, and wait between two statements.
SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)

-- name: list_cycles
-- Ids that supersede themselves through others, one of each cycle at least. Along a cycle some edge leads to an id that
-- is not smaller, whatever the order; ids grow with time, so there are few of those, and only from them is it followed.
WITH RECURSIVE walk AS (
    SELECT newer AS start, older AS at FROM corrigenda.edge
    WHERE ledger = %(ledger)s AND gen = %(gen)s AND kind = 'supersedes' AND to_seq IS NULL
      AND newer COLLATE "C" <= older COLLATE "C"
    UNION
    SELECT w.start, e.older FROM walk w JOIN corrigenda.edge e ON e.newer = w.at
    WHERE w.at <> w.start
      AND e.ledger = %(ledger)s AND e.gen = %(gen)s AND e.kind = 'supersedes' AND e.to_seq IS NULL
)
SELECT DISTINCT start FROM walk WHERE at = start ORDER BY start

-- name: list_parts
SELECT part FROM (/* parts */) whole WHERE bucket = %(bucket)s::text

-- name: count_rows
-- How many rows a generation has in each read model, and the last position that it has taken up.
SELECT (SELECT count(*) FROM corrigenda.revision WHERE ledger = %(ledger)s AND gen = %(gen)s),
       (SELECT count(*) FROM corrigenda.revision_state WHERE ledger = %(ledger)s AND gen = %(gen)s),
       (SELECT count(*) FROM corrigenda.edge WHERE ledger = %(ledger)s AND gen = %(gen)s),
       (SELECT count(*) FROM corrigenda.log_entry WHERE ledger = %(ledger)s AND gen = %(gen)s),
       (SELECT count(*) FROM corrigenda.correction WHERE ledger = %(ledger)s AND gen = %(gen)s),
       (SELECT count(*) FROM corrigenda.directory WHERE ledger = %(ledger)s AND gen = %(gen)s),
       (SELECT max(seq) FROM corrigenda.log_entry WHERE ledger = %(ledger)s AND gen = %(gen)s)

-- ---------------------------------------------------------------- rebuilding

-- name: try_rebuild_lock
-- One rebuild of a ledger at a time, for as long as the transaction lasts, and nobody ends it because it is idle.
SELECT pg_try_advisory_xact_lock(hashtextextended('corrigenda rebuild ' || %(ledger)s, 0)),
       set_config('idle_in_transaction_session_timeout', '0', true)

-- name: find_rebuild
-- The newest generation that is being built above the live one.
SELECT gen, seq, projector FROM corrigenda.rebuild
WHERE ledger = %(ledger)s AND gen > %(gen)s ORDER BY gen DESC LIMIT 1

-- name: last_generation
-- The highest generation that anything is of; −1 for none.
SELECT greatest(-1,
    (SELECT max(gen) FROM corrigenda.rebuild WHERE ledger = %(ledger)s),
    (SELECT max(gen) FROM corrigenda.revision WHERE ledger = %(ledger)s),
    (SELECT max(gen) FROM corrigenda.revision_state WHERE ledger = %(ledger)s),
    (SELECT max(gen) FROM corrigenda.edge WHERE ledger = %(ledger)s),
    (SELECT max(gen) FROM corrigenda.log_entry WHERE ledger = %(ledger)s),
    (SELECT max(gen) FROM corrigenda.correction WHERE ledger = %(ledger)s),
    (SELECT max(gen) FROM corrigenda.directory WHERE ledger = %(ledger)s))

-- name: insert_rebuild
INSERT INTO corrigenda.rebuild (ledger, gen, seq, projector)
VALUES (%(ledger)s::text, %(gen)s::bigint, -1, %(projector)s::integer)

-- name: move_rebuild
-- In the transaction of a page: raises unless the rebuild is where it was left.
WITH moved AS (
    UPDATE corrigenda.rebuild SET seq = %(seq)s::bigint
    WHERE ledger = %(ledger)s::text AND gen = %(gen)s::bigint AND seq = %(old_seq)s::bigint RETURNING 1
)
SELECT (CASE WHEN count(*) = 1 THEN '1' ELSE 'REBUILD_MOVED' END)::int FROM moved

-- name: swap_generation
-- Under the head's lock: from here on everybody reads and writes the new generation.
UPDATE corrigenda.head SET gen = %(gen)s::bigint, projector = %(projector)s::integer WHERE ledger = %(ledger)s::text

-- name: find_learnings
-- A page of the heads that a reader may see and that may be unverified learnings, in the order of their texts; of rows
-- that the first projector wrote it is not known.
SELECT revision, lineage, content_seq FROM corrigenda.revision
WHERE ledger = %(ledger)s::text AND gen = %(gen)s::bigint AND content_seq > %(after)s::bigint AND content_seq <= %(until)s::bigint
  AND state = 'active' AND trust = 'unverified' AND (kind IS NULL OR kind = 'learning')
  AND (visibility IS NULL OR visibility IN ('global', 'tenant') OR (project = %(project)s::text AND CASE visibility
       WHEN 'project' THEN true WHEN 'agent' THEN agent = %(agent)s::text
       WHEN 'user' THEN person = %(person)s::text WHEN 'session' THEN session = %(session)s::text END))
ORDER BY content_seq LIMIT %(limit)s::bigint

-- name: find_contradicting
-- A page of the active corrections whose reader sees what is visible at a level with such a scope.
SELECT correction, content_seq FROM corrigenda.correction
WHERE ledger = %(ledger)s::text AND gen = %(gen)s::bigint AND content_seq > %(after)s::bigint AND content_seq <= %(until)s::bigint
  AND state = 'active'
  AND (%(level)s::text = 'tenant' OR (project = %(project)s::text AND CASE %(level)s::text
       WHEN 'project' THEN true WHEN 'agent' THEN agent = %(agent)s::text
       WHEN 'user' THEN person = %(person)s::text WHEN 'session' THEN session = %(session)s::text END))
ORDER BY content_seq LIMIT %(limit)s::bigint

-- name: any_correction
SELECT EXISTS (SELECT 1 FROM corrigenda.correction
               WHERE ledger = %(ledger)s AND gen = %(gen)s AND project = %(project)s)

-- ---------------------------------------------------------------- sweeping the outbox

-- name: as_maintainer
-- For the rest of a transaction; and it may take long.
SELECT set_config('role', 'corrigenda_maintainer', true), set_config('statement_timeout', '0', true)

-- name: find_mark
-- Up to where every live replica has carried the outbox, or all is old; never beyond what else reads it has come to.
SELECT least(
    (SELECT seq FROM corrigenda.head WHERE ledger = %(ledger)s),
    coalesce((SELECT min(seq) FROM corrigenda.carried WHERE ledger = %(ledger)s AND task <> %(swept)s), -1),
    greatest(
        (SELECT min(cursor) FROM corrigenda.replica
         WHERE ledger = %(ledger)s AND seen_at > clock_timestamp() - make_interval(days => %(days)s)),
        (SELECT max(seq) FROM corrigenda.log_entry
         WHERE ledger = %(ledger)s AND gen = %(gen)s
           AND at < to_char((clock_timestamp() - make_interval(days => %(days)s)) AT TIME ZONE 'UTC',
                            'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')),
        -1))

-- name: count_behind
-- How many rows of the outbox lie above each of some positions, and up to where rows were removed.
SELECT u.after, (SELECT count(*) FROM corrigenda.outbox o WHERE o.ledger = %(ledger)s::text AND o.seq > u.after),
       (SELECT coalesce(max(seq), -1) FROM corrigenda.carried
        WHERE ledger = %(ledger)s::text AND task = %(swept)s::text)
FROM unnest(%(positions)s::bigint[]) u(after)

-- name: count_outbox_until
SELECT count(*) FROM corrigenda.outbox WHERE ledger = %(ledger)s AND seq <= %(until)s

-- name: count_swept
-- How many rows of the outbox between two positions there were, which are made again from the events: where a revision is
-- served since, elsewhere than before or no more, and each event of a correction. With `only_open` without what is parked
-- or skipped, by one embedder or by any.
WITH changed(seq, revision) AS (
    SELECT s.from_seq, s.revision
    FROM corrigenda.revision_state s
    LEFT JOIN corrigenda.revision_state p
      ON p.ledger = s.ledger AND p.gen = s.gen AND p.revision = s.revision AND p.to_seq = s.from_seq
    WHERE s.ledger = %(ledger)s AND s.gen = %(gen)s AND s.from_seq > %(after)s AND s.from_seq <= %(until)s
      AND CASE WHEN s.state = 'active' AND 'revoked' NOT IN (s.trust, s.floor) THEN s.trust END
          IS DISTINCT FROM CASE WHEN p.state = 'active' AND 'revoked' NOT IN (p.trust, p.floor) THEN p.trust END
    UNION ALL
    SELECT seq, NULL FROM corrigenda.log_entry
    WHERE ledger = %(ledger)s AND gen = %(gen)s AND seq > %(after)s AND seq <= %(until)s
      AND type LIKE 'correction.%%'
)
SELECT count(*) FROM changed c
WHERE NOT %(only_open)s OR NOT EXISTS (
    SELECT FROM corrigenda.outbox_failure f
    WHERE f.ledger = %(ledger)s AND f.seq = c.seq AND f.revision = coalesce(c.revision, f.revision)
      AND f.state IN ('parked', 'skipped') AND (%(signature)s::text IS NULL OR f.signature = %(signature)s))

-- name: delete_outbox
WITH gone AS (
    DELETE FROM corrigenda.outbox WHERE ledger = %(ledger)s AND seq BETWEEN %(first)s AND %(last)s RETURNING 1
)
SELECT count(*) FROM gone

-- name: count_unseen
SELECT count(*) FROM corrigenda.replica
WHERE ledger = %(ledger)s AND seen_at <= clock_timestamp() - make_interval(days => %(days)s)

-- name: delete_unseen
WITH gone AS (
    DELETE FROM corrigenda.replica
    WHERE ledger = %(ledger)s AND seen_at <= clock_timestamp() - make_interval(days => %(days)s) RETURNING 1
)
SELECT count(*) FROM gone

-- name: count_standing
-- The head's position, and how many revisions and corrections should be in an index there.
SELECT h.seq,
       (SELECT count(*) FROM corrigenda.revision r
        WHERE r.ledger = h.ledger AND r.gen = h.gen AND r.state = 'active' AND r.trust <> 'revoked'),
       (SELECT count(*) FROM corrigenda.correction c
        WHERE c.ledger = h.ledger AND c.gen = h.gen AND c.state IN ('unconfirmed', 'active'))
FROM corrigenda.head h WHERE h.ledger = %(ledger)s
