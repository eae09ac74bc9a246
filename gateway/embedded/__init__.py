"""The embedded PostgreSQL: started when a home needs it, stopped when the last client has left.

    with attach(home) as server:
        psycopg.connect(server.dsn)

`attach` makes, starts, adopts or recovers, whatever is needed; `locate` only says where; `stop` ends it now. Who uses a
ledger logs in as its writer (`server.dsn`); who changes the shape of the database, as the owner (`server.owner_dsn`).
Read `client` first, then `watcher`. Must never listen on TCP, keep a password, or run without fsync.
"""

from gateway.embedded.client import GRACE_S, Say, Server, attach, locate
from gateway.embedded.cluster import TIME_OUTS, WRITER
from gateway.embedded.places import Place
from gateway.embedded.remains import abandoned
from gateway.embedded.stopping import stop

__all__ = ["GRACE_S", "TIME_OUTS", "WRITER", "Place", "Say", "Server", "abandoned", "attach", "locate", "stop"]
