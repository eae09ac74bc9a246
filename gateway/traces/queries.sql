-- What the gateway keeps for itself: traces. No projector writes them, and nothing makes them again.

-- name: insert_traces
-- A group at once, each row on its own; one that is there already stays, so a repeated group adds nothing.
WITH added AS (
    INSERT INTO corrigenda.trace (ledger, trace, kind, project, session, turn, revisions, digest, body)
    SELECT %(ledger)s::text, u.trace, u.kind, u.project, u.session, u.turn, string_to_array(u.revisions, ','),
           u.digest, u.body
    FROM unnest(%(traces)s::text[], %(kinds)s::text[], %(projects)s::text[], %(sessions)s::text[], %(turns)s::bigint[],
                %(revisions)s::text[], %(digests)s::bytea[], %(bodies)s::bytea[])
         u(trace, kind, project, session, turn, revisions, digest, body)
    ON CONFLICT (ledger, trace) DO NOTHING
    RETURNING 1
)
SELECT count(*) FROM added

-- name: find_trace
SELECT trace, digest, body FROM corrigenda.trace WHERE ledger = %(ledger)s AND trace = %(trace)s

-- name: complete_trace
SELECT trace, digest, body FROM corrigenda.trace
WHERE ledger = %(ledger)s AND trace >= %(first)s AND trace <= %(last)s ORDER BY trace LIMIT %(limit)s

-- name: list_traces
-- Newest first, below `before`.
SELECT trace, digest, body FROM corrigenda.trace
WHERE ledger = %(ledger)s AND project = %(project)s AND trace < %(before)s
  AND (%(kind)s::text IS NULL OR kind = %(kind)s)
ORDER BY trace DESC LIMIT %(limit)s

-- name: list_session_traces
SELECT trace, digest, body FROM corrigenda.trace
WHERE ledger = %(ledger)s AND session = %(session)s AND trace < %(before)s
  AND (%(kind)s::text IS NULL OR kind = %(kind)s)
ORDER BY trace DESC LIMIT %(limit)s

-- name: find_turn
-- The last dispatch of a turn of a session.
SELECT max(trace) FROM corrigenda.trace
WHERE ledger = %(ledger)s AND session = %(session)s AND kind = 'dispatch' AND turn = %(turn)s

-- name: find_prior_traces
-- The dispatches of a session below one, newest first, without those of one turn: however often that was dispatched, it
-- is one turn.
SELECT trace, digest, body FROM corrigenda.trace
WHERE ledger = %(ledger)s AND session = %(session)s AND kind = 'dispatch' AND trace < %(before)s
  AND (%(turn)s::bigint IS NULL OR turn IS DISTINCT FROM %(turn)s)
ORDER BY trace DESC LIMIT %(limit)s

-- name: find_dispatches
-- What was handed to runs and holds any of some revisions.
SELECT trace, digest, body FROM corrigenda.trace
WHERE ledger = %(ledger)s AND kind = 'dispatch' AND revisions && %(revisions)s::text[] ORDER BY trace

-- name: edge_of_traces
-- The oldest one, for a screen: one step of the index.
SELECT min(trace) FROM corrigenda.trace WHERE ledger = %(ledger)s

-- ---------------------------------------------------------------- sweeping

-- name: trace_projects
-- Each project once: a step of the index for each, however many traces it has.
WITH RECURSIVE found(project) AS (
    (SELECT project FROM corrigenda.trace WHERE ledger = %(ledger)s ORDER BY project LIMIT 1)
    UNION ALL
    SELECT (SELECT t.project FROM corrigenda.trace t WHERE t.ledger = %(ledger)s AND t.project > f.project
            ORDER BY t.project LIMIT 1)
    FROM found f WHERE f.project IS NOT NULL
)
SELECT project FROM found WHERE project IS NOT NULL

-- name: count_old_traces
SELECT count(*) FROM corrigenda.trace
WHERE ledger = %(ledger)s AND project = %(project)s AND trace < %(before)s

-- name: delete_old_traces
WITH old AS (
    SELECT trace FROM corrigenda.trace
    WHERE ledger = %(ledger)s AND project = %(project)s AND trace < %(before)s ORDER BY trace LIMIT %(limit)s
), gone AS (
    DELETE FROM corrigenda.trace t USING old WHERE t.ledger = %(ledger)s AND t.trace = old.trace RETURNING 1
)
SELECT count(*) FROM gone
