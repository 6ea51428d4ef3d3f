-- Constants fitted to measurements: the factors as a case carries them, the points they were fitted to, and what the fit said.
-- Portable subset, rows only added. "points" is what a newer model version can be fitted to again.
CREATE TABLE calibrations (
    calibration_id VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    measured_on VARCHAR NOT NULL,
    stored_at VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    gpu VARCHAR NOT NULL,
    model_version VARCHAR NOT NULL,
    calibration VARCHAR NOT NULL,
    points VARCHAR NOT NULL,
    fit VARCHAR NOT NULL
);
