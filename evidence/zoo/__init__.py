"""Random problems of the field from building blocks, beside long independent searches."""
