-- Three walls around the truth. Grants say what each role may do; triggers refuse what nobody may, the owner included;
-- row-level security shows a transaction the ledger that it has named, and no other.
--
-- The writer is what a service logs in as. The maintainer removes what can be made again, or is not needed any more.
-- The eraser destroys payloads, and nothing else may. Who is a member of one of the last two says SET ROLE first.

-- ---------------------------------------------------------------- grants

GRANT USAGE ON SCHEMA corrigenda TO corrigenda_writer, corrigenda_maintainer, corrigenda_eraser;

GRANT SELECT ON corrigenda.alembic_version TO corrigenda_writer, corrigenda_maintainer, corrigenda_eraser;

GRANT SELECT, INSERT ON corrigenda.tenant, corrigenda.event, corrigenda.payload, corrigenda.outbox
    TO corrigenda_writer;

GRANT SELECT, INSERT, UPDATE ON corrigenda.head, corrigenda.embedding, corrigenda.revision, corrigenda.directory
    TO corrigenda_writer;

-- Which generation of the read models is live, it reads from the head.
GRANT SELECT ON corrigenda.head TO corrigenda_maintainer;

GRANT SELECT, DELETE ON corrigenda.outbox, corrigenda.embedding, corrigenda.revision, corrigenda.directory
    TO corrigenda_maintainer;

GRANT SELECT ON corrigenda.head, corrigenda.event TO corrigenda_eraser;

GRANT SELECT, DELETE ON corrigenda.payload, corrigenda.embedding, corrigenda.directory TO corrigenda_eraser;

-- ---------------------------------------------------------------- triggers

-- For each statement, so that what would have hit no row is refused, too. The argument, where there is one, is the one
-- role that may: a superuser has every role, hence the name and not the membership.
CREATE FUNCTION corrigenda.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_NARGS = 1 AND current_user = TG_ARGV[0] THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% on corrigenda.% is refused: what a ledger holds is never changed', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON corrigenda.tenant
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change();

CREATE TRIGGER refuse_change BEFORE DELETE OR TRUNCATE ON corrigenda.head
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change();

CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON corrigenda.event
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change();

CREATE TRIGGER refuse_change BEFORE UPDATE OR TRUNCATE ON corrigenda.payload
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change();

CREATE TRIGGER refuse_delete BEFORE DELETE ON corrigenda.payload
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change('corrigenda_eraser');

CREATE TRIGGER refuse_change BEFORE UPDATE OR TRUNCATE ON corrigenda.outbox
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change();

CREATE TRIGGER refuse_delete BEFORE DELETE ON corrigenda.outbox
    FOR EACH STATEMENT EXECUTE FUNCTION corrigenda.refuse_change('corrigenda_maintainer');

-- ---------------------------------------------------------------- row-level security

-- A transaction names its ledger: set_config('corrigenda.ledger', …, true). Named none, it sees and writes no row.
-- FORCEd, so that the owner is no exception; a step that has to touch rows lifts that for its own transaction.
DO $$
DECLARE
    named text;
BEGIN
    FOREACH named IN ARRAY ARRAY['head', 'event', 'payload', 'outbox', 'embedding', 'revision', 'directory'] LOOP
        EXECUTE format('ALTER TABLE corrigenda.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', named);
        EXECUTE format(
            'CREATE POLICY of_ledger ON corrigenda.%I '
            'USING (ledger = nullif(current_setting(''corrigenda.ledger'', true), ''''))', named);
    END LOOP;
END
$$;

-- The maintainer removes generations of the read models that are not live.
CREATE POLICY retired_only ON corrigenda.revision AS RESTRICTIVE FOR DELETE TO corrigenda_maintainer
    USING (gen < (SELECT h.gen FROM corrigenda.head h WHERE h.ledger = revision.ledger));

CREATE POLICY retired_only ON corrigenda.directory AS RESTRICTIVE FOR DELETE TO corrigenda_maintainer
    USING (gen < (SELECT h.gen FROM corrigenda.head h WHERE h.ledger = directory.ledger));

-- The tenant's row is what tells the ledger, so it is found by its name (corrigenda.tenant), and only by that.
ALTER TABLE corrigenda.tenant ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

CREATE POLICY of_name ON corrigenda.tenant FOR SELECT
    USING (name = nullif(current_setting('corrigenda.tenant', true), '')
        OR ledger = nullif(current_setting('corrigenda.ledger', true), ''));

CREATE POLICY first_use ON corrigenda.tenant FOR INSERT
    WITH CHECK (name = nullif(current_setting('corrigenda.tenant', true), '')
        AND ledger = nullif(current_setting('corrigenda.ledger', true), ''));

-- ---------------------------------------------------------------- whether there is any ledger at all

-- A first use makes keys only where there is no ledger yet, and nothing beside one whose tenant's row was taken away.
-- Nobody sees other ledgers' rows, so the owner looks on the writer's behalf, through policies of its own that are open
-- in here only. The answer is two times yes or no: it names nobody and counts nothing. What the ledgers are that are
-- there is for the owner alone to see, who makes another.
CREATE POLICY census ON corrigenda.tenant FOR SELECT TO CURRENT_ROLE
    USING (current_setting('corrigenda.census', true) = 'on');

CREATE POLICY census ON corrigenda.head FOR SELECT TO CURRENT_ROLE
    USING (current_setting('corrigenda.census', true) = 'on');

CREATE POLICY census ON corrigenda.event FOR SELECT TO CURRENT_ROLE
    USING (current_setting('corrigenda.census', true) = 'on');

CREATE POLICY census ON corrigenda.payload FOR SELECT TO CURRENT_ROLE
    USING (current_setting('corrigenda.census', true) = 'on');

CREATE FUNCTION corrigenda.any_ledger(OUT named boolean, OUT unnamed boolean)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('corrigenda.census', 'on', true);
    -- One step of an index for each ledger, however many events it has.
    WITH RECURSIVE written(ledger) AS (
        (SELECT e.ledger FROM corrigenda.event e ORDER BY e.ledger LIMIT 1)
        UNION ALL
        SELECT (SELECT e.ledger FROM corrigenda.event e WHERE e.ledger > w.ledger ORDER BY e.ledger LIMIT 1)
        FROM written w WHERE w.ledger IS NOT NULL
    ), there(ledger) AS (
        SELECT h.ledger FROM corrigenda.head h
        UNION ALL
        SELECT w.ledger FROM written w WHERE w.ledger IS NOT NULL
    )
    SELECT EXISTS (SELECT 1 FROM corrigenda.tenant), EXISTS (
        SELECT 1 FROM there t WHERE NOT EXISTS (SELECT 1 FROM corrigenda.tenant n WHERE n.ledger = t.ledger)
    ) INTO named, unnamed;
    PERFORM set_config('corrigenda.census', '', true);
END
$$;

CREATE FUNCTION corrigenda.openings()
    RETURNS TABLE (tenant text, ledger text, envelope bytea, seal bytea, salt bytea, body bytea)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('corrigenda.census', 'on', true);
    RETURN QUERY
        SELECT t.name, t.ledger, e.envelope, e.seal, p.salt, p.body FROM corrigenda.tenant t
        LEFT JOIN LATERAL (
            SELECT x.envelope, x.seal FROM corrigenda.event x WHERE x.ledger = t.ledger AND x.seq = 0 LIMIT 1
        ) e ON true
        LEFT JOIN LATERAL (
            SELECT x.salt, x.body FROM corrigenda.payload x WHERE x.ledger = t.ledger AND x.seq = 0 LIMIT 1
        ) p ON true;
    PERFORM set_config('corrigenda.census', '', true);
END
$$;

REVOKE EXECUTE ON FUNCTION corrigenda.openings() FROM PUBLIC;

REVOKE EXECUTE ON FUNCTION corrigenda.any_ledger() FROM PUBLIC;

GRANT EXECUTE ON FUNCTION corrigenda.any_ledger() TO corrigenda_writer;

REVOKE EXECUTE ON FUNCTION corrigenda.refuse_change() FROM PUBLIC;

-- ---------------------------------------------------------------- the head

-- One row a ledger, changed with every append: room beside it for the next versions, and a vacuum that comes soon.
ALTER TABLE corrigenda.head SET (
    fillfactor = 10,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0
)
