"""One module per migration, numbered; ``storage.sql.schema.REVISION`` names the newest."""
