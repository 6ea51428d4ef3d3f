"""Unit constants. GiB is 2**30 and GB is 10**9; the two are never mixed."""

KIB = 2**10
MIB = 2**20
GIB = 2**30
KILO = 10**3
MEGA = 10**6
GB = 10**9
GIGA = 10**9
TERA = 10**12
MILLI = 1e-3
MICRO = 1e-6
NANO = 1e-9
BITS_PER_BYTE = 8
SECONDS_PER_MINUTE = 60
SECONDS_PER_HOUR = 3600
