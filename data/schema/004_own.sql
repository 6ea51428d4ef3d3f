-- When somebody last looked at the source of an own row, and what the team pays for a GPU-hour.
ALTER TABLE own_models ADD COLUMN checked_on VARCHAR;
ALTER TABLE own_gpus ADD COLUMN checked_on VARCHAR;

-- The name of a price is the GPU it is for: a catalogue id, or 'own:' and the name of an own GPU.
CREATE TABLE own_prices (
    entry_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    entry VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    added_at VARCHAR NOT NULL,
    checked_on VARCHAR
);
