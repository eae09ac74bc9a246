-- name: read_server_facts
-- The settings named in %(names)s with where each comes from, the cluster's identity, and the role %(writer)s: whether it
-- may log in, and its own settings. Locks nothing.
SELECT name, setting, source, coalesce(sourcefile, '') AS sourcefile
FROM pg_catalog.pg_settings
WHERE name = ANY (%(names)s)
UNION ALL
SELECT 'system_identifier', system_identifier::text, '', ''
FROM pg_catalog.pg_control_system()
UNION ALL
SELECT 'writer', concat_ws(' ', CASE WHEN rolcanlogin THEN 'LOGIN' END, array_to_string(rolconfig, ' ')), '', ''
FROM pg_catalog.pg_roles WHERE rolname = %(writer)s

-- name: lock_first_use
-- The lock of ledger/queries.sql, to the end of the transaction.
SELECT pg_advisory_xact_lock(4859180126538301)

-- name: make_writer
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = 'corrigenda_writer') THEN
        ALTER ROLE corrigenda_writer LOGIN;
    ELSE
        CREATE ROLE corrigenda_writer LOGIN;
    END IF;
END
$$
