-- Who has done what from where, such as logging in: read at each start (store_audit_places).
CREATE INDEX audit_places ON audit (route, user_name, address, at_ms) WHERE code = 0;
