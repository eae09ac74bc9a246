-- name: upsert_revisions
-- Demotions come before promotions in the arrays, so that the partial unique index on heads holds at every row.
-- A row that only moves carries content_seq −1 and keeps its other columns; that it had to be inserted means that
-- the read model has lost it, and raises.
WITH written AS (
    INSERT INTO corrigenda.revision AS r
        (ledger, gen, revision, lineage, project, version, state, trust, floor, content_seq)
    SELECT %(ledger)s::text, %(gen)s::bigint, u.* FROM unnest(
        %(revisions)s::text[], %(lineages)s::text[], %(projects)s::text[], %(versions)s::integer[], %(states)s::text[],
        %(trusts)s::text[], %(floors)s::text[], %(content_seqs)s::bigint[]) u
    ON CONFLICT (ledger, gen, revision) DO UPDATE
    SET state = excluded.state, trust = excluded.trust, floor = excluded.floor,
        content_seq = CASE WHEN excluded.content_seq < 0 THEN r.content_seq ELSE excluded.content_seq END
    RETURNING content_seq
)
SELECT (CASE WHEN min(content_seq) >= 0 THEN '1' ELSE 'PROJECTION_DRIFT' END)::int FROM written

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
