-- What further tools say of a load point. Absent = not known.
ALTER TABLE runs ADD COLUMN achieved_concurrency DOUBLE;
ALTER TABLE runs ADD COLUMN incomplete BIGINT;
ALTER TABLE runs ADD COLUMN tool_version VARCHAR;
ALTER TABLE runs ADD COLUMN engine VARCHAR;
