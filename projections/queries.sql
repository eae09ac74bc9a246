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
INSERT INTO corrigenda.log_entry (ledger, gen, seq, at, type, actor)
SELECT %(ledger)s::text, %(gen)s::bigint, u.* FROM unnest(
    %(seqs)s::bigint[], %(ats)s::text[], %(types)s::text[], %(actors)s::text[]) u
ON CONFLICT (ledger, gen, seq) DO UPDATE SET at = excluded.at, type = excluded.type, actor = excluded.actor

-- name: insert_names
INSERT INTO corrigenda.directory (ledger, gen, id, seq)
SELECT %(ledger)s::text, %(gen)s::bigint, u.* FROM unnest(%(ids)s::text[], %(seqs)s::bigint[]) u
ON CONFLICT (ledger, gen, id) DO UPDATE SET seq = excluded.seq

-- name: find_lineages
SELECT DISTINCT lineage FROM corrigenda.revision
WHERE ledger = %(ledger)s AND gen = %(gen)s AND starts_with(revision, %(prefix)s) ORDER BY lineage LIMIT 10

-- name: any_revision
-- Whether a project has revisions at all, and whether one of them is a head.
SELECT EXISTS (SELECT 1 FROM corrigenda.revision
               WHERE ledger = %(ledger)s AND gen = %(gen)s AND project = %(project)s),
       EXISTS (SELECT 1 FROM corrigenda.revision
               WHERE ledger = %(ledger)s AND gen = %(gen)s AND project = %(project)s
                 AND state = 'active' AND trust <> 'revoked')

-- name: count_states
SELECT CASE WHEN trust = 'revoked' AND state = 'active' THEN 'revoked' ELSE state END AS state, count(*)
FROM corrigenda.revision WHERE ledger = %(ledger)s AND gen = %(gen)s GROUP BY 1 ORDER BY 1

-- name: find_names
SELECT u.id, d.seq
FROM unnest(%(ids)s::text[]) u(id)
CROSS JOIN LATERAL (
    SELECT seq FROM corrigenda.directory WHERE ledger = %(ledger)s AND gen = %(gen)s AND id = u.id LIMIT 1) d

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
-- A page of a project's corrections in the order in which they were recorded.
SELECT correction, content_seq FROM corrigenda.correction
WHERE ledger = %(ledger)s AND gen = %(gen)s AND project = %(project)s AND content_seq > %(after)s
  AND state = ANY (%(states)s::text[]) AND (%(agent)s::text IS NULL OR agent = %(agent)s)
ORDER BY content_seq LIMIT %(limit)s

-- name: find_touched
-- What a correction touched, the oldest first.
SELECT DISTINCT older, min(from_seq) OVER (PARTITION BY older) AS first FROM corrigenda.edge
WHERE ledger = %(ledger)s AND gen = %(gen)s AND kind = %(kind)s AND newer = %(correction)s ORDER BY first, older
