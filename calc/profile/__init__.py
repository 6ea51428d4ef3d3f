"""What a log of requests says of the load: rates, lengths, sessions, tenants, reuse."""
