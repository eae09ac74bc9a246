-- The lock is that of the ledger's first use (ledger/queries.sql: lock_first_use): whoever holds it may
-- change the shape of the database.
SELECT pg_advisory_xact_lock(4859180126538301);
CREATE SCHEMA IF NOT EXISTS corrigenda
