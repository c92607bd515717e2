"""Bodies and queries in: read strictly, field by field, with every fault named."""
