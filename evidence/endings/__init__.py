"""Work that is interrupted, killed or spread over a cluster."""
