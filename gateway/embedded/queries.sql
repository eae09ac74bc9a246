-- name: read_server_facts
-- The settings named in %(names)s with where each comes from, and the cluster's identity. Locks nothing.
SELECT name, setting, source, coalesce(sourcefile, '') AS sourcefile
FROM pg_catalog.pg_settings
WHERE name = ANY (%(names)s)
UNION ALL
SELECT 'system_identifier', system_identifier::text, '', ''
FROM pg_catalog.pg_control_system();
