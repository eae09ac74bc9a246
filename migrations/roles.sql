-- The roles belong to the whole cluster, whichever of its databases they were made from.

-- The roles that are missing and that this role may not make.
SELECT r.name
FROM (VALUES ('corrigenda_writer'), ('corrigenda_maintainer'), ('corrigenda_eraser')) r(name)
WHERE NOT EXISTS (SELECT 1 FROM pg_roles p WHERE p.rolname = r.name)
  AND NOT EXISTS (SELECT 1 FROM pg_roles p WHERE p.rolname = current_user AND (p.rolsuper OR p.rolcreaterole));

-- Another database of the cluster may make them at the same moment: whoever comes second waits for the first, finds
-- them made, and goes on.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['corrigenda_writer', 'corrigenda_maintainer', 'corrigenda_eraser'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END LOOP;
END
$$
