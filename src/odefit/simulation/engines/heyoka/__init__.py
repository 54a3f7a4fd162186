"""Taylor's method, compiled by heyoka."""
