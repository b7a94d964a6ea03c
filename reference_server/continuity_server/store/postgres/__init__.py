"""The store on PostgreSQL: several server processes, on several machines, share one database."""
