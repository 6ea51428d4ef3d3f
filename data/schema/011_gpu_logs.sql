-- Logs of GPU readings (nvidia-smi, dmon, gpustat) as they were summed up; lists of one figure a GPU are JSON. Shares 0-1,
-- bytes, watts. Absent = not in the log. Portable subset, rows only added.
CREATE TABLE gpu_logs (
    gpu_log_id VARCHAR NOT NULL,
    file_id VARCHAR NOT NULL,
    uploaded_at VARCHAR NOT NULL,
    provenance VARCHAR NOT NULL,
    warnings VARCHAR NOT NULL,
    source VARCHAR NOT NULL,
    samples BIGINT NOT NULL,
    gpus BIGINT NOT NULL,
    names VARCHAR NOT NULL,
    busy_shares VARCHAR NOT NULL,
    busy_share_mean DOUBLE,
    busy_share_max DOUBLE,
    memory_busy_share_max DOUBLE,
    memory_used_peaks_bytes VARCHAR NOT NULL,
    memory_used_peak_bytes DOUBLE,
    memory_total_bytes DOUBLE,
    power_max_w DOUBLE,
    temperature_max_c DOUBLE,
    memory_temperature_max_c DOUBLE,
    power_shares VARCHAR NOT NULL,
    first_at VARCHAR,
    last_at VARCHAR
);

-- Somebody's word that a log was taken during a run. The newest row of a log and a run counts; "stands" is false where
-- it was not, or no longer is said to be.
CREATE TABLE gpu_log_ties (
    tie_id VARCHAR NOT NULL,
    gpu_log_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    stands BOOLEAN NOT NULL,
    said_by VARCHAR NOT NULL,
    said_at VARCHAR NOT NULL
);
